"""Frames: what is JSON and what is not, one encoding of an event, and its number spliced in."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ProtocolError
from counterpoint.protocol import codec
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.codes import ERROR_CLASSES, ErrorCode
from counterpoint.protocol.commands import AppendAudio, BargeIn, Command, UpdateSession
from counterpoint.protocol.events import Event, OutputAudioDelta, OutputTranscriptDelta

from .examples import DUPLEX, EVENTS
from .schemas import check_server_event


def refusal(frame: str | bytes, **options: Any) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        codec.decode(frame, **options)
    return refused.value


def nested(depth: int) -> str:
    """A ``session.update`` whose frame is ``depth`` levels deep."""
    inner = "[" * (depth - 2) + "]" * (depth - 2)
    return f'{{"type":"session.update","event_id":"e7","session":{{"extra_body":{inner}}}}}'


# --------------------------------------------------------------------------- decoding


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "null",
        "[]",
        "5",
        '"x"',
        '{"type":"barge_in",}',
        "{'type':'barge_in'}",
        '{"type":"barge_in"} {}',
    ],
)
def test_what_is_no_json_object_is_refused(frame: str) -> None:
    """(case I-01)"""
    error = refusal(frame)
    assert (error.code, error.param, error.event_id) == (ErrorCode.INVALID_EVENT, None, None)


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", "-Infinity", r'"\ud800"', r'"\udc00x"', "1e400", "9" * 5000],
    ids=["nan", "infinity", "minus", "high", "low", "float", "integer"],
)
def test_what_other_parsers_let_pass_is_refused_with_its_event_id(value: str) -> None:
    """(case I-01)"""
    error = refusal(
        f'{{"type":"session.update","event_id":"e7","client_event_seq":4,"session":{{"x":{value}}}}}'
    )
    assert error.code == ErrorCode.INVALID_EVENT
    if len(value) < 5000:
        assert (error.event_id, error.client_event_seq) == ("e7", 4)


def test_an_event_id_that_cannot_be_encoded_is_not_echoed() -> None:
    assert refusal(r'{"type":"barge_in","event_id":"\ud800"}').event_id is None
    assert refusal('{"type":"barge_in","event_id":"\ud800"}').event_id is None


def test_a_binary_frame_is_no_event() -> None:
    """(case I-01)"""
    assert refusal(b'{"type":"barge_in"}').code == ErrorCode.INVALID_EVENT


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"barge_in","event_id":"e7","type":"barge_in"}',
        '{"type":"barge_in","event_id":"e7","x":1,"x" : 1}',
        '{"type":"barge_in","event_id":"e7","a":1,"\\u0061":2}',
        '{"type":"barge_in","event_id":"e7","x":"\\"","x":"\\""}',
        '{"type":"session.update","event_id":"e7","session":{"voice":"a","voice":"b"}}',
        '{"type":"session.update","event_id":"e7","session":{"extra_body":[{"a":1,"a":1}]}}',
    ],
)
def test_a_key_that_is_given_twice_is_refused(frame: str) -> None:
    """(case I-01)"""
    error = refusal(frame)
    assert (error.code, error.message, error.event_id) == (
        ErrorCode.INVALID_EVENT,
        "a key is given twice",
        "e7",
    )


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"barge_in","event_id":"a:b","x":":\\":"}',
        '{"type" : "barge_in", "event_id": "\\"\\"\\"\\"", "y": "type"}',
        '{"type":"\\u0062arge_in","x":{"type":"type"}}',
    ],
)
def test_quotes_and_colons_in_strings_do_not_look_like_keys(frame: str) -> None:
    assert isinstance(codec.decode(frame), BargeIn)


@pytest.mark.parametrize("depth", [codec.MAX_DEPTH + 1, codec.MAX_DEPTH + 2, 900, 10_000, 1_000_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    """(case I-01)"""
    assert refusal(nested(depth)).code == ErrorCode.INVALID_EVENT


@pytest.mark.parametrize("depth", [3, codec.MAX_DEPTH - 1, codec.MAX_DEPTH])
def test_nesting_up_to_the_limit_is_accepted(depth: int) -> None:
    assert isinstance(codec.decode(nested(depth)), UpdateSession)


def test_the_limit_on_depth_can_be_set() -> None:
    error = refusal(nested(5), max_depth=4)
    assert (error.event_id, error.message) == ("e7", "nested deeper than 4 levels")


def test_large_integers_travel_through_free_fields() -> None:
    command = codec.decode(
        '{"type":"session.update","session":{"extra_body":{"seed":123456789012345678901234}}}'
    )
    assert isinstance(command, UpdateSession)
    assert json.loads(msgspec.json.encode(command.patch)) == command.patch


def test_over_long_audio_is_refused() -> None:
    frame = json.dumps({"type": "input_audio_buffer.append", "audio": "A" * 400, "event_id": "e7"})
    error = refusal(frame, max_audio_bytes=200)
    assert (error.code, error.event_id) == (ErrorCode.INVALID_AUDIO, "e7")
    assert codec.decode(frame, max_audio_bytes=300) == AppendAudio(audio=bytes(300), event_id="e7")


@given(st.binary(max_size=300))
def test_an_append_comes_through_whole(pcm: bytes) -> None:
    frame = json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})
    assert codec.decode(frame) == AppendAudio(audio=pcm)


# --------------------------------------------------------------------------- any frame at all

_TYPES = [
    "session.update",
    "input_audio_buffer.append",
    "conversation.item.create",
    "response.create",
    "playback.ack",
]
_KEYS = [
    "session",
    "audio",
    "item",
    "response",
    "event_id",
    "client_event_seq",
    "type",
    "content",
    "role",
    "input",
]
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["message", "user", "input_text", "function_call_output", "AAAA"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
)
_EVENTS = st.builds(
    lambda name, values: json.dumps(values | {"type": name}),
    st.sampled_from(_TYPES),
    st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=5),
)


@given(st.binary(max_size=60) | st.text(max_size=60) | _EVENTS, st.booleans())
def test_any_frame_is_a_command_or_one_error(frame: str | bytes, extended: bool) -> None:
    outcome = _outcome(frame, extended)
    if isinstance(outcome, ProtocolError):
        assert ErrorCode(outcome.code) in ERROR_CLASSES
        (outcome.event_id or "").encode()
    else:
        assert outcome.event_id != ""


def _outcome(frame: str | bytes, extended: bool) -> Command | ProtocolError:
    try:
        return codec.decode(frame, extended=extended)
    except ProtocolError as error:
        return error


# --------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_body_begins_with_its_type_and_its_id(event: Event) -> None:
    body = codec.encode_body(event, "event_1")
    start = f'{{"type":"{kind_of(event).type}","event_id":"event_1"'
    assert body.startswith(start.encode())
    assert json.loads(body)["event_id"] == "event_1"


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_body_holds_the_whole_event(event: Event) -> None:
    values = json.loads(codec.encode_body(event, "event_1"))
    del values["event_id"]
    assert msgspec.convert(values, type(event)) == event


@pytest.mark.parametrize(
    "event", [event for event in EVENTS if kind_of(event).official], ids=lambda event: type(event).__name__
)
def test_official_events_are_valid(event: Event) -> None:
    """(cases D-15 and I-09)"""
    check_server_event(json.loads(codec.encode_body(event, "event_1")))


@given(st.binary(max_size=300), st.integers(0, 50), st.integers(0, 50))
def test_audio_by_template_is_what_the_encoder_would_write(pcm: bytes, output: int, content: int) -> None:
    delta = OutputAudioDelta(
        response_id="resp_1", item_id="item_1", output_index=output, content_index=content, pcm=pcm
    )
    expected = {**json.loads(msgspec.json.encode(delta)), "event_id": "event_1"}
    assert json.loads(codec.encode_body(delta, "event_1")) == expected


@given(st.text())
def test_any_text_survives(text: str) -> None:
    delta = OutputTranscriptDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=text)
    assert json.loads(codec.encode_body(delta, "event_1"))["delta"] == text


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_number_and_duplex_object_are_spliced_in(event: Event) -> None:
    body, duplex = codec.encode_body(event, "event_1"), codec.encode_duplex(DUPLEX)
    plain, extra = json.loads(body), json.loads(duplex)
    assert json.loads(codec.join(body, duplex, 12)) == plain | {"duplex": extra, "server_event_seq": 12}
    assert json.loads(codec.join(body, None, 12)) == plain | {"server_event_seq": 12}
    assert json.loads(codec.join(body, duplex, None)) == plain | {"duplex": extra}
    assert codec.join(body, None, None) == codec.join(body, b"", None) == body


@given(st.binary(max_size=64))
def test_audio_is_taken_out_of_its_event_and_nothing_else(pcm: bytes) -> None:
    """What remains is the event with an empty delta, as connections that play elsewhere get it."""

    def body_of(audio: bytes) -> bytes:
        delta = OutputAudioDelta(
            response_id="resp_1", item_id="item_1", output_index=0, content_index=0, pcm=audio
        )
        return codec.encode_body(delta, "event_1")

    assert codec.take_audio(body_of(pcm)) == (pcm, body_of(b""))
