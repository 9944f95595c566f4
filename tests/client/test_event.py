"""Any frame of any server is an event or is told to be none; no field of it can hurt (case I-01)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from counterpoint.client.event import Event, notice, read_event


def test_an_event_shows_the_whole_json() -> None:
    event = read_event('{"type":"response.done","response":{"id":"r1"},"server_event_seq":7,"new":[1]}')
    assert (event.type, event.seq, event["new"], event.get("gone", 5)) == ("response.done", 7, [1], 5)
    assert event.response_id == "r1"
    assert not event.local


@pytest.mark.parametrize(
    "frame",
    [
        b'{"type":"x"}',
        "",
        "{",
        "null",
        "[]",
        "5",
        '"x"',
        "{}",
        '{"type":null}',
        '{"type":{"toString":null}}',
        '{"type":"x","n":NaN}',
        "[" * 100_000,
        '{"type":"x","a":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"type":"x","s":"\\ud800"}',
    ],
    ids=range(14),
)
def test_what_is_no_event_is_refused_by_one_error(frame: str | bytes) -> None:
    """Case I-01."""
    with pytest.raises(ValueError):
        read_event(frame)


@pytest.mark.parametrize("value", [None, 5, 1.5, True, [], {}, "x"])
def test_fields_of_another_form_read_as_empty(value: Any) -> None:
    event = Event({"type": "x", "field": value})
    assert event.string("field") == (value if isinstance(value, str) else "")
    assert event.integer("field") == (value if type(value) is int else None)
    assert event.object("field") == (value if isinstance(value, dict) else {})
    assert Event({"type": "x", "response_id": value, "response": value}).response_id in ("", "x")


def test_audio_is_decoded() -> None:
    data = {"type": "response.output_audio.delta", "delta": base64.b64encode(b"\1\2").decode()}
    assert Event(data).audio == b"\1\2"
    assert Event(data | {"type": "x"}).audio == b""


@pytest.mark.parametrize("delta", ["!!!!", "AAA", None, 5])
def test_audio_that_is_no_base64_is_none(delta: Any) -> None:
    assert Event({"type": "response.output_audio.delta", "delta": delta}).audio == b""


def test_a_repr_shows_no_data() -> None:
    assert repr(Event({"type": "x", "resume_token": "secret"})) == "Event('x', seq=None)"


def test_a_notice_is_local() -> None:
    event = notice("client.overflow", dropped=3)
    assert (event.local, event.seq, event["dropped"]) == (True, None, 3)
