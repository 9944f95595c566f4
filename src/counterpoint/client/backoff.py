"""When to dial again after a connection was lost.

Owns: the wait before each attempt, and giving up.
Does not own: dialling (``link``), which ends of a connection are final (``link``).
Here because: a hundred clients whose server restarts must not come back in one instant, and again and again
if it drops them (case M-06); clock and chance are arguments, so that this can be shown without waiting.
"""

from __future__ import annotations

from collections.abc import Callable

from .options import Backoff


class Retries:
    """``random`` returns numbers from [0, 1)."""

    def __init__(self, policy: Backoff, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._ceiling_s = policy.first_s
        self._connected_at: float | None = None
        self._trouble_since: float | None = None

    def connected(self, now: float) -> None:
        self._connected_at = now

    def lost(self, now: float) -> None:
        """A connection ended. Only one that held for ``stable_s`` makes the next wait a short one."""
        held = self._connected_at is not None and now - self._connected_at >= self._policy.stable_s
        self._connected_at = None
        if held or self._trouble_since is None:
            self._ceiling_s = self._policy.first_s
            self._trouble_since = now

    def next_wait(self, now: float) -> float | None:
        """Seconds to wait before the next attempt; None: give up."""
        assert self._trouble_since is not None
        wait = self._random() * self._ceiling_s
        if now + wait - self._trouble_since > self._policy.give_up_s:
            return None
        self._ceiling_s = min(self._policy.most_s, self._ceiling_s * self._policy.factor)
        return wait
