"""An asyncio event loop in which waiting costs nothing and every run is the same.

Owns: ``VirtualLoop`` and ``run``: time jumps to the next timer as soon as nothing is left to do now.
Does not own: randomness (seed it), sockets and threads (there are none: what would block is an error).
Here because: grace periods, timeouts and real-time pace are tested in milliseconds, exactly, and a schedule
found once can be found again.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")


class Deadlock(RuntimeError):
    """Everything waits and no timer is set: nothing can ever happen again."""


class _NoSelector:
    """Stands where the loop would wait for the world."""

    def __init__(self, advance: Callable[[float | None], None]) -> None:
        self._advance = advance

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._advance(timeout)
        return []


class _Timer(asyncio.TimerHandle):
    """A timer with a place in line: a heap alone does not keep the order of equal times."""

    __slots__ = ("_order",)

    def __init__(
        self, order: int, when: float, callback: Callable[..., object], args: Any, loop: Any, context: Any
    ):
        super().__init__(when, callback, args, loop, context)
        self._order = order

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, _Timer)
        return (self.when(), self._order) < (other.when(), other._order)


class VirtualLoop(asyncio.BaseEventLoop):
    """Starts at time 0. Callbacks run in the order in which they were scheduled, timers in the order of their
    times and, where these are equal, of their setting."""

    def __init__(self) -> None:
        super().__init__()
        self._set_time(0.0)
        self._order = itertools.count()
        self._selector = _NoSelector(self._jump)

    def time(self) -> float:
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(next(self._order), when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    @property
    def idle(self) -> bool:
        """Nothing is ready to run: asked by a running callback, nothing else would run before time passes."""
        return not self._ready  # type: ignore[attr-defined]

    def advance(self, seconds: float) -> None:
        """Jump, as a suspended machine does: timers in between fire late, all at once."""
        self._set_time(self._now + seconds)

    def _jump(self, timeout: float | None) -> None:
        if timeout is None:
            raise Deadlock("every task waits for something that nobody will do")
        # The timer's own time and not now + timeout: sums of floats would drift apart.
        self._set_time(max(self._now, self._scheduled[0].when()))  # type: ignore[attr-defined]

    def _set_time(self, now: float) -> None:
        """A timer may fire early by less than the resolution, so that is the next float: who finds that it is
        not yet time and waits for the rest would wait for ever, as no time passes by itself."""
        self._now = now
        self._clock_resolution = math.ulp(now)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no sockets to have events."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector, so nobody needs to be woken."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("threads would make a virtual run differ from the next one")


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run ``main`` to its end on a new ``VirtualLoop``; tasks that it leaves behind are cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
