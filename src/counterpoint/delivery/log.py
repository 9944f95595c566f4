"""The event log of one session: the queue to its client and the journal of what was said, in one.

Owns: numbers, the pending and the retained part, the bounds on both, what an interruption removes.
Does not own: encoding (``protocol.codec``), where an attachment stands (``cursor``), sending (``writer``).
Here because: resume, slow consumers and interruption all ask one question: what was handed to whom?

An entry is pending until a writer takes it; in that moment it gets its number, is retained, and is reported
as accepted. Only overflow numbers an entry that nobody took. See "One event's way out" in the design page.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection

from counterpoint.errors import ConfigurationError, ProtocolError, ResumeRefused
from counterpoint.limits import JournalLimits
from counterpoint.protocol.catalog import EventKind
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import ReplayPolicy
from counterpoint.session.effects import Tag

from .budget import TotalBudget
from .cursor import Cursor, Played
from .entries import Entry


class EventLog:
    """Numbers run from ``head`` + 1. Raises ``ConfigurationError`` on a bound that bounds nothing.

    ``accepted`` is called with the tag of an entry, synchronously, in the moment the entry is numbered:
    handed to a transport, or evicted. It must not raise.
    """

    __slots__ = (
        "_accepted",
        "_interrupted",
        "_max_bytes",
        "_max_events",
        "_oversized",
        "_pending",
        "_retained",
        "_total",
        "_ttl_s",
        "_wake",
        "acknowledged",
        "head",
        "journal_bytes",
        "pending_bytes",
    )

    def __init__(
        self, limits: JournalLimits, total: TotalBudget, accepted: Callable[[Tag], None], *, head: int = 0
    ) -> None:
        _check(limits)
        self._max_bytes = limits.max_bytes
        self._max_events: float = limits.max_events or math.inf
        self._ttl_s = limits.ttl_s or math.inf
        self._total = total
        self._accepted = accepted
        self._retained: deque[Entry] = deque()
        self._pending: deque[Entry] = deque()
        self._wake: Callable[[], None] | None = None
        #: Interrupted responses, with the head of that moment: forgotten when nothing so old is retained.
        self._interrupted: dict[str, int] = {}
        #: The newest pending entry larger than the whole log may be: it is sent, and pushes out nothing.
        self._oversized: Entry | None = None
        #: Newest number given. Numbers are dense, so this and a length say where every entry is.
        self.head = head
        #: Newest number that the client says it processed, on whatever connection.
        self.acknowledged = 0
        self.pending_bytes = 0
        self.journal_bytes = 0
        total.join(self)

    # ------------------------------------------------------------------ reading

    @property
    def boundary(self) -> int:
        """Newest number no longer held."""
        return self.head - len(self._retained)

    @property
    def bytes_held(self) -> int:
        return self.journal_bytes + self.pending_bytes

    def retained(self, number: int) -> Entry:
        """The entry with ``number``, which is above the boundary and not above the head."""
        return self._retained[number - self.boundary - 1]

    def oldest_pending(self) -> Entry | None:
        return self._pending[0] if self._pending else None

    def is_interrupted(self, entry: Entry) -> bool:
        """Whether this is audio that must not be heard any more."""
        return entry.kind.audio and entry.tag is not None and entry.tag.response_id in self._interrupted

    def listen(self, wake: Callable[[], None] | None) -> None:
        """``wake`` is called when there may be something to take; it replaces an earlier listener."""
        self._wake = wake

    # ------------------------------------------------------------------ in

    def record(
        self,
        kind: EventKind,
        body: bytes,
        *,
        now: float,
        duplex: bytes = b"",
        tag: Tag | None = None,
        epoch: int = 0,
    ) -> None:
        """Append an encoded event; it is pending until a writer takes it or overflow evicts it."""
        size = len(body) + len(duplex)
        entry = Entry(kind, body, duplex, size, tag, epoch)
        self._pending.append(entry)
        self.pending_bytes += size
        if size > self._max_bytes:
            self._oversized = entry
        # Looked at for every event, so without a call for each bound.
        retained, total = self._retained, self._total
        if retained and now - retained[0].taken_at >= self._ttl_s:
            self.prune(now)
        held = self.journal_bytes + self.pending_bytes
        if held > self._max_bytes or len(self._pending) + len(retained) > self._max_events:
            self._keep_bounds()
        total.used += size
        if total.used > total.max_bytes:
            total.make_room()
        if self._wake is not None and len(self._pending) == 1:
            self._wake()

    def discard(self, response_id: str, items: Collection[str]) -> None:
        """Do what ``session.effects.Discard`` says."""
        kept = deque(entry for entry in self._pending if not _is_discarded(entry, response_id, items))
        removed = self.pending_bytes - sum(entry.size for entry in kept)
        self._pending = kept
        self.pending_bytes -= removed
        self._total.used -= removed
        if self._oversized is not None and not any(entry is self._oversized for entry in kept):
            self._oversized = None
        boundary = self.boundary
        self._interrupted = {response: at for response, at in self._interrupted.items() if at > boundary}
        self._interrupted[response_id] = self.head
        if self._wake is not None:
            self._wake()

    # ------------------------------------------------------------------ out

    def take(self, now: float, max_entries: int, max_bytes: int) -> list[Entry]:
        """Number the oldest pending entries, retain them, report them. At least one, if any is pending."""
        taken: list[Entry] = []
        number, size = self.head, 0
        while self._pending and len(taken) < max_entries and size < max_bytes:
            entry = self._pending.popleft()
            number += 1
            size += entry.size
            entry.number = number
            entry.taken_at = now
            taken.append(entry)
        self.head = number
        self.pending_bytes -= size
        self.journal_bytes += size
        self._retained.extend(taken)
        if self._oversized is not None:
            self._let_oversized_go()
        for entry in taken:
            if entry.tag is not None:
                self._accepted(entry.tag)
        return taken

    def acknowledge(self, number: int) -> int:
        """The client processed everything up to ``number``: it leaves. Returns how many entries left.

        Raises ``ProtocolError`` (``invalid_event_ack``) on a number that was never given.
        """
        if not 0 <= number <= self.head:
            message = "no event with this number was sent"
            raise ProtocolError(ErrorCode.INVALID_EVENT_ACK, message, param="server_event_seq")
        self.acknowledged = max(self.acknowledged, number)
        leaving = max(0, number - self.boundary)
        for _ in range(leaving):
            self._forget_oldest()
        return leaving

    def replay(
        self, after: int, now: float, policy: ReplayPolicy = ReplayPolicy.FULL, played: Played | None = None
    ) -> Cursor:
        """A cursor for a client that received everything up to ``after``. Only prunes; a replay changes
        nothing.

        ``played`` is the acknowledged playback position of each part, for ``ReplayPolicy.FROM_PLAYHEAD``.
        Raises ``ResumeRefused``: ``invalid_session_resume`` if ``after`` is negative,
        ``session_resume_conflict`` if it is beyond the head.
        """
        if after < 0:
            raise ResumeRefused(ErrorCode.INVALID_SESSION_RESUME, "an event number is not negative")
        if after > self.head:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_CONFLICT, "no event with this number was sent")
        self.prune(now)
        return Cursor(self, after, policy, {} if played is None else played)

    # ------------------------------------------------------------------ leaving

    def prune(self, now: float) -> None:
        """Let the retained entries leave that are as old as ``journal.ttl_s``."""
        while self._retained and now - self._retained[0].taken_at >= self._ttl_s:
            self._forget_oldest()

    def evict_oldest(self) -> None:
        """Overflow: the oldest entry leaves; one that nobody took is numbered and reported as it goes."""
        if self._retained:
            self._forget_oldest()
            return
        entry = self._number_oldest()
        self._total.used -= entry.size
        if entry.tag is not None:
            self._accepted(entry.tag)

    def number_and_drop_all(self) -> int:
        """Number what is pending and hold nothing; returns the head: a snapshot is the state after it."""
        while self._retained or self._pending:
            self.evict_oldest()
        return self.head

    def close(self) -> None:
        """Hold nothing and leave the total budget; nothing is numbered or reported."""
        self._total.leave(self)
        self._total.used -= self.bytes_held
        self._retained.clear()
        self._pending.clear()
        self.pending_bytes = self.journal_bytes = 0
        self._oversized = self._wake = None
        self._accepted = _nobody_asks  # it was bound to the session that holds this log: a cycle (C-14)

    # ------------------------------------------------------------------ parts

    def _keep_bounds(self) -> None:
        while self._is_over():
            self.evict_oldest()

    def _is_over(self) -> bool:
        exempt = 0 if self._oversized is None else self._oversized.size
        too_many = len(self._retained) + len(self._pending) > self._max_events
        return too_many or self.bytes_held - exempt > self._max_bytes

    def _number_oldest(self) -> Entry:
        entry = self._pending.popleft()
        self.pending_bytes -= entry.size
        if entry is self._oversized:
            self._oversized = None
        self.head += 1
        entry.number = self.head
        return entry

    def _let_oversized_go(self) -> None:
        """An entry that the log cannot hold may have been taken: it takes everything older with it."""
        assert self._oversized is not None
        if self._oversized.number:
            while self.boundary < self._oversized.number:
                self._forget_oldest()
            self._oversized = None

    def _forget_oldest(self) -> None:
        size = self._retained.popleft().size
        self.journal_bytes -= size
        self._total.used -= size


def _nobody_asks(_: Tag) -> None:
    """Of a log that is closed nothing is taken any more."""


def _is_discarded(entry: Entry, response_id: str, items: Collection[str]) -> bool:
    tag = entry.tag
    if tag is None:
        return False
    return tag.item_id in items or (tag.response_id == response_id and entry.kind.discarded)


def _check(limits: JournalLimits) -> None:
    if limits.max_bytes <= 0:
        raise ConfigurationError("journal.max_bytes", "must be positive")
    if limits.max_events < 0:
        raise ConfigurationError("journal.max_events", "must not be negative; 0 turns the bound off")
    if limits.ttl_s < 0:
        raise ConfigurationError("journal.ttl_s", "must not be negative; 0 turns the bound off")
