"""Function tools and the choice among them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import Fields
from counterpoint.protocol.tools import NamedTool, Tool, read_tool_choice, read_tools


def test_a_schema_of_any_dialect_is_kept_as_it_came() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}
    values = {"type": "function", "name": "clock", "description": "tells", "parameters": schema}
    tools = read_tools(Fields({"tools": [values, {"type": "function", "name": "bare"}]}), "tools")
    assert tools == (Tool("clock", "tells", schema), Tool("bare"))
    assert msgspec.to_builtins(tools)[0] == values


def test_missing_tools_are_not_no_tools() -> None:
    assert read_tools(Fields({}), "tools") is None
    assert read_tools(Fields({"tools": []}), "tools") == ()


@pytest.mark.parametrize(
    ("tool", "code", "param"),
    [
        ({"name": "a"}, ErrorCode.INVALID_EVENT, "tools[0].type"),
        ({"type": "retrieval", "name": "a"}, ErrorCode.INVALID_EVENT, "tools[0].type"),
        ({"type": "mcp", "server_label": "a"}, ErrorCode.UNSUPPORTED, "tools[0].type"),
        ({"type": "function"}, ErrorCode.INVALID_EVENT, "tools[0].name"),
        ({"type": "function", "name": ""}, ErrorCode.INVALID_EVENT, "tools[0].name"),
        ({"type": "function", "name": "a", "parameters": []}, ErrorCode.INVALID_EVENT, "tools[0].parameters"),
        ("clock", ErrorCode.INVALID_EVENT, "tools[0]"),
    ],
)
def test_what_is_no_function_is_refused(tool: Any, code: ErrorCode, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_tools(Fields({"tools": [tool]}), "tools")
    assert (refused.value.code, refused.value.param) == (code, param)


@pytest.mark.parametrize("choice", ["none", "auto", "required", None])
def test_choices_by_word(choice: str | None) -> None:
    assert read_tool_choice(Fields({"c": choice}), "c") == choice


def test_a_choice_by_name() -> None:
    assert read_tool_choice(Fields({"c": {"type": "function", "name": "clock"}}), "c") == NamedTool("clock")


@pytest.mark.parametrize(
    ("choice", "param"),
    [("any", "c"), (5, "c"), ({"name": "x"}, "c.type"), ({"type": "function"}, "c.name")],
)
def test_other_choices_are_refused(choice: Any, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_tool_choice(Fields({"c": choice}), "c")
    assert refused.value.param == param
