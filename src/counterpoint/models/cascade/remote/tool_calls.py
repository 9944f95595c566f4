"""Function calls out of the pieces in which servers write them.

Owns: which piece belongs to which call, and when a call is whole.
Does not own: the stream (``chat``), the call's item and its id on the wire (``session``).
Here because: a client acts upon a call, so half of one must never reach it.

A piece names its call by ``index``; servers that write calls whole leave it out, or repeat it with another
id.
"""

from __future__ import annotations

from typing import Any

import msgspec

from counterpoint.plugins.contract import ToolCall


class FunctionDelta(msgspec.Struct):
    name: str | None = None
    #: A piece of JSON text; an object from servers that write calls whole.
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct):
    function: FunctionDelta
    index: int | None = None
    id: str | None = None


class CallReader:
    """Feed pieces, get whole calls. One per answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def feed(self, delta: CallDelta) -> None:
        call = self._call_of(delta)
        call.id = call.id or delta.id
        call.name += delta.function.name or ""
        match delta.function.arguments:
            case dict() as whole:
                call.arguments = msgspec.json.encode(whole).decode()
            case str() as piece:
                call.arguments += piece
            case None:
                pass

    def finish(self) -> list[ToolCall]:
        """All calls, in the order in which they began. Raises ``ValueError`` when one is not whole."""
        return [ToolCall(index, *call.whole()) for index, call in enumerate(self._calls)]

    def _call_of(self, delta: CallDelta) -> _Call:
        known = [call for call in self._calls if delta.index in (None, call.index)]
        if known and (not delta.id or known[-1].id in (None, delta.id)):
            return known[-1]
        self._calls.append(_Call(delta.index))
        return self._calls[-1]


class _Call:
    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.arguments = ""

    def whole(self) -> tuple[str, str]:
        """Name and arguments. Servers write no arguments as "" or as an empty object."""
        arguments = self.arguments.strip() or "{}"
        if not self.name:
            raise ValueError("a function call without a name")
        if not isinstance(msgspec.json.decode(arguments), dict):
            raise ValueError("the arguments of a function call are no object")
        return self.name, arguments
