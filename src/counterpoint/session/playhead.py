"""Where a client that never says so has come to in playing a response.

Owns: a guess from the server's clock: playback starts with the first audio that is handed over, runs at real
speed and stops where there is no more.
Does not own: whether the guess counts (``playback``).
Here because: stock clients send no acknowledgements, and their history must not hold unheard words either.

While no connection is attached nothing is handed over: the guess runs on to what was, and waits there
(wire contract, section 3).
"""

from __future__ import annotations


class Playhead:
    """The playback of one response, from ``start`` on, in samples at ``rate``."""

    __slots__ = ("_at", "_played", "_rate", "_sent")

    def __init__(self, rate: int, start: float) -> None:
        self._rate = rate
        self._sent = 0
        self._played = 0.0  # at the time _at
        self._at = start

    def hand_over(self, sent: int, now: float) -> None:
        """Audio up to ``sent`` has been handed over."""
        self._advance(now)
        self._sent = sent

    def stop(self, now: float) -> None:
        """The client throws away what it has not played."""
        self._advance(now)
        self._sent = int(self._played)
        self._at = min(self._at, now)

    def played(self, now: float) -> int:
        """Samples that a client has played by ``now``."""
        elapsed = max(0.0, now - self._at)
        return int(min(self._sent, self._played + elapsed * self._rate))

    @property
    def ends_at(self) -> float:
        """When everything handed over so far will have been played."""
        return self._at + (self._sent - self._played) / self._rate

    def _advance(self, now: float) -> None:
        if now > self._at:
            self._played = min(self._sent, self._played + (now - self._at) * self._rate)
            self._at = now
