"""One byte budget over the event logs of all sessions.

Owns: who gives way when the logs of all sessions together are too large (wire contract, section 3).
Does not own: the bounds of one log (``log``).
Here because: sessions share a machine's memory and nothing else.
"""

from __future__ import annotations

import heapq
from typing import Protocol

from counterpoint.errors import ConfigurationError

#: An overflow makes room for this part of the budget, not for one entry: looking at every log to find the
#: largest must not be the price of each event while the budget is full.
_ROOM = 64


class Evictable(Protocol):
    """A log as the budget sees it."""

    @property
    def bytes_held(self) -> int: ...

    def evict_oldest(self) -> None: ...


class TotalBudget:
    """Bytes that all logs hold together: at most ``max_bytes`` after every change.

    Raises ``ConfigurationError`` if that is not positive.
    """

    __slots__ = ("_logs", "max_bytes", "used")

    def __init__(self, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ConfigurationError("journal.total_max_bytes", "must be positive")
        self.max_bytes = max_bytes
        #: In order of joining, so that logs of equal size give way in a fixed order.
        self._logs: dict[Evictable, None] = {}
        #: Bytes held now: written by the logs themselves, since a call for every event would cost more than
        #: it says.
        self.used = 0

    def join(self, log: Evictable) -> None:
        """``log`` may be asked to give way from now on."""
        self._logs[log] = None

    def leave(self, log: Evictable) -> None:
        self._logs.pop(log, None)

    def make_room(self) -> None:
        """Evict entries, each from the log that is the largest at that moment."""
        allowed = self.max_bytes - self.max_bytes // _ROOM
        largest = [(-log.bytes_held, place, log) for place, log in enumerate(self._logs)]
        heapq.heapify(largest)
        while self.used > allowed and largest[0][0]:
            _, place, log = largest[0]
            log.evict_oldest()
            heapq.heapreplace(largest, (-log.bytes_held, place, log))
