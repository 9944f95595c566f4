"""Function tools that a session or a response offers to its model.

Owns: ``Tool``, ``ToolChoice``, reading and writing them.
Does not own: calls and their results (``session.tools``).
Here because: session and response take the same two fields.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .codes import ErrorCode
from .fields import Fields

_MODES = ("none", "auto", "required")


class Tool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """``parameters`` is a JSON schema of any dialect (``$schema`` included); the model gets it as it came."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class NamedTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """The model must call this function."""

    name: str


ToolChoice = Literal["none", "auto", "required"] | NamedTool


def read_tools(fields: Fields, key: str) -> tuple[Tool, ...] | None:
    """The tools of field ``key``; None when missing. Raises ``ProtocolError`` (``tools[0].name``)."""
    entries = fields.objects(key)
    return None if entries is None else tuple(_read_tool(entry) for entry in entries)


def read_tool_choice(fields: Fields, key: str) -> ToolChoice | None:
    """``none``, ``auto``, ``required``, or one function by name."""
    if not isinstance(fields.get(key), dict):
        return fields.choice(key, _MODES)  # type: ignore[return-value]  # choice returns one of _MODES
    choice = fields.required_object(key)
    _require_function(choice)
    return NamedTool(choice.required_identifier("name"))


def _read_tool(fields: Fields) -> Tool:
    _require_function(fields)
    parameters = fields.object("parameters")
    return Tool(
        name=fields.required_identifier("name"),
        description=fields.string("description"),
        parameters=None if parameters is None else parameters.values,
    )


def _require_function(fields: Fields) -> None:
    if fields.get("type") == "mcp":
        raise fields.refuse("type", "remote tool servers are not served; use function", ErrorCode.UNSUPPORTED)
    fields.required_choice("type", ("function",))
