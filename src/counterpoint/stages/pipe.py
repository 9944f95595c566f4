"""Messages between two processes: a socket pair, and shared memory for the large ones.

Owns: framing, pickling, which way a message takes.
Does not own: the processes (``process``, ``worker``).
Here because: both ends do the same.

A frame is its kind (one byte), its length (four) and its body. Both ends are the same program, so a body is a
pickle; the socket has no name, and nobody else can write to it.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from collections.abc import Callable
from typing import Any, Final, cast

from .shared_memory import Ring

_HEADER: Final = struct.Struct("<BI")
_PLACE: Final = struct.Struct("<II")

_MESSAGE: Final = 0  #: the body is the message
_SHARED: Final = 1  #: the body says where in shared memory the message is
_FREED: Final = 2  #: the oldest piece of shared memory was read

#: A message of more bytes goes through shared memory, as long as that has room.
LARGE_BYTES: Final = 32 * 1024
#: Shared memory of each direction.
RING_BYTES: Final = 4 * 1024 * 1024


class Pipe(asyncio.Protocol):
    """``out`` is written by this end, ``into`` by the other. ``ended`` is called once, at the end."""

    def __init__(
        self, out: Ring, into: Ring, received: Callable[[Any], None], ended: Callable[[], None]
    ) -> None:
        self._out = out
        self._into = into
        self._received = received
        self._ended = ended
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def send(self, message: object) -> None:
        """Into a pipe that ended: nothing."""
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        start = self._out.write(body) if len(body) > LARGE_BYTES and self._transport else None
        if start is None:
            self._write(_MESSAGE, body)
        else:
            self._write(_SHARED, _PLACE.pack(start, len(body)))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # ------------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by name

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        at = 0
        while len(self._buffer) >= at + _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer, at)
            end = at + _HEADER.size + length
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[at + _HEADER.size : end])
            at = end
            self._take(kind, body)
        del self._buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._out.close()
        self._into.close()
        self._ended()

    # ------------------------------------------------------------------

    def _take(self, kind: int, body: bytes) -> None:
        if kind == _FREED:
            self._out.freed()
            return
        if kind == _SHARED:
            body = self._into.read(*_PLACE.unpack(body))
            self._write(_FREED, b"")
        self._received(pickle.loads(body))

    def _write(self, kind: int, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(_HEADER.pack(kind, len(body)) + body)
