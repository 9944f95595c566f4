"""Server-sent events out of bytes that arrive in any pieces.

Owns: lines, comments, the data of an event (the WHATWG's HTML standard, section 9.2).
Does not own: what the data mean (``chat``); names, ids and retry times, which chat completions do not use.
Here because: a server's events and the pieces in which the network delivers them have nothing in common.
"""

from __future__ import annotations

import re
from typing import Final

#: An event larger than this is no event of a chat completion.
MOST_BYTES: Final = 2**20

_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


class EventReader:
    """Feed bytes, get the data of every event that they completed. One per stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        #: The bytes until now end with a carriage return; a line feed after it belongs to it.
        self._after_return = False

    def feed(self, piece: bytes) -> list[str]:
        """Raises ``ValueError`` for an event over ``MOST_BYTES`` or data that are not UTF-8."""
        if not piece:
            return []
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(self._rest + piece)
        events = [data for line in lines if (data := self._line(line)) is not None]
        if self._size + len(self._rest) > MOST_BYTES:
            raise ValueError(f"an event of more than {MOST_BYTES} bytes")
        return events

    def _line(self, line: bytes) -> str | None:
        """The data of the event that ``line`` ends, if it ends one."""
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data).decode() if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
        return None
