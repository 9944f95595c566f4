"""One byte budget over the event logs of all sessions.

Owns: who gives way when the logs of all sessions together are too large (wire contract, section 3).
Does not own: the bounds of one log (``log``).
Here because: sessions share a machine's memory and nothing else.
"""

from __future__ import annotations

import heapq
from typing import Protocol

from counterpoint.errors import ConfigurationError


class Evictable(Protocol):
    """A log as the budget sees it."""

    @property
    def bytes_held(self) -> int: ...

    def evict_oldest(self) -> None: ...


class TotalBudget:
    """Bytes that all logs hold together, at most ``max_bytes``. Raises ``ConfigurationError`` if that is not positive."""

    def __init__(self, max_bytes: int) -> None:
        raise NotImplementedError

    @property
    def used(self) -> int:
        """Bytes held now."""
        raise NotImplementedError

    def join(self, log: Evictable) -> None:
        """``log`` is counted from now on."""
        raise NotImplementedError

    def leave(self, log: Evictable) -> None:
        """``log`` is forgotten, and what it holds with it."""
        raise NotImplementedError
