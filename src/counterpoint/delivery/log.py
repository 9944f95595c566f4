"""The event log of one session: the queue to its client and the journal of what was said, in one.

Owns: numbers, the pending and the retained part, the bounds on both, what an interruption removes.
Does not own: encoding (``protocol.codec``), where an attachment stands (``cursor``), sending (``writer``).
Here because: resume, slow consumers and interruption all ask one question: what was handed to whom?

An entry is pending until a writer takes it; in that moment it gets its number, is retained, and is reported
as accepted. Only overflow numbers an entry that nobody took. See "One event's way out" in the design page.
"""

from __future__ import annotations

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
from .entries import Entry, Taken


class EventLog:
    """Numbers run from ``head`` + 1. Raises ``ConfigurationError`` on a bound that bounds nothing.

    ``accepted`` is called with the tag of an entry, synchronously, in the moment the entry is numbered:
    handed to a transport, or evicted. It must not raise.
    """

    __slots__ = (
        "_accepted",
        "_exempt",
        "_interrupted",
        "_limits",
        "_pending",
        "_retained",
        "_total",
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
        self._limits = limits
        self._total = total
        self._accepted = accepted
        self._retained: deque[Entry] = deque()
        self._pending: deque[Entry] = deque()
        self._wake: Callable[[], None] | None = None
        #: Interrupted responses, with the head of that moment: forgotten when nothing so old is retained.
        self._interrupted: dict[str, int] = {}
        #: The newest pending entry that is larger than the whole log may be: it is sent, and pushes out
        #: nothing.
        self._exempt: Entry | None = None
        #: Newest number given. Numbers are dense, so this and two lengths say where every entry is.
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
        return entry.kind.droppable and entry.tag is not None and entry.tag.response_id in self._interrupted

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
        self._total.used += size
        if size > self._limits.max_bytes:
            self._exempt = entry
        self.prune(now)
        while self._is_over():
            self.evict_oldest()
        if self._total.exceeded:
            self._total.make_room()
        if self._wake is not None and len(self._pending) == 1:
            self._wake()

    def discard(self, response_id: str, items: Collection[str]) -> None:
        """Do what ``session.effects.Discard`` says."""
        kept = deque(entry for entry in self._pending if not _is_discarded(entry, response_id, items))
        removed = self.pending_bytes - sum(entry.size for entry in kept)
        self._pending = kept
        self.pending_bytes -= removed
        self._total.used -= removed
        if self._exempt is not None and not any(entry is self._exempt for entry in kept):
            self._exempt = None
        boundary = self.boundary
        self._interrupted = {response: at for response, at in self._interrupted.items() if at > boundary}
        self._interrupted[response_id] = self.head
        if self._wake is not None:
            self._wake()

    # ------------------------------------------------------------------ out

    def take(self, now: float, max_entries: int, max_bytes: int) -> list[Taken]:
        """Number the oldest pending entries, retain them, report them. At least one, if any is pending."""
        taken: list[Taken] = []
        while self._pending and len(taken) < max_entries and max_bytes > 0:
            entry = self._number_oldest()
            self._retain(entry, now)
            taken.append(Taken(self.head, entry))
            max_bytes -= entry.size
            if entry.tag is not None:
                self._accepted(entry.tag)
        return taken

    def acknowledge(self, number: int) -> int:
        """The client processed everything up to ``number``: it leaves. Returns how many entries left.

        Raises ``ProtocolError`` (``invalid_event_ack``) on a number that was never given.
        """
        if not 0 <= number <= self.head:
            raise ProtocolError(
                ErrorCode.INVALID_EVENT_ACK, "no event has this number", param="server_event_seq"
            )
        self.acknowledged = max(self.acknowledged, number)
        leaving = max(0, number - self.boundary)
        for _ in range(leaving):
            self._forget_oldest()
        return leaving

    def prune(self, now: float) -> None:
        """Let the retained entries leave that are as old as ``journal.ttl_s``."""
        ttl = self._limits.ttl_s
        while ttl and self._retained and now - self._retained[0].taken_at >= ttl:
            self._forget_oldest()

    def replay(
        self, after: int, now: float, policy: ReplayPolicy = ReplayPolicy.FULL, played: Played | None = None
    ) -> Cursor:
        """A cursor for a client that received everything up to ``after``. Apart from ``prune``, changes
        nothing.

        ``played`` is the acknowledged playback position of each part, for ``ReplayPolicy.FROM_PLAYHEAD``.
        Raises ``ResumeRefused``: ``invalid_session_resume`` if negative, ``session_resume_conflict`` beyond
        the head.
        """
        if after < 0:
            raise ResumeRefused(ErrorCode.INVALID_SESSION_RESUME, "an event number is not negative")
        if after > self.head:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_CONFLICT, "no event with this number was sent")
        self.prune(now)
        return Cursor(self, after, policy, {} if played is None else played)

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
        self._exempt = self._wake = None

    # ------------------------------------------------------------------ parts

    def _is_over(self) -> bool:
        charged = self.bytes_held if self._exempt is None else self.bytes_held - self._exempt.size
        if charged > self._limits.max_bytes:
            return True
        most = self._limits.max_events
        return 0 < most < len(self._retained) + len(self._pending)

    def _number_oldest(self) -> Entry:
        entry = self._pending.popleft()
        self.pending_bytes -= entry.size
        if entry is self._exempt:
            self._exempt = None
        self.head += 1
        return entry

    def _retain(self, entry: Entry, now: float) -> None:
        """Keep the entry just numbered. One that the log cannot hold takes everything older with it."""
        entry.taken_at = now
        self._retained.append(entry)
        self.journal_bytes += entry.size
        if entry.size > self._limits.max_bytes:
            while self._retained:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        size = self._retained.popleft().size
        self.journal_bytes -= size
        self._total.used -= size


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
        raise ConfigurationError(
            "journal.ttl_s", "must not be negative; 0 keeps entries until they are acknowledged"
        )
