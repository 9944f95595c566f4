"""Every event of ours has the form that its connection may see, and a leak of anything else is found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.protocol.examples import DUPLEX, EVENTS, LIVE
from tools import realtime_schema

from counterpoint.protocol import codec, projection
from counterpoint.protocol.catalog import CATALOG, kind_of
from counterpoint.protocol.config import SessionConfig, render
from counterpoint.protocol.events import Event, SessionUpdated
from counterpoint.testing.schema.events import client_event_problems, official, server_event_problems

DIALECTS = [(False, False), (True, False), (False, True)]

SESSION = {
    "state": "open",
    "turn_state": "idle",
    "epoch": 0,
    "turn_id": 1,
    "active_response_id": None,
    "playback": {"generated_ms": 0, "sent_ms": 0, "played_ms": 0, "committed_ms": 0},
    "capabilities": {
        "interaction": "turn",
        "unit_ms": None,
        "supports_barge_in": True,
        "supports_session_resume": True,
        "supports_audio_truncate": True,
        "supports_text_input": True,
        "supports_video_input": False,
        "supports_tools": True,
        "input_audio_formats": ["audio/pcm"],
        "output_audio_formats": ["audio/pcm"],
        "max_sessions": 64,
    },
}


def shown(event: Event, *, extended: bool, beta: bool) -> dict[str, Any] | None:
    if isinstance(event, SessionUpdated):
        live = {key: LIVE[key] for key in ("id", "object", "expires_at")} | SESSION
        event = SessionUpdated(session=render(SessionConfig(), extended=True, live=live))
    body, kind = codec.encode_body(event, "event_1"), kind_of(event)
    if kind.connection_scoped:
        frame = projection.connection_frame(kind, body, extended=extended, beta=beta)
    else:
        duplex = codec.encode_duplex(DUPLEX) if kind.official else b""
        frame = projection.session_frame(kind, body, duplex, 12, extended=extended, beta=beta)
    return None if frame is None else json.loads(frame)


def test_the_file_is_what_the_official_package_says() -> None:
    assert realtime_schema.PAGE.read_text() == realtime_schema.render(), (
        "run: python tools/realtime_schema.py"
    )


@pytest.mark.parametrize(("extended", "beta"), DIALECTS, ids=["stock", "extended", "beta"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_has_the_form_of_its_connection(event: Event, extended: bool, beta: bool) -> None:
    values = shown(event, extended=extended, beta=beta)
    if values is None or values["type"] in ("session.created", "session.resumed"):
        return  # their session is shown by a running server: see the tests of stock clients
    assert server_event_problems(values, extended=extended, beta=beta) == []


def test_extensions_are_described_as_the_catalog_has_them() -> None:
    for name, kind in CATALOG.items():
        assert (name in official()["server"]) == kind.official
        found = server_event_problems({"type": name, "event_id": "e"}, extended=True)
        assert not any("there is no server event" in problem for problem in found)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"type": "session.closed", "session_id": "s", "reason": "failed"}, "there is no server event"),
        ({"duplex": {"epoch": 0, "turn_id": 1}}, "duplex is not part of it"),
        ({"extra": 1}, "extra is not part of it"),
        ({"response": {"status": "draining"}}, "response.status is 'draining'"),
        ({"response": {"metadata": {"depth": 3}}}, "response.metadata.depth is 3"),
        ({"response": {"output": [{"type": "image"}]}}, "response.output[0]"),
    ],
)
def test_a_leak_to_a_stock_connection_is_found(change: dict[str, Any], problem: str) -> None:
    event = {"type": "response.done", "event_id": "e", "server_event_seq": 3, "response": {"id": "r"}}
    assert server_event_problems(event) == []
    found = server_event_problems(event | change)
    assert any(problem in line for line in found), found


def test_client_events_are_known_too() -> None:
    append = {"type": "input_audio_buffer.append", "audio": "AAAA"}
    assert client_event_problems(append) == []
    assert client_event_problems({"type": "input_audio_buffer.append"}) == ["audio is missing"]
    assert client_event_problems({"type": "session.heartbeat"}) != []
