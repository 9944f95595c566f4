"""A connection's sending side that does exactly what a test wants.

Owns: ``FakeLink``: how much it takes, and when.
Does not own: sockets, framing (``serving``).
Here because: stuck, slow and broken connections must be made to order, on a virtual clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

#: As a transport's own (wire contract, section 3).
HIGH_WATER = 16 * 1024


class FakeLink:
    """Takes everything at once; with ``rate`` only so many bytes a second; nothing at all while ``stuck``."""

    def __init__(self, *, rate: float = 0.0, stuck: bool = False, silent: bool = False) -> None:
        self.frames: list[bytes] = []
        self.writes = 0
        self.largest_write = 0
        self.most_buffered = 0
        self.closed_with: tuple[int, str] | None = None
        self.aborted_at: float | None = None
        self._rate = rate
        self._stuck = stuck
        self._silent = silent  #: the peer does not answer a closing handshake
        self._held = 0
        self._gone = asyncio.Event()
        self._drained = asyncio.Event()

    def write(self, frames: Sequence[bytes]) -> None:
        if self._gone.is_set() or self.closed_with is not None:
            return
        size = sum(map(len, frames))
        self.frames += frames
        self.writes += 1
        self.largest_write = max(self.largest_write, size)
        if self._stuck or self._rate:
            if not self._held and self._rate:
                asyncio.get_running_loop().call_later(0.01, self._tick)
            self._held += size
            self.most_buffered = max(self.most_buffered, self._held)

    def _tick(self) -> None:
        """A hundredth of a second's worth of bytes leaves."""
        self.take(round(self._rate / 100))
        if self._held and self._rate:
            asyncio.get_running_loop().call_later(0.01, self._tick)

    def take(self, size: int) -> None:
        """The peer takes ``size`` bytes."""
        self._held = max(0, self._held - size)
        if self._held <= HIGH_WATER:
            self._drained.set()

    def unstick(self) -> None:
        self._stuck = False
        self.take(self._held)

    def lose(self) -> None:
        """The connection is lost: what waits for it hears of it."""
        self._gone.set()
        self._drained.set()

    async def drain(self) -> None:
        while self._held > HIGH_WATER and not self._gone.is_set():
            self._drained.clear()
            await self._drained.wait()
        if self._gone.is_set():
            raise ConnectionResetError("lost")

    def buffered(self) -> int:
        return 0 if self._gone.is_set() else self._held

    async def close(self, code: int, reason: str = "") -> None:
        if self._gone.is_set():
            raise ConnectionResetError("lost")
        self.closed_with = (code, reason)
        if self._silent or self._stuck:
            await self._gone.wait()

    def abort(self) -> None:
        self.aborted_at = asyncio.get_running_loop().time()
        self.lose()

    # ------------------------------------------------------------------ what arrived

    @property
    def events(self) -> list[dict[str, object]]:
        return [msgspec.json.decode(frame) for frame in self.frames]

    @property
    def numbers(self) -> list[object]:
        """``server_event_seq`` of every event; of those without one, the type."""
        return [event.get("server_event_seq", event["type"]) for event in self.events]
