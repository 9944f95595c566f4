"""The tool ledger (wire contract, section 5; invariants 97 and 135)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.session.tools import MAX_OVER, CallState, ToolLedger

CALL, ITEM = "call_1", "item_1"


def _open(ledger: ToolLedger) -> None:
    ledger.open(CALL, ITEM)


def _completed(ledger: ToolLedger) -> None:
    _open(ledger)
    ledger.complete(CALL)


def _answered(ledger: ToolLedger) -> None:
    _completed(ledger)
    ledger.answer(CALL)


def _cancelled(ledger: ToolLedger) -> None:
    _open(ledger)
    ledger.cancel(CALL)


def _never(ledger: ToolLedger) -> None:
    """There is no such call."""


def _deleted(ledger: ToolLedger) -> None:
    _completed(ledger)
    ledger.delete_item(ITEM)


STATES = {
    CallState.OPEN: _open,
    CallState.COMPLETED: _completed,
    CallState.ANSWERED: _answered,
    CallState.CANCELLED: _cancelled,
    CallState.DELETED: _deleted,
    None: _never,
}

#: What becomes of a call in each state when something happens to it.
TRANSITIONS: list[tuple[CallState | None, str, CallState | None]] = [
    (CallState.OPEN, "complete", CallState.COMPLETED),
    (CallState.OPEN, "cancel", CallState.CANCELLED),
    (CallState.OPEN, "delete", CallState.DELETED),
    (CallState.COMPLETED, "complete", CallState.COMPLETED),
    (CallState.COMPLETED, "cancel", CallState.COMPLETED),
    (CallState.COMPLETED, "delete", CallState.DELETED),
    (CallState.ANSWERED, "complete", CallState.ANSWERED),
    (CallState.ANSWERED, "cancel", CallState.ANSWERED),
    (CallState.ANSWERED, "delete", CallState.DELETED),
    (CallState.CANCELLED, "complete", CallState.CANCELLED),
    (CallState.CANCELLED, "cancel", CallState.CANCELLED),
    (CallState.CANCELLED, "delete", CallState.DELETED),
    (CallState.DELETED, "complete", CallState.DELETED),
    (CallState.DELETED, "cancel", CallState.DELETED),
    (CallState.DELETED, "delete", CallState.DELETED),
    (None, "complete", None),
    (None, "cancel", None),
    (None, "delete", None),
]

HAPPENINGS: dict[str, Callable[[ToolLedger], None]] = {
    "complete": lambda ledger: ledger.complete(CALL),
    "cancel": lambda ledger: ledger.cancel(CALL),
    "delete": lambda ledger: ledger.delete_item(ITEM),
}

REFUSALS = {
    CallState.OPEN: "unknown_function_call_output",
    CallState.ANSWERED: "duplicate_function_call_output",
    CallState.CANCELLED: "stale_function_call_output",
    CallState.DELETED: "late_function_call_output",
    None: "unknown_function_call_output",
}


@pytest.mark.parametrize(("before", "happening", "after"), TRANSITIONS)
def test_every_state_times_every_happening(
    before: CallState | None, happening: str, after: CallState | None
) -> None:
    ledger = ToolLedger()
    STATES[before](ledger)
    assert ledger.state(CALL) is before
    HAPPENINGS[happening](ledger)
    assert ledger.state(CALL) is after


@pytest.mark.parametrize(("state", "code"), REFUSALS.items())
def test_a_result_that_fits_no_call_has_its_own_code(state: CallState | None, code: str) -> None:
    """Invariant 135; cases G-02, G-03, G-04, G-08."""
    ledger = ToolLedger()
    STATES[state](ledger)
    for attempt in (ledger.check, ledger.answer):
        with pytest.raises(ProtocolError) as refused:
            attempt(CALL)
        assert (refused.value.code, refused.value.param) == (code, "item.call_id")
    assert ledger.state(CALL) is state


def test_checking_takes_nothing() -> None:
    ledger = ToolLedger()
    _completed(ledger)
    ledger.check(CALL)
    assert ledger.state(CALL) is CallState.COMPLETED


def test_results_come_in_any_order() -> None:
    """Case G-01: parallel calls are answered as their tools finish."""
    ledger = ToolLedger()
    for number in range(3):
        ledger.open(f"call_{number}", f"item_{number}")
    for number in (2, 0, 1):
        ledger.complete(f"call_{number}")
    for number in (1, 2, 0):
        ledger.answer(f"call_{number}")
    assert [ledger.state(f"call_{number}") for number in range(3)] == [CallState.ANSWERED] * 3


def test_a_complete_call_outlives_the_interruption_of_its_response() -> None:
    """Invariant 97, case G-04: the late result is taken; a call that was not complete is stale."""
    ledger = ToolLedger()
    _completed(ledger)
    ledger.open("call_2", "item_2")
    for call_id in (CALL, "call_2"):
        ledger.cancel(call_id)
    ledger.answer(CALL)
    with pytest.raises(ProtocolError, match="interrupted"):
        ledger.answer("call_2")


def test_a_restored_call_waits_for_its_result() -> None:
    ledger = ToolLedger()
    ledger.restore(CALL, ITEM)
    ledger.answer(CALL)
    assert ledger.state(CALL) is CallState.ANSWERED


def test_a_call_id_names_one_call() -> None:
    ledger = ToolLedger()
    _open(ledger)
    with pytest.raises(ProtocolError) as refused:
        ledger.restore(CALL, "item_2")
    assert (refused.value.code, refused.value.param) == ("invalid_event", "item.call_id")
    assert ledger.state(CALL) is CallState.OPEN


def test_calls_that_are_over_are_bounded_and_waiting_ones_are_not_forgotten() -> None:
    ledger = ToolLedger()
    ledger.restore("waiting", "item_waiting")
    for number in range(MAX_OVER + 10):
        ledger.restore(f"call_{number}", f"item_{number}")
        ledger.answer(f"call_{number}")
    assert len(ledger) == MAX_OVER + 1
    assert ledger.state("call_9") is None
    assert ledger.state("call_10") is CallState.ANSWERED
    ledger.answer("waiting")
    ledger.delete_item("item_0")
    assert len(ledger) == MAX_OVER
