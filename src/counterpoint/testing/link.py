"""A connection in memory, both ends of it, with the buffers and the ends that real ones have.

Owns: ``MemoryLink``: frames in flight either way, back-pressure, every way in which a connection ends.
Does not own: when anything is delivered (whoever drives it: nothing moves by itself), what frames say.
Here because: a cut after any frame, a reader that is stuck and a peer that vanished without a word must be
ordinary events of a test, on a virtual clock.

The server's end implements ``delivery.writer.Link``. The peer's end is the methods under "the peer": what it
sends arrives when ``arrive`` says so, and it reads when ``read`` is called.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: What a kernel and the path hold beyond the transport's own buffer.
PATH_BYTES = 32 * 1024
#: The transport's buffer is full above the first, and takes more again below the second.
HIGH_WATER = 16 * 1024
LOW_WATER = HIGH_WATER // 4
#: Frames that arrived and were not read by the server: more stay in flight.
WINDOW_FRAMES = 64


class Sent(NamedTuple):
    """A frame on its way to the peer. ``stamp``: the link's ``stamp()`` in the moment it was written."""

    payload: bytes
    stamp: int


class Closed(NamedTuple):
    """The other end is gone. ``code`` is that of its closing handshake, None if there was none."""

    code: int | None
    reason: str = ""


class MemoryLink:
    """One connection. ``stamp()`` marks written frames with what the driver counts in; ``wrote`` sees both.

    A peer that does not answer the closing handshake is reset after ``close_timeout_s`` (0: never).
    """

    def __init__(
        self,
        *,
        stamp: Callable[[], int] = lambda: 0,
        wrote: Callable[[bytes, int], object] = lambda frame, stamp: None,
        path_bytes: int = PATH_BYTES,
        close_timeout_s: float = 0.0,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stamp = stamp
        self._wrote = wrote
        self._path_bytes = path_bytes
        self._close_timeout_s = close_timeout_s
        self._down: deque[Sent | Closed] = deque()
        self._down_bytes = 0
        self._up: deque[str | Closed] = deque()
        self._arrived: deque[str | Closed] = deque()
        self._reading: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._closing = False
        self._last_byte = self._loop.time()
        #: Nothing arrives any more, either way, and nobody is told.
        self.vanished = False

    # ------------------------------------------------------------------ the server: delivery.writer.Link

    def write(self, frames: Sequence[bytes]) -> None:
        if self._closing or self.lost:
            return
        stamp = self._stamp()
        for frame in frames:
            self._wrote(frame, stamp)
            self._down.append(Sent(frame, stamp))
            self._down_bytes += len(frame)

    async def drain(self) -> None:
        self._raise_if_lost()
        if self.buffered() <= HIGH_WATER:
            return
        self._room = self._loop.create_future()
        await self._room
        self._raise_if_lost()

    def buffered(self) -> int:
        return 0 if self.lost else max(0, self._down_bytes - self._path_bytes)

    async def close(self, code: int, reason: str = "") -> None:
        if not self._closing and not self.lost:
            self._closing = True
            self._down.append(Closed(code, reason))
            if self._close_timeout_s:
                self._loop.call_later(self._close_timeout_s, self.abort)
        await asyncio.shield(self._gone)

    def abort(self) -> None:
        """What had left the transport still arrives; the rest is lost."""
        if self.lost:
            return
        while self._down and self._down_bytes > self._path_bytes:
            self._drop_newest()
        if self._down and isinstance(self._down[-1], Closed):
            self._down.pop()
        self._down.append(Closed(None))
        self._lose()

    # ------------------------------------------------------------------ the server: reading

    async def receive(self) -> str | Closed:
        """The next frame that arrived; ``Closed`` when there will be none any more."""
        while not self._arrived:
            if self.lost:
                return Closed(None)
            self._reading = self._loop.create_future()
            await self._reading
        frame = self._arrived.popleft()
        if isinstance(frame, Closed):
            self._lose()
        return frame

    def ping(self) -> None:
        """A peer that is there and has nothing to read before it answers at once."""
        if not self.vanished and not self._down:
            self._last_byte = self._loop.time()

    def seconds_since_bytes(self) -> float:
        return self._loop.time() - self._last_byte

    @property
    def lost(self) -> bool:
        """Nothing can be sent any more, by either end."""
        return self._gone.done()

    @property
    def closing(self) -> bool:
        """The server is done with it, or it is lost."""
        return self._closing or self.lost

    # ------------------------------------------------------------------ the peer

    @property
    def readable(self) -> int:
        """Things that wait for the peer."""
        return 0 if self.vanished else len(self._down)

    @property
    def sending(self) -> int:
        """Things of the peer that have not arrived."""
        return 0 if self.vanished else len(self._up)

    def send(self, frame: str) -> None:
        """Put a frame on its way to the server."""
        if not self.lost:
            self._up.append(frame)

    def send_close(self, code: int | None) -> None:
        """Begin the closing handshake: 1005 stands for a close without a code."""
        if not self.lost:
            self._up.append(Closed(code))

    def arrive(self) -> str | Closed | None:
        """The oldest thing on its way reaches the server, and is returned. None: nothing could."""
        if not self.sending or len(self._arrived) >= WINDOW_FRAMES:
            return None
        oldest = self._up.popleft()
        self._arrived.append(oldest)
        self._last_byte = self._loop.time()
        self._tell_reader()
        return oldest

    def read(self) -> Sent | Closed | None:
        """The peer takes the oldest thing that was sent to it; None: there is nothing."""
        if not self.readable:
            return None
        oldest = self._down.popleft()
        self._last_byte = self._loop.time()
        if isinstance(oldest, Sent):
            self._down_bytes -= len(oldest.payload)
            if self._room is not None and self.buffered() <= LOW_WATER:
                self._tell_room()
        else:
            self._lose()  # the peer answers the handshake, or heard of the reset
        return oldest

    def reset(self) -> None:
        """The network ends the connection: what was in flight is lost, and both ends hear of it."""
        if not self.lost:
            self._down.clear()
            self._down_bytes = 0
            self._down.append(Closed(None))
            self._lose()

    def vanish(self) -> None:
        """The peer is gone, and the server cannot know: half-open."""
        self.vanished = True
        self._up.clear()

    # ------------------------------------------------------------------ parts

    def _drop_newest(self) -> None:
        newest = self._down.pop()
        if isinstance(newest, Sent):
            self._down_bytes -= len(newest.payload)

    def _lose(self) -> None:
        if self.lost:
            return
        self._up.clear()
        self._gone.set_result(None)
        self._tell_room()
        self._tell_reader()

    def _tell_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self._room = None

    def _tell_reader(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)
        self._reading = None

    def _raise_if_lost(self) -> None:
        if self.lost:
            raise ConnectionResetError("the connection is lost")
