"""The options of one response: read from either shape, laid over the session for that response only."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import ULAW_8K
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.items import FunctionCallOutput, InputText, ItemReference, Message, Role
from counterpoint.protocol.response_options import ResponseOptions, read_response_options
from counterpoint.protocol.tools import Tool

SESSION = SessionConfig(instructions="be brief", max_output_tokens=9, tools=(Tool("clock"),))


def read(values: dict[str, Any], *, extended: bool = False) -> ResponseOptions:
    return read_response_options(values, extended=extended)


def test_nothing_asked_is_the_session_as_it_is() -> None:
    assert read({}) == ResponseOptions()
    assert read({"conversation": "auto", "voice": None}) == ResponseOptions()
    assert ResponseOptions().over(SESSION) == SESSION


def test_the_official_shape() -> None:
    options = read(
        {
            "instructions": "sing",
            "output_modalities": ["text"],
            "audio": {"output": {"voice": "cedar", "format": {"type": "audio/pcmu"}}},
            "tools": [],
            "tool_choice": "none",
            "max_output_tokens": "inf",
            "metadata": {"a": "b", "n": 5},
            "conversation": "none",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "item_reference", "id": "item_1"},
                {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
            ],
        }
    )
    assert options == ResponseOptions(
        instructions="sing",
        output_modalities=("text",),
        voice="cedar",
        format=ULAW_8K,
        tools=(),
        tool_choice="none",
        max_output_tokens=None,
        metadata={"a": "b", "n": 5},
        out_of_band=True,
        input=(
            Message(role=Role.USER, content=(InputText("hi"),)),
            ItemReference("item_1"),
            FunctionCallOutput(call_id="call_1", output="noon"),
        ),
    )


def test_the_beta_shape() -> None:
    options = read(
        {
            "modalities": ["audio", "text"],
            "voice": "cedar",
            "output_audio_format": "g711_ulaw",
            "max_response_output_tokens": 5,
            "temperature": 1,
        }
    )
    assert options == ResponseOptions(
        output_modalities=("audio",), voice="cedar", format=ULAW_8K, max_output_tokens=5
    )


def test_options_hold_for_one_response_only() -> None:
    """(invariant 87)"""
    options = ResponseOptions(
        instructions="", voice="cedar", format=ULAW_8K, tools=(), tool_choice="auto", max_output_tokens=None
    )
    config = options.over(SESSION)
    assert (config.instructions, config.tools, config.max_output_tokens) == ("", (), None)
    assert (config.audio.output.voice, config.audio.output.format) == ("cedar", ULAW_8K)
    assert config.audio.input == SESSION.audio.input
    unchanged = {"instructions": "be brief", "tools": (Tool("clock"),), "max_output_tokens": 9}
    assert msgspec.structs.replace(config, audio=SESSION.audio, **unchanged) == SESSION


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"conversation": "other"}, "response.conversation"),
        ({"metadata": []}, "response.metadata"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]},
            "response.input[0].output",
        ),
        ({"input": {}}, "response.input"),
        ({"audio": {"output": {"format": {"type": "mp3"}}}}, "response.audio.output.format.type"),
        (
            {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 8000}}}},
            "response.audio.output.format.rate",
        ),
        ({"output_audio_format": "mp3"}, "response.output_audio_format"),
        ({"max_output_tokens": 1.5}, "response.max_output_tokens"),
    ],
)
def test_the_field_at_fault_is_named(values: dict[str, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read(values)
    assert refused.value.param == param
