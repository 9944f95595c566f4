"""Finding out that a connection takes no byte although some wait for it.

Owns: when a transport counts as stalled (``transport.send_timeout_s``).
Does not own: what follows (``writer``), peers that say nothing (``serving.keepalive``).
Here because: a peer may answer pings, or its proxy may, and read nothing.

One timer at a time, and none while nothing is buffered: a timer for every write would cost more than the
write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

#: The transport is looked at so many times within the timeout, so a stall is found at most a quarter late.
_LOOKS = 4


class Watchdog:
    """Calls ``stalled`` once, when nothing left the transport for ``timeout_s`` while ``buffered()`` was
    not 0.

    ``timeout_s`` 0: never.
    """

    __slots__ = ("_buffered", "_loop", "_moved", "_moved_at", "_stalled", "_timeout_s", "_timer", "_written")

    def __init__(self, timeout_s: float, buffered: Callable[[], int], stalled: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._buffered = buffered
        self._stalled = stalled
        self._timer: asyncio.TimerHandle | None = None
        self._written = 0
        #: Most bytes known to have left, counted from when the timer was set, and when that was noticed.
        self._moved = 0
        self._moved_at = 0.0

    def wrote(self, frames: Sequence[bytes]) -> None:
        """``frames`` were handed to the transport. Bytes are counted only while some wait there."""
        if self._timer is not None:
            self._written += sum(map(len, frames))
        elif self._timeout_s and (buffered := self._buffered()):
            self._written = 0
            self._moved = -buffered
            self._moved_at = self._loop.time()
            self._timer = self._loop.call_later(self._timeout_s / _LOOKS, self._look)

    def stop(self) -> None:
        """The last call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._stalled = _nobody_asks  # it was bound to whoever holds this: a cycle (case C-14)

    def _look(self) -> None:
        self._timer = None
        buffered = self._buffered()
        if not buffered:
            return
        moved, now = self._written - buffered, self._loop.time()
        if moved > self._moved:
            self._moved, self._moved_at = moved, now
        elif now - self._moved_at >= self._timeout_s:
            self._stalled()
            return
        self._timer = self._loop.call_later(self._timeout_s / _LOOKS, self._look)


def _nobody_asks() -> None:
    """Nobody writes any more."""
