"""Exactly-once input for clients that number their events.

Owns: the next expected number, duplicates, gaps, when to acknowledge (wire contract, section 2).
Does not own: what an event does (``session``), sending the acknowledgement (``runtime.live``).
Here because: after a reconnect a client sends again what it cannot know to have arrived; somebody must count.
"""

from __future__ import annotations

import enum


class Verdict(enum.Enum):
    """What becomes of a numbered event."""

    ACCEPT = "accept"
    DUPLICATE = "duplicate"  #: seen before: ignored
    GAP = "gap"  #: the first after a hole: refused with ``client_event_gap``
    AFTER_GAP = "after_gap"  #: later ones of the same hole: ignored, the one error said it


class Inbox:
    """Numbers are dense from 1. ``last`` is the newest one used."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._gap_told = False

    @property
    def expected(self) -> int:
        return self.last + 1

    def judge(self, number: int) -> Verdict:
        """What to do with ``number``; uses nothing yet."""
        if number <= self.last:
            return Verdict.DUPLICATE
        if number == self.expected:
            return Verdict.ACCEPT
        if self._gap_told:
            return Verdict.AFTER_GAP
        self._gap_told = True
        return Verdict.GAP

    def use(self) -> None:
        """The expected number had its outcome, an effect or an error."""
        self.last += 1
        self._gap_told = False

    def reopen(self) -> None:
        """A new connection: it may be told of a gap again."""
        self._gap_told = False
