"""How late the event loop is.

Owns: measuring by a timer that should fire on time.
Does not own: why it is late.
Here because: a plugin that blocks the loop harms every session at once, and nothing else shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

INTERVAL_S = 0.1


class LoopLag:
    """Calls ``observe(seconds)`` for every tick; ``recent_s`` is the largest of the last second."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._recent = [0.0] * 10
        self._ticks = 0
        self._timer = self._loop.call_later(INTERVAL_S, self._tick, self._loop.time() + INTERVAL_S)

    @property
    def recent_s(self) -> float:
        return max(self._recent)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self, due: float) -> None:
        now = self._loop.time()
        lag = max(0.0, now - due)
        self._observe(lag)
        self._recent[self._ticks % len(self._recent)] = lag
        self._ticks += 1
        self._timer = self._loop.call_later(INTERVAL_S, self._tick, now + INTERVAL_S)
