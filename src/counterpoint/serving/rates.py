"""How often something was done within the last minute.

Owns: a sliding window of a minute for each name.
Does not own: clocks (``now`` is an argument), what is counted.
Here because: a limit by fixed minutes lets twice as much through around their ends.
"""

from __future__ import annotations

from collections import deque

_WINDOW_S = 60.0


class Rates:
    """``most`` within a minute; 0: any number. Each name holds at most ``most`` times."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: dict[str, deque[float]] = {}

    def take(self, name: str, now: float) -> float:
        """Count one; or, where there is no room, say in how many seconds there is."""
        if not self._most:
            return 0.0
        times = self._times.setdefault(name, deque())
        while times and now - times[0] >= _WINDOW_S:
            times.popleft()
        if len(times) >= self._most:
            return _WINDOW_S - (now - times[0])
        times.append(now)
        return 0.0
