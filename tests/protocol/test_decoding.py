"""Client events: every type, its aliases, its optional fields, and what is wrong with the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol import codec
from counterpoint.protocol.audio import PCM16_24K, ULAW_8K, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckEvents,
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearAudio,
    ClearOutput,
    CloseSession,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Heartbeat,
    ReplayPolicy,
    ResumeSession,
    RetrieveItem,
    Scheduling,
    TruncateItem,
    UpdateSession,
)
from counterpoint.protocol.decoding import READERS
from counterpoint.protocol.items import FunctionCallOutput
from counterpoint.protocol.response_options import ResponseOptions

from .schemas import CLIENT_EVENTS

_OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "noon"}
_RESUME = {"session_id": "sess_1", "resume_token": "t", "last_received_server_event_seq": 0}

#: A frame (without ``event_id``) and the command that it is: each type with its least, and with all it has.
GOOD: list[tuple[str, dict[str, Any], Command]] = [
    ("session.update", {"session": {"a": [1]}}, UpdateSession(patch={"a": [1]})),
    ("session.update", {"session": {}, "extensions": True}, UpdateSession(patch={}, extensions=True)),
    (
        "transcription_session.update",
        {"session": {"turn_detection": None}},
        UpdateSession(patch={"turn_detection": None, "type": "transcription"}),
    ),
    ("session.heartbeat", {}, Heartbeat()),
    ("session.event_ack", {"server_event_seq": 7}, AckEvents(server_event_seq=7)),
    ("session.close", {}, CloseSession()),
    (
        "session.resume",
        _RESUME,
        ResumeSession(session_id="sess_1", resume_token="t", last_received_server_event_seq=0),
    ),
    (
        "session.resume",
        _RESUME | {"replay": "from_playhead"},
        ResumeSession(
            session_id="sess_1",
            resume_token="t",
            last_received_server_event_seq=0,
            replay=ReplayPolicy.FROM_PLAYHEAD,
        ),
    ),
    ("input_audio_buffer.append", {"audio": "AAEC"}, AppendAudio(audio=b"\x00\x01\x02")),
    ("input_audio_buffer.append", {"audio": ""}, AppendAudio(audio=b"")),
    (
        "input_audio_buffer.append",
        {
            "audio": "AAEC",
            "format": {"type": "audio/pcmu"},
            "sample_rate_hz": 8000,
            "is_speech": False,
            "video_frames": ["data:image/png;base64,AA=="],
        },
        AppendAudio(
            audio=b"\x00\x01\x02",
            format=ULAW_8K,
            sample_rate_hz=8000,
            is_speech=False,
            video_frames=("data:image/png;base64,AA==",),
        ),
    ),
    ("input_audio_buffer.commit", {}, CommitAudio()),
    ("input.commit", {"response_create": False}, CommitAudio(response_create=False)),
    ("input_audio_buffer.clear", {}, ClearAudio()),
    ("input.text.append", {"text": "hi"}, AppendText(text="hi")),
    ("input.cancel", {}, CancelInput()),
    ("barge_in", {}, BargeIn()),
    ("turn.signal", {"event": "barge_in"}, BargeIn()),
    (
        "conversation.item.create",
        {"item": _OUTPUT},
        CreateItem(item=FunctionCallOutput(call_id="c", output="noon")),
    ),
    (
        "conversation.item.create",
        {"item": _OUTPUT, "previous_item_id": "root", "scheduling": "when_idle"},
        CreateItem(
            item=FunctionCallOutput(call_id="c", output="noon"),
            previous_item_id="root",
            scheduling=Scheduling.WHEN_IDLE,
        ),
    ),
    ("conversation.item.retrieve", {"item_id": "i"}, RetrieveItem(item_id="i")),
    ("conversation.item.delete", {"item_id": "i"}, DeleteItem(item_id="i")),
    (
        "conversation.item.truncate",
        {"item_id": "i", "content_index": 0, "audio_end_ms": 1500},
        TruncateItem(item_id="i", content_index=0, audio_end_ms=1500),
    ),
    ("response.create", {}, CreateResponse()),
    (
        "response.create",
        {"response": {"instructions": "sing"}},
        CreateResponse(options=ResponseOptions(instructions="sing")),
    ),
    ("response.cancel", {}, CancelResponse()),
    ("response.cancel", {"response_id": "r"}, CancelResponse(response_id="r")),
    ("output_audio_buffer.clear", {}, ClearOutput()),
    ("output_audio_buffer.clear", {"response_id": "r"}, ClearOutput(response_id="r")),
    ("playback.ack", {"response_id": "r", "played_ms": 20}, AckPlayback(response_id="r", played_ms=20)),
    (
        "playback.ack",
        {"item_id": "i", "content_index": 1, "played_ms": 20.9, "truncate": True},
        AckPlayback(item_id="i", content_index=1, played_ms=20, truncate=True),
    ),
]


def decode(values: dict[str, Any], *, extended: bool = True) -> Command:
    return codec.decode(json.dumps(values), extended=extended)


def refusal(values: dict[str, Any], *, extended: bool = True) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        decode(values, extended=extended)
    return refused.value


@pytest.mark.parametrize(("name", "values", "command"), GOOD)
def test_a_frame_is_a_command(name: str, values: dict[str, Any], command: Command) -> None:
    assert decode({"type": name, **values}) == command


def test_every_type_has_an_example() -> None:
    assert {name for name, _, _ in GOOD} == set(READERS)


def test_every_official_client_event_is_served() -> None:
    """(case I-02)"""
    assert set(READERS) >= CLIENT_EVENTS


@pytest.mark.parametrize(("name", "values", "command"), GOOD)
def test_the_header_is_read_and_nulls_are_no_values(
    name: str, values: dict[str, Any], command: Command
) -> None:
    """Events that are never numbered ignore a number (wire contract, section 2)."""
    nulls = {"previous_item_id": None, "response_id": None, "replay": None, "is_speech": None, "foo": None}
    decoded = decode(nulls | {"type": name, "event_id": "e7", "client_event_seq": 3, **values})
    unnumbered = isinstance(command, Heartbeat | AckEvents | ResumeSession)
    assert decoded.event_id == "e7"
    assert decoded.client_event_seq == (None if unnumbered else 3)
    assert type(decoded) is type(command)


@pytest.mark.parametrize(
    ("values", "code", "param"),
    [
        ({}, ErrorCode.INVALID_EVENT, "type"),
        ({"type": None}, ErrorCode.INVALID_EVENT, "type"),
        ({"type": {"toString": None}}, ErrorCode.INVALID_EVENT, "type"),
        ({"type": "foo.bar"}, ErrorCode.UNKNOWN_EVENT, "type"),
        ({"type": "session.created"}, ErrorCode.UNKNOWN_EVENT, "type"),
        ({"type": "session.start"}, ErrorCode.UNSUPPORTED, "type"),
        ({"type": "session.input_audio_buffer.append"}, ErrorCode.UNSUPPORTED, "type"),
        ({"type": "session.update"}, ErrorCode.INVALID_EVENT, "session"),
        ({"type": "session.update", "session": []}, ErrorCode.INVALID_EVENT, "session"),
        ({"type": "session.update", "session": {}, "extensions": 1}, ErrorCode.INVALID_EVENT, "extensions"),
        ({"type": "session.event_ack"}, ErrorCode.INVALID_EVENT_ACK, "server_event_seq"),
        (
            {"type": "session.event_ack", "server_event_seq": -1},
            ErrorCode.INVALID_EVENT_ACK,
            "server_event_seq",
        ),
        (
            {"type": "session.event_ack", "server_event_seq": 1.5},
            ErrorCode.INVALID_EVENT_ACK,
            "server_event_seq",
        ),
        (
            {"type": "session.event_ack", "server_event_seq": "7"},
            ErrorCode.INVALID_EVENT_ACK,
            "server_event_seq",
        ),
        ({"type": "input_audio_buffer.append"}, ErrorCode.INVALID_AUDIO, "audio"),
        (
            {"type": "input_audio_buffer.append", "audio": "", "is_speech": "no"},
            ErrorCode.INVALID_EVENT,
            "is_speech",
        ),
        (
            {"type": "input_audio_buffer.append", "audio": "", "video_frames": ["a", 5]},
            ErrorCode.INVALID_EVENT,
            "video_frames[1]",
        ),
        (
            {"type": "input_audio_buffer.append", "audio": "", "format": "mp3"},
            ErrorCode.INVALID_EVENT,
            "format",
        ),
        (
            {"type": "input_audio_buffer.append", "audio": "", "sample_rate_hz": 12_345},
            ErrorCode.INVALID_EVENT,
            "sample_rate_hz",
        ),
        ({"type": "input.text.append", "text": 5}, ErrorCode.INVALID_EVENT, "text"),
        ({"type": "input.commit", "response_create": 0}, ErrorCode.INVALID_EVENT, "response_create"),
        ({"type": "turn.signal"}, ErrorCode.INVALID_EVENT, "event"),
        ({"type": "turn.signal", "event": "hello"}, ErrorCode.INVALID_EVENT, "event"),
        ({"type": "conversation.item.create"}, ErrorCode.INVALID_EVENT, "item"),
        ({"type": "conversation.item.create", "item": {"type": "foo"}}, ErrorCode.INVALID_EVENT, "item.type"),
        (
            {"type": "conversation.item.create", "item": _OUTPUT, "scheduling": "soon"},
            ErrorCode.INVALID_EVENT,
            "scheduling",
        ),
        ({"type": "conversation.item.retrieve"}, ErrorCode.INVALID_EVENT, "item_id"),
        ({"type": "conversation.item.delete", "item_id": 5}, ErrorCode.INVALID_EVENT, "item_id"),
        ({"type": "response.create", "response": "now"}, ErrorCode.INVALID_EVENT, "response"),
        ({"type": "response.cancel", "response_id": 5}, ErrorCode.INVALID_EVENT, "response_id"),
        ({"type": "playback.ack", "played_ms": 5}, ErrorCode.INVALID_EVENT, "item_id"),
        ({"type": "playback.ack", "item_id": "i"}, ErrorCode.INVALID_EVENT, "played_ms"),
        ({"type": "playback.ack", "item_id": "i", "played_ms": "5"}, ErrorCode.INVALID_EVENT, "played_ms"),
        ({"type": "barge_in", "client_event_seq": 0}, ErrorCode.INVALID_EVENT, "client_event_seq"),
        ({"type": "barge_in", "client_event_seq": "1"}, ErrorCode.INVALID_EVENT, "client_event_seq"),
        ({"type": "barge_in", "client_event_seq": 1.0}, ErrorCode.INVALID_EVENT, "client_event_seq"),
    ],
)
def test_what_is_wrong_is_named_with_the_event(values: dict[str, Any], code: ErrorCode, param: str) -> None:
    """(cases I-01 and I-02, CASE-INV-7)"""
    error = refusal({"event_id": "e7", **values})
    assert (error.code, error.param, error.event_id) == (code, param, "e7")
    assert error.message.startswith(f"{param}: ")


@pytest.mark.parametrize("cursor", [-1, "7", None, 2**63, 1.5, True])
def test_a_cursor_that_is_no_number_makes_a_malformed_resume(cursor: Any) -> None:
    """(case A-06)"""
    error = refusal({"type": "session.resume", **_RESUME, "last_received_server_event_seq": cursor})
    assert error.code == ErrorCode.INVALID_SESSION_RESUME
    assert error.param == "last_received_server_event_seq"


@pytest.mark.parametrize(
    "change", [{"session_id": None}, {"resume_token": 5}, {"resume_token": ""}, {"replay": "some"}]
)
def test_a_malformed_resume_says_nothing_of_its_token(change: dict[str, Any]) -> None:
    error = refusal({"type": "session.resume", **_RESUME, "resume_token": "secret"} | change)
    assert (error.code, error.param) == (ErrorCode.INVALID_SESSION_RESUME, next(iter(change)))
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("field", "value"),
    [("audio_end_ms", -1), ("audio_end_ms", "x"), ("audio_end_ms", None), ("content_index", -1)],
)
def test_a_truncation_names_its_bad_field(field: str, value: Any) -> None:
    """(case F-01)"""
    values = {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 5}
    assert refusal({**values, field: value}).param == field


@pytest.mark.parametrize(
    ("played_ms", "expected"),
    [(-5, 0), (1e300, 2**63 - 1), (2**70, 2**63 - 1), (10**400, 2**63 - 1), (0.5, 0)],
)
def test_an_impossible_acknowledgement_is_no_error(played_ms: float, expected: int) -> None:
    """(case F-07)"""
    decoded = decode({"type": "playback.ack", "item_id": "i", "played_ms": played_ms})
    assert decoded == AckPlayback(item_id="i", played_ms=expected)


@pytest.mark.parametrize("event_id", [5, True, [], {}, "x" * 513])
def test_an_event_id_that_cannot_be_echoed_is_refused(event_id: Any) -> None:
    error = refusal({"type": "barge_in", "event_id": event_id})
    assert (error.code, error.param, error.event_id) == (ErrorCode.INVALID_EVENT, "event_id", None)


@pytest.mark.parametrize("event_id", [None, ""])
def test_an_empty_event_id_is_none(event_id: Any) -> None:
    assert decode({"type": "barge_in", "event_id": event_id}) == BargeIn()


def test_an_error_says_which_number_it_uses() -> None:
    """(wire contract, section 2)"""
    error = refusal({"type": "input_audio_buffer.append", "audio": "!", "client_event_seq": 9})
    assert error.client_event_seq == 9
    assert refusal({"type": "session.event_ack", "client_event_seq": 9}).client_event_seq is None


def test_only_extended_connections_may_name_other_rates() -> None:
    append = {"type": "input_audio_buffer.append", "audio": ""}
    rated = {**append, "format": {"type": "audio/pcm", "rate": 16_000}}
    assert decode(rated) == AppendAudio(audio=b"", format=AudioFormat(Encoding.PCM16, 16_000))
    assert refusal(rated, extended=False).param == "format.rate"
    assert refusal({**append, "sample_rate_hz": 16_000}, extended=False).param == "sample_rate_hz"
    response = {"type": "response.create", "response": {"audio": {"output": {"format": rated["format"]}}}}
    assert refusal(response, extended=False).param == "response.audio.output.format.rate"


# --------------------------------------------------------------------------- the format of one append


def test_an_append_is_read_in_the_format_that_holds_for_it() -> None:
    pcm16_16k = AudioFormat(Encoding.PCM16, 16_000)
    assert AppendAudio(audio=b"").format_within(ULAW_8K) == ULAW_8K
    assert AppendAudio(audio=b"", format=ULAW_8K).format_within(PCM16_24K) == ULAW_8K
    assert AppendAudio(audio=b"", sample_rate_hz=16_000).format_within(PCM16_24K) == pcm16_16k
    assert AppendAudio(audio=b"", sample_rate_hz=8_000).format_within(ULAW_8K) == ULAW_8K
    assert AppendAudio(audio=b"", format=PCM16_24K, sample_rate_hz=16_000).format_within(ULAW_8K) == pcm16_16k


def test_g711_has_one_rate() -> None:
    with pytest.raises(ProtocolError) as refused:
        AppendAudio(audio=b"", sample_rate_hz=16_000, event_id="e7").format_within(ULAW_8K)
    assert (refused.value.param, refused.value.event_id) == ("sample_rate_hz", "e7")
