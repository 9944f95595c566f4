"""The numbers of one session's events, as its client sees them over all of its connections.

Owns: density, explicit holes, that a number stands for the same event whenever it is sent, epochs that never
fall, acknowledgements that never go back (CASE-INV-1 and CASE-INV-8).
Does not own: what events say.
Here because: everything else is checked once per number, and this decides whether a number is new.
"""

from __future__ import annotations

from typing import Any

from .violation import Violation

DENSE = "CASE-INV-1"
EPOCH = "CASE-INV-8"


class Place:
    """Where one connection stands. ``next`` is the number that it must be sent next."""

    def __init__(self, after: int, policy: str, *, gap: bool = False) -> None:
        self._first = self.next = after + 1
        self.policy = policy
        #: A snapshot was promised and has not come.
        self.owed_snapshot = gap

    @property
    def untouched(self) -> bool:
        """Nothing numbered came yet."""
        return self.next == self._first

    @property
    def last(self) -> int:
        """The newest number that its client processed here, or that it said it had."""
        return self.next - 1


class Sequence:
    """``extended``: the connections are; stock ones see holes where an extension event was."""

    def __init__(self, *, extended: bool) -> None:
        self.extended = extended
        #: Newest number that was seen, or passed over with a notice, on any connection.
        self.head = 0
        #: Newest number that the client said it processed.
        self.acknowledged = 0
        self._ids: list[str] = []
        self._all_ids: dict[str, int] = {}
        self._epoch = 0

    def take(self, place: Place, event: dict[str, Any]) -> bool:
        """A numbered event came; whether nobody saw it before."""
        number = event["server_event_seq"]
        if place.owed_snapshot:
            raise Violation(DENSE, f"event {number} came before the snapshot that stands for what is lost")
        if self.extended and number != place.next:
            raise Violation(DENSE, f"event {number} came, {place.next} is next")
        if number < place.next:
            raise Violation(DENSE, f"event {number} came after {place.next - 1}")
        place.next = number + 1
        self._remember(number, event["event_id"])
        if number <= self.head:
            return False
        if self.extended and number != self.head + 1:
            raise Violation(DENSE, f"events {self.head + 1} to {number - 1} never came")
        self.head = number
        self._follow_epoch(event)
        return True

    def skipped(self, place: Place, event: dict[str, Any]) -> bool:
        """Entries are passed over; whether some of them were never seen."""
        first, last, reason = event["from"], event["to"], event["reason"]
        if first != place.next or last < first:
            raise Violation(DENSE, f"{first} to {last} are skipped, {place.next} is next")
        if reason == "replay_policy" and place.policy == "full" and last > self.acknowledged:
            raise Violation(DENSE, f"{first} to {last} are skipped by a policy that nobody asked for")
        place.next = last + 1
        unseen: bool = last > self.head
        self.head = max(self.head, last)
        return unseen

    def snapshot(self, place: Place, event: dict[str, Any]) -> int:
        """A snapshot came; how far it is ahead of what was seen, negative if it is older."""
        as_of = event["as_of_server_event_seq"]
        if as_of + 1 < place.next:
            raise Violation(DENSE, f"a snapshot as of {as_of} came after event {place.next - 1}")
        place.owed_snapshot = False
        place.next = as_of + 1
        ahead: int = as_of - self.head
        self.head = max(self.head, as_of)
        return ahead

    def _remember(self, number: int, event_id: str) -> None:
        while len(self._ids) < number:
            self._ids.append("")
        known = self._ids[number - 1]
        if known and known != event_id:
            raise Violation(DENSE, f"number {number} was {known} and now is {event_id}")
        if self._all_ids.setdefault(event_id, number) != number:
            raise Violation(DENSE, f"{event_id} is {self._all_ids[event_id]} and {number}")
        self._ids[number - 1] = event_id

    def _follow_epoch(self, event: dict[str, Any]) -> None:
        epoch = event.get("duplex", {}).get("epoch", self._epoch)
        if epoch < self._epoch:
            raise Violation(EPOCH, f"{event['type']} of epoch {epoch} came in epoch {self._epoch}")
        self._epoch = epoch
