"""Codes: every one has a class, and the tables agree with the wire contract."""

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import (
    CLOSED_REASONS,
    ERROR_CLASSES,
    EXPIRED_REASONS,
    CloseCode,
    ErrorClass,
    ErrorCode,
    FailureCode,
)
from counterpoint.protocol.events import error_event


def test_every_code_has_a_class() -> None:
    """The table is total (wire contract, section 8)."""
    assert list(ERROR_CLASSES) == list(ErrorCode)


def test_only_shortages_are_rate_limits() -> None:
    shortages = {code for code, kind in ERROR_CLASSES.items() if kind is ErrorClass.RATE_LIMIT}
    assert shortages == {ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.INPUT_BACKPRESSURE}


def test_the_code_of_a_failed_response_is_none_of_an_error_event() -> None:
    assert not {str(code) for code in FailureCode} & {str(code) for code in ErrorCode}


def test_close_codes_follow_the_reasons() -> None:
    assert {reason: int(code) for reason, code in CLOSED_REASONS.items()} == {
        "client_closed": 1000,
        "model_closed": 1000,
        "failed": 1011,
        "drained": 1012,
        "admin": 1008,
    }
    assert not set(CLOSED_REASONS) & set(EXPIRED_REASONS)
    assert (CloseCode.REPLACED, CloseCode.HANDSHAKE_TIMEOUT) == (4001, 4408)


@pytest.mark.parametrize("code", ErrorCode)
def test_any_code_makes_an_error_event(code: ErrorCode) -> None:
    event = error_event(ProtocolError(code, "no", param="a.b", event_id="e1", retry_after_ms=5, expected=7))
    assert event.error.type == ERROR_CLASSES[code]
    assert (event.error.code, event.error.param, event.error.event_id) == (code, "a.b", "e1")
    assert (event.error.retry_after_ms, event.error.expected) == (5, 7)
