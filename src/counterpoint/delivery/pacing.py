"""Audio goes out at most so much ahead of playback.

Owns: when an audio entry may go (``limits.max_audio_lead_ms``).
Does not own: where playback is (``session``), waiting (``writer``).
Here because: some clients play what they get from a short buffer, and what they cannot hold is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from counterpoint.session.effects import Tag


class Pacing:
    """``ahead_ms(tag)``: how far the end of the audio entry with this tag is ahead of playback now, in ms."""

    __slots__ = ("_ahead_ms", "_last", "_max_lead_ms", "_wait_s")

    def __init__(self, max_lead_ms: float, ahead_ms: Callable[[Tag], float]) -> None:
        self._max_lead_ms = max_lead_ms
        self._ahead_ms = ahead_ms
        self._last: Tag | None = None
        self._wait_s = 0.0

    def admits(self, tag: Tag) -> bool:
        """Whether this audio may go now; if so it is taken to go.

        An entry longer than the whole lead goes when everything before it was played: late is better than
        never.
        """
        excess = self._ahead_ms(tag) - self._max_lead_ms
        unplayed = 0.0 if self._last is None else self._ahead_ms(self._last)
        self._wait_s = max(0.0, min(excess, unplayed)) / 1000
        if self._wait_s:
            return False
        self._last = tag
        return True

    def held_for_s(self) -> float:
        """How long the audio held back since the last call has to wait if playback runs on; 0: none was."""
        wait_s, self._wait_s = self._wait_s, 0.0
        return wait_s
