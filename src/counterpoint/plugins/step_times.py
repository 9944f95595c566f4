"""How long the steps of a model take.

Owns: the durations of the last seconds and their 95th percentile.
Does not own: what follows from it (``runtime.slots``).
Here because: a model that needs almost its whole period for a step has no room for another session, whatever
the number of its slots.
"""

from __future__ import annotations

from collections import deque
from typing import Final

#: Older steps say nothing of the load now: they were made for sessions that may be gone.
WINDOW_S: Final = 10.0

#: Bounds the table where steps are short.
_MOST: Final = 1024

#: Fewer steps make no percentile.
_LEAST: Final = 20


class StepTimes:
    """Times are those of the loop, in seconds."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def add(self, ended_at: float, seconds: float) -> None:
        self._steps.append((ended_at, seconds))

    def p95_ms(self, now: float) -> float | None:
        """None: too few steps to say."""
        while self._steps and self._steps[0][0] < now - WINDOW_S:
            self._steps.popleft()
        if len(self._steps) < _LEAST:
            return None
        durations = sorted(seconds for _, seconds in self._steps)
        return durations[len(durations) * 95 // 100] * 1000
