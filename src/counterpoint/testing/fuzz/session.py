"""One fuzzed session: the real connection, session and scripted model, with a socket that is two lists.

Owns: a case and what becomes of it; the socket and the link of a connection in memory.
Does not own: which frames (``frames``, ``mutation``), judging (``oracle``).
Here because: a million frames over TCP take an hour and find nothing more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import msgspec
from aiohttp import WSMsgType

from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Dialect
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.serving.connection import Connection, Handshake
from counterpoint.serving.settings import TransportSettings
from counterpoint.testing.virtual_time import VirtualLoop

from .mutation import Frame

#: Turns of the loop after which something that never rests is left to itself.
_MOST_TURNS = 5000

_decode = msgspec.json.Decoder().decode


class Step(NamedTuple):
    """Frames in one segment, then ``wait_ms`` until the next ones."""

    frames: tuple[Frame, ...]
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """What the connection is."""

    extended: bool = True
    beta: bool = False
    autostart: bool = True


@dataclass(slots=True)
class Record:
    """What went in and what came out."""

    opening: Opening
    sent: list[Frame] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    closed: int | None = None  #: the server's close code; 0: without one
    #: Of each step: how many frames it had, and which events came before time passed.
    answers: list[tuple[int, slice]] = field(default_factory=list)


class _Message(NamedTuple):
    type: WSMsgType
    data: Any


class _Socket:
    """The reading side of ``aiohttp``'s WebSocket."""

    def __init__(self) -> None:
        self._frames: deque[_Message] = deque()
        self._waiting: asyncio.Future[None] | None = None

    def put(self, message: _Message) -> None:
        self._frames.append(message)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> _Message:
        while not self._frames:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._frames.popleft()

    def exception(self) -> None:
        """Nothing ever goes wrong with it."""


class _Link:
    """The writing side: everything is taken at once."""

    def __init__(self, record: Record, socket: _Socket) -> None:
        self._record = record
        self._socket = socket

    def pulse(self) -> _Link:
        """What the keepalive looks at: this peer is always there."""
        return self

    def write(self, frames: Sequence[bytes]) -> None:
        if self._record.closed is None:
            self._record.received += map(_decode, frames)

    async def drain(self) -> None:
        if self._record.closed is not None:
            raise ConnectionResetError

    def buffered(self) -> int:
        return 0

    async def close(self, code: int, reason: str = "") -> None:
        if self._record.closed is None:
            self._record.closed = code
            self._socket.put(_Message(WSMsgType.CLOSED, None))

    async def end(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._record.closed is None:
            self._record.closed = 0

    def ping(self) -> None:
        """A peer that is there says so."""

    def seconds_since_bytes(self) -> float:
        return 0.0


class FuzzedSession:
    """One connection to a server on the running ``VirtualLoop``."""

    def __init__(self, manager: SessionManager, ids: IdSource, opening: Opening) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self.record = Record(opening)
        self._socket = _Socket()
        link = _Link(self.record, self._socket)
        connection = Connection(
            manager,
            cast("Any", self._socket),
            cast("Any", link),
            TransportSettings(handshake_timeout_s=0.0),
            ids,
            admit=lambda: None,
        )
        request = OpenRequest(Dialect(opening.extended, opening.beta), duplex=opening.extended)
        self._task = loop.create_task(connection.run(Handshake(request, autostart=opening.autostart)))

    async def play(self, step: Step) -> None:
        """Send the frames, let the server do all that it can do now, then let time pass."""
        before = len(self.record.received)
        for frame in step.frames:
            self.record.sent.append(frame)
            kind = WSMsgType.TEXT if isinstance(frame, str) else WSMsgType.BINARY
            self._socket.put(_Message(kind, frame))
        await self.settle()
        self.record.answers.append((len(step.frames), slice(before, len(self.record.received))))
        if step.wait_ms:
            await asyncio.sleep(step.wait_ms / 1000)
            await self.settle()

    async def settle(self) -> None:
        for _ in range(_MOST_TURNS):
            if self._loop.idle:
                return
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Close from the client's end, and wait for the connection's task."""
        self._socket.put(_Message(WSMsgType.CLOSE, 1000))
        await self._task
