"""Events: nothing secret in what is printed of them, and values that encode as they should."""

from __future__ import annotations

import json

import msgspec
import pytest

from counterpoint.protocol.commands import AppendAudio, ResumeSession
from counterpoint.protocol.events import (
    Duplex,
    ErrorDetail,
    Event,
    OutputAudioDelta,
    ReplaySummary,
    ResponseListen,
    StatusDetails,
    StatusError,
)

from .examples import DUPLEX, EVENTS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_no_token_is_printed(event: Event) -> None:
    """(wire contract, section 3)"""
    assert "secret" not in repr(event)


def test_no_token_is_printed_of_a_command() -> None:
    resume = ResumeSession(session_id="sess_1", resume_token="secret", last_received_server_event_seq=4)
    assert "secret" not in repr(resume)
    assert "secret" not in repr((resume,))


def test_audio_is_printed_as_its_size() -> None:
    delta = OutputAudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, pcm=bytes(9600))
    assert "9600 bytes" in repr(delta)
    assert len(repr(delta)) < 100
    assert len(repr(AppendAudio(audio=bytes(9600)))) < 100


def test_the_duplex_object_holds_what_is_known_only() -> None:
    assert msgspec.to_builtins(Duplex(epoch=0)) == {"epoch": 0}
    assert json.loads(msgspec.json.encode(DUPLEX)) == {
        "epoch": 3,
        "turn_id": 2,
        "audio_duration_ms": 20,
        "audio_text_marks": [{"audio_ms": 20, "text_chars": 4}],
        "playback": {"generated_ms": 80, "sent_ms": 60, "played_ms": 40, "committed_ms": 40},
    }


def test_explicit_nulls_stay_and_unset_fields_do_not() -> None:
    """(wire contract, sections 5 and 8)"""
    detail = msgspec.to_builtins(ErrorDetail(type="t", code="c", message="m"))
    assert detail == {"type": "t", "code": "c", "message": "m", "param": None, "event_id": None}
    assert msgspec.to_builtins(ReplaySummary(None, None)) == {
        "from": None,
        "to": None,
        "gap": False,
        "dropped_audio_events": 0,
    }
    assert msgspec.to_builtins(ResponseListen(reason="r")) == {"type": "response.listen", "reason": "r"}


def test_a_failed_response_says_why_in_its_status() -> None:
    details = StatusDetails(type="failed", error=StatusError("server_error", "model_timeout"))
    assert msgspec.to_builtins(details) == {
        "type": "failed",
        "error": {"type": "server_error", "code": "model_timeout"},
    }
