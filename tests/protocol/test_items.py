"""Items: read from a client's JSON with the field at fault named, and shown in the official shape."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import Fields
from counterpoint.protocol.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    Message,
    OutputAudio,
    OutputText,
    Role,
    parse_input,
    parse_item,
)

from .examples import ITEMS


def parse(values: dict[str, Any]) -> Item:
    return parse_item(Fields(values, "item"))


def message(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": list(content)}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_what_is_shown_can_be_read_back(item: Item) -> None:
    shown = json.loads(msgspec.json.encode(item))
    assert shown["object"] == "realtime.item"
    assert msgspec.structs.replace(parse(shown), status=item.status) == item


def test_absent_parts_of_content_are_not_shown() -> None:
    assert msgspec.to_builtins(InputAudio(transcript="a")) == {"type": "input_audio", "transcript": "a"}
    assert msgspec.to_builtins(OutputAudio()) == {"type": "output_audio"}


def test_input_whose_transcript_is_not_known_yet_says_so() -> None:
    """The history of ``@openai/agents-realtime`` refuses an ``input_audio`` part without the key."""
    assert msgspec.to_builtins(InputAudio()) == {"type": "input_audio", "transcript": None}


def test_each_content_type_becomes_its_own_class() -> None:
    parts = (
        {"type": "input_text", "text": "t"},
        {"type": "input_audio", "audio": "AAEC", "transcript": None},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
    )
    item = parse(message(*parts))
    assert item == Message(
        role=Role.USER,
        content=(
            InputText("t"),
            InputAudio(b"\x00\x01\x02"),
            InputImage("data:image/png;base64,AA==", "low"),
        ),
    )


def test_beta_names_of_assistant_content_are_read() -> None:
    item = parse(
        message({"type": "text", "text": "t"}, {"type": "audio", "transcript": "a"}, role="assistant")
    )
    assert item == Message(role=Role.ASSISTANT, content=(OutputText("t"), OutputAudio(transcript="a")))


def test_an_id_that_the_client_chose_is_kept_and_a_status_is_not() -> None:
    values = message({"type": "input_text", "text": "t"}) | {"id": "mine", "status": "in_progress"}
    item = parse(values)
    assert (item.id, item.status) == ("mine", "completed")


def test_calls_and_their_outputs() -> None:
    call = parse({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"})
    assert call == FunctionCall(call_id="c", name="f", arguments="{}")
    output = parse({"type": "function_call_output", "call_id": "c", "output": ""})
    assert output == FunctionCallOutput(call_id="c", output="")


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({}, "item.type"),
        ({"type": "foo"}, "item.type"),
        ({"type": ["message"]}, "item.type"),
        ({"type": "message"}, "item.role"),
        ({"type": "message", "role": "user"}, "item.content"),
        (message(role="robot"), "item.role"),
        (message("hello"), "item.content[0]"),
        (message({"type": "input_text", "text": "a"}, {"type": "input_text"}), "item.content[1].text"),
        (message({"type": "input_text", "text": 5}), "item.content[0].text"),
        (message({"type": "output_text", "text": "a"}), "item.content[0].type"),
        (message({"type": "text", "text": "a"}), "item.content[0].type"),
        (message({"type": "input_audio", "audio": ""}, role="system"), "item.content[0].type"),
        (message({"type": "input_text", "text": "a"}, role="assistant"), "item.content[0].type"),
        (message({"type": None}), "item.content[0].type"),
        ({"type": "function_call", "arguments": "{}"}, "item.name"),
        ({"type": "function_call", "name": "f", "arguments": {}}, "item.arguments"),
        ({"type": "function_call_output", "output": "x"}, "item.call_id"),
        ({**message(), "id": 5}, "item.id"),
        ({**message(), "id": ""}, "item.id"),
        ({**message(), "id": "x" * 513}, "item.id"),
    ],
)
def test_what_is_malformed_is_named(values: dict[str, Any], param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse(values)
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_EVENT, param)


@pytest.mark.parametrize("output", [{"a": 1}, 5, None, [], True])
def test_an_output_is_a_string(output: Any) -> None:
    """(case G-02)"""
    with pytest.raises(ProtocolError) as refused:
        parse({"type": "function_call_output", "call_id": "c", "output": output})
    assert refused.value.param == "item.output"


def test_bad_audio_in_an_item_has_its_own_code() -> None:
    with pytest.raises(ProtocolError) as refused:
        parse(message({"type": "input_audio", "audio": "!!"}))
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_AUDIO, "item.content[0].audio")


@pytest.mark.parametrize(
    "name", ["mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"]
)
def test_known_items_that_we_do_not_serve_say_so(name: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse({"type": name})
    assert (refused.value.code, refused.value.param) == (ErrorCode.UNSUPPORTED, "item.type")


def test_the_input_of_a_response_may_refer_to_items() -> None:
    assert parse_input(Fields({"type": "item_reference", "id": "item_1"}, "input[0]")) == ItemReference(
        "item_1"
    )
    with pytest.raises(ProtocolError) as refused:
        parse_input(Fields({"type": "item_reference"}, "input[0]"))
    assert refused.value.param == "input[0].id"
