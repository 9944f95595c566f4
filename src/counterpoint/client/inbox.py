"""Reading a numbered series of events once, over any number of connections.

Owns: the cursor, which events are duplicates, when what was read is acknowledged.
Does not own: the events themselves, the connection (``link``).
Here because: the cursor of a resume is the number on the newest event, never a count (case A-09), and that
is easy to get wrong in ten places and hard in one.
"""

from __future__ import annotations

from .event import Event


class Inbox:
    """Events in, verdicts out. ``interval_s`` and ``every``: how long, how many, until an acknowledgement."""

    def __init__(self, *, interval_s: float, every: int) -> None:
        self.cursor = 0  #: the number of the newest event read
        #: When an acknowledgement is due, on the caller's clock; None: there is nothing to acknowledge.
        self.ack_at: float | None = None
        self._interval_s = interval_s
        self._every = every
        self._unacknowledged = 0

    def accept(self, event: Event, now: float) -> bool:
        """Whether the event is news. A replay after a resume brings some that are not."""
        number = event.seq
        if number is None:
            self._follow_gap(event)
            return True
        if number <= self.cursor:
            return False
        self.cursor = number
        self._unacknowledged += 1
        if self._unacknowledged >= self._every:
            self.ack_at = now
        elif self.ack_at is None:
            self.ack_at = now + self._interval_s
        return True

    def _follow_gap(self, event: Event) -> None:
        """Numbers that will not come any more count as read, or a resume would ask for them again."""
        if event.type == "session.snapshot":
            self.cursor = max(self.cursor, event.integer("as_of_server_event_seq") or 0)
        elif event.type == "session.skipped":
            self.cursor = max(self.cursor, event.integer("to") or 0)

    def acknowledge_at(self, when: float) -> None:
        """Acknowledge then in any case: after a resume it proves that the new token arrived."""
        self.ack_at = when

    def take_acknowledgement(self, now: float) -> int | None:
        """The number to acknowledge, if it is time."""
        if self.ack_at is None or now < self.ack_at:
            return None
        self.ack_at = None
        self._unacknowledged = 0
        return self.cursor
