"""The event log of one session: the queue to its client and the journal of what was said, in one.

Owns: numbers, the pending and the retained part, the bounds on both, what an interruption removes.
Does not own: encoding (``protocol.codec``), attachments (``attachment``), sending (``writer``).
Here because: resume, slow consumers and interruption are all a matter of which entry was handed to whom.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from counterpoint.limits import JournalLimits
from counterpoint.protocol.catalog import EventKind
from counterpoint.session.effects import Tag

from .budget import TotalBudget
from .cursor import Cursor, Played, ReplayPolicy
from .entries import Taken


class EventLog:
    """Numbers run from ``head`` + 1. Raises ``ConfigurationError`` on a bound that is not positive.

    ``accepted`` is called with the tag of an entry, synchronously, in the moment the entry is numbered: handed to
    a transport, or evicted. It must not raise.
    """

    def __init__(
        self, limits: JournalLimits, total: TotalBudget, accepted: Callable[[Tag], None], *, head: int = 0
    ) -> None:
        raise NotImplementedError

    @property
    def head(self) -> int:
        """Newest number given."""
        raise NotImplementedError

    @property
    def boundary(self) -> int:
        """Newest number no longer held."""
        raise NotImplementedError

    @property
    def pending_bytes(self) -> int:
        raise NotImplementedError

    @property
    def journal_bytes(self) -> int:
        """Bytes of the retained part."""
        raise NotImplementedError

    def pending_of(self, response_id: str) -> int:
        """Pending entries tagged with this response."""
        raise NotImplementedError

    def listen(self, wake: Callable[[], None] | None) -> None:
        """``wake`` is called when there is something to take; it replaces an earlier listener."""
        raise NotImplementedError

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
        raise NotImplementedError

    def take(self, now: float, max_entries: int, max_bytes: int) -> list[Taken]:
        """Number the oldest pending entries, retain them, report them as accepted. At least one if any is pending."""
        raise NotImplementedError

    def discard(self, response_id: str, items: Collection[str]) -> None:
        """Do what ``session.effects.Discard`` says."""
        raise NotImplementedError

    def acknowledge(self, number: int) -> int:
        """The client processed entries up to ``number``: they leave. Returns how many left.

        Raises ``ProtocolError`` (``invalid_event_ack``) on a number that was never given.
        """
        raise NotImplementedError

    def prune(self, now: float) -> None:
        """Let retained entries leave that are as old as ``ttl_s``."""
        raise NotImplementedError

    def replay(
        self, after: int, now: float, policy: ReplayPolicy = ReplayPolicy.FULL, played: Played | None = None
    ) -> Cursor:
        """A cursor after ``after``; the only change is that of ``prune``.

        Raises ``ResumeRefused``: ``session_resume_conflict`` beyond the head, ``invalid_session_resume`` if negative.
        """
        raise NotImplementedError

    def number_and_drop_all(self) -> int:
        """Number what is pending, hold nothing, return the head: a snapshot is the state after it."""
        raise NotImplementedError

    def close(self) -> None:
        """Hold nothing and leave the total budget; nothing is reported."""
        raise NotImplementedError
