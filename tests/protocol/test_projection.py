"""What each kind of connection is shown of an event."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from counterpoint.protocol import beta as beta_shape
from counterpoint.protocol import codec, projection
from counterpoint.protocol.audio import AudioFormat, Encoding
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.config import AudioConfig, AudioInput, AudioOutput, SessionConfig, render
from counterpoint.protocol.events import (
    Event,
    ItemAdded,
    ItemDone,
    OutputAudioDelta,
    OutputItemDone,
    ResponseDone,
    SessionCreated,
    SessionExpired,
    SessionUpdated,
)
from counterpoint.protocol.tools import NamedTool

from .examples import DUPLEX, EVENTS, ITEMS, LIVE, RESPONSE
from .schemas import BETA_SERVER_EVENTS, check_server_event


def shown(event: Event, *, extended: bool = False, beta: bool = False) -> dict[str, Any] | None:
    body = codec.encode_body(event, "event_1")
    frame = projection.session_frame(
        kind_of(event), body, codec.encode_duplex(DUPLEX), 12, extended=extended, beta=beta
    )
    return None if frame is None else json.loads(frame)


def must_be_shown(event: Event, *, extended: bool = False, beta: bool = False) -> dict[str, Any]:
    values = shown(event, extended=extended, beta=beta)
    assert values is not None
    return values


ANY = pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)

#: Formats and settings that only extended connections know.
UNUSUAL = SessionConfig(
    audio=AudioConfig(
        AudioInput(AudioFormat(Encoding.PCM16, 16_000)), AudioOutput(AudioFormat(Encoding.FLOAT32, 24_000))
    ),
    extra_body={"secret knob": 1},
)


# --------------------------------------------------------------------------- extended


@ANY
def test_extended_connections_get_everything_untouched(event: Event) -> None:
    body = json.loads(codec.encode_body(event, "event_1"))
    assert must_be_shown(event, extended=True) == body | {
        "duplex": json.loads(codec.encode_duplex(DUPLEX)),
        "server_event_seq": 12,
    }


@ANY
def test_what_is_not_changed_is_not_copied(event: Event) -> None:
    """An event is encoded once, whoever reads it."""
    body = codec.encode_body(event, "event_1")
    assert projection.connection_frame(kind_of(event), body, extended=True, beta=False) is body


# --------------------------------------------------------------------------- stock


@ANY
def test_stock_connections_get_official_events_only(event: Event) -> None:
    values = shown(event)
    assert (values is not None) == (kind_of(event).official or isinstance(event, SessionExpired))
    if values is not None:
        assert "duplex" not in values
        assert values["server_event_seq"] == 12
        check_server_event(values)


def test_stock_connections_are_told_of_an_expiry_by_an_error() -> None:
    """They know no ``session.expired`` (wire contract, section 2)."""
    expired = must_be_shown(SessionExpired(session_id="sess_1", reason="max_duration"))
    assert (expired["type"], expired["event_id"]) == ("error", "event_1")
    assert expired["error"]["code"] == "session_expired"
    assert "max_duration" in expired["error"]["message"]


@pytest.mark.parametrize(
    "event",
    [
        SessionCreated(
            session=render(UNUSUAL, extended=True, live=LIVE), resume_token="t", attachment_generation=3
        ),
        SessionUpdated(session=render(UNUSUAL, extended=True, live=LIVE)),
    ],
)
def test_stock_connections_see_the_official_part_of_a_session(event: Event) -> None:
    values = must_be_shown(event)
    assert values["session"] == render(UNUSUAL, extended=False, live=LIVE)
    check_server_event(values)


def test_everyone_gets_what_a_later_resume_needs() -> None:
    event = SessionCreated(
        session=render(UNUSUAL, extended=True, live=LIVE), resume_token="t", attachment_generation=3
    )
    for extended in (False, True):
        values = must_be_shown(event, extended=extended)
        assert (values["resume_token"], values["attachment_generation"]) == ("t", 3)


def test_stock_connections_see_metadata_that_is_text() -> None:
    odd = msgspec.structs.replace(
        RESPONSE,
        metadata={"topic": "time", "depth": 3, "tags": ["a"]},
        audio={"output": {"format": {"type": "pcm_f32le", "rate": 24_000}, "voice": "v"}},
    )
    event = ResponseDone(response=odd)
    stock = must_be_shown(event)["response"]
    assert (stock["metadata"], stock["audio"]["output"]) == (
        {"topic": "time"},
        {"format": None, "voice": "v"},
    )
    assert must_be_shown(event, extended=True)["response"]["metadata"] == odd.metadata
    check_server_event(must_be_shown(event))


# --------------------------------------------------------------------------- beta


@ANY
@pytest.mark.parametrize("extended", [False, True])
def test_beta_connections_get_beta_names(event: Event, extended: bool) -> None:
    values = shown(event, extended=extended, beta=True)
    if values is not None and kind_of(event).official:
        assert values["type"] in BETA_SERVER_EVENTS | {
            # The beta gained these late, and its clients pass over what they do not know.
            "conversation.item.input_audio_transcription.delta",
            *(beta_shape.ABSENT_EVENTS if extended else ()),
        }
        assert values["event_id"] == "event_1"


def test_a_renamed_event_is_otherwise_the_same() -> None:
    event = OutputAudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, pcm=b"\x01\x00")
    assert must_be_shown(event, beta=True) == must_be_shown(event) | {"type": "response.audio.delta"}


def test_the_beta_has_one_event_for_a_new_item() -> None:
    """But the numbers of an extended connection have no holes (wire contract, section 1)."""
    event = ItemDone(previous_item_id=None, item=ITEMS[1])
    assert shown(event, beta=True) is None
    assert must_be_shown(event, beta=True, extended=True)["type"] == "conversation.item.done"


def test_items_have_beta_content_types() -> None:
    item = must_be_shown(OutputItemDone(response_id="r", output_index=0, item=ITEMS[2]), beta=True)["item"]
    assert [part["type"] for part in item["content"]] == ["audio", "text"]
    call = must_be_shown(OutputItemDone(response_id="r", output_index=0, item=ITEMS[3]), beta=True)["item"]
    assert call["name"] == "clock"


def test_a_session_has_the_beta_shape() -> None:
    config = SessionConfig(max_output_tokens=5)
    session = must_be_shown(SessionUpdated(session=render(config, extended=True, live=LIVE)), beta=True)[
        "session"
    ]
    assert not {"audio", "output_modalities", "max_output_tokens", "epoch"} & set(session)
    assert session["modalities"] == ["text", "audio"]
    assert (session["voice"], session["speed"]) == ("default", 1.0)
    assert (session["input_audio_format"], session["output_audio_format"]) == ("pcm16", "pcm16")
    assert session["turn_detection"]["type"] == "server_vad"
    assert session["input_audio_transcription"] is None
    assert session["max_response_output_tokens"] == 5


def test_the_beta_names_the_tool_that_must_be_called() -> None:
    config = SessionConfig(tool_choice=NamedTool("clock"))
    event = SessionUpdated(session=render(config, extended=True, live=LIVE))
    assert must_be_shown(event, beta=True)["session"]["tool_choice"] == "clock"
    assert must_be_shown(event)["session"]["tool_choice"] == {"type": "function", "name": "clock"}


def test_a_response_has_the_beta_shape() -> None:
    response = must_be_shown(ResponseDone(response=RESPONSE), beta=True)["response"]
    assert (response["modalities"], response["voice"]) == (["text", "audio"], "alloy")
    assert (response["output_audio_format"], response["max_output_tokens"]) == ("pcm16", "inf")
    assert [part["type"] for part in response["output"][0]["content"]] == ["audio", "text"]
    assert response["usage"]["total_tokens"] == 7


def test_the_beta_has_no_images() -> None:
    item = must_be_shown(ItemAdded(previous_item_id=None, item=ITEMS[1]), beta=True)["item"]
    assert [part["type"] for part in item["content"]] == ["input_text", "input_audio"]
