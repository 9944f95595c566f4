"""A lock that is handed over in the order of asking.

Owns: that order.
Does not own: what the lock guards.
Here because: a thread that gives up an ordinary lock and asks again gets it before the one that
    waited, so a long answer of one session would starve the first word of another.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from types import TracebackType


class FairLock:
    """A context manager; not reentrant."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._held = False
        #: One locked lock per waiting thread, oldest first; unlocking it hands over ownership.
        self._waiting: deque[Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._waiting)

    def __enter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            ticket = Lock()
            ticket.acquire()
            self._waiting.append(ticket)
        ticket.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
