"""One attachment's place in the event log.

Owns: what is sent again and what is passed over; that replayed, pending and live entries follow in order.
Does not own: numbers (``log``), writing (``writer``), what a snapshot holds (``session``).
Here because: a resume is moving a cursor, and a slow consumer is a cursor that lags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from counterpoint.protocol.commands import ReplayPolicy

from .entries import Entry, Skipped, SkipReason
from .pacing import Pacing

if TYPE_CHECKING:
    from .log import EventLog

#: Samples played of each part, by (item id, content index), at the rate of the session's output format.
Played = Mapping[tuple[str, int], int]


class Cursor:
    """Made by ``EventLog.replay``, read by one writer. ``first``, ``last``, ``gap`` and
    ``dropped_audio_events`` are what ``session.resumed`` says of the replay, as long as nothing was taken.
    """

    __slots__ = (
        "_acknowledged_before",
        "_log",
        "_played",
        "_policy",
        "_position",
        "first",
        "last",
    )

    def __init__(self, log: EventLog, after: int, policy: ReplayPolicy, played: Played) -> None:
        self._log = log
        #: Newest number handed to this attachment, or passed over for it.
        self._position = after
        #: An older claim to have processed more than ``after`` is withdrawn by asking for a replay after
        #: ``after``.
        self._acknowledged_before = log.acknowledged
        self._policy = policy
        self._played = played
        to_replay = range(0) if self.gap else range(after + 1, log.head + 1)
        self.first: int | None = to_replay[0] if to_replay else None
        self.last: int | None = to_replay[-1] if to_replay else None

    @property
    def dropped_audio_events(self) -> int:
        """How many of the entries ``first`` to ``last`` are passed over, looked up one by one."""
        if self.first is None or self.last is None:
            return 0
        numbers = range(max(self.first, self._log.boundary + 1), self.last + 1)
        return sum(self._skips(self._log.retained(number)) is not None for number in numbers)

    @property
    def gap(self) -> bool:
        """Entries that this attachment never got are gone: next it needs a snapshot (see ``jump``)."""
        return max(self._position, self._processed()) < self._log.boundary

    @property
    def at_end(self) -> bool:
        """Nothing is left to take for now."""
        return self._position == self._log.head and self._log.oldest_pending() is None

    def listen(self, wake: Callable[[], None] | None) -> None:
        """``wake`` is called when there may be something to take; None: nobody takes from here any more."""
        self._log.listen(wake)

    def jump(self) -> int:
        """Number and drop everything in the log and stand behind it; returns what the snapshot is as of."""
        self._position = self._log.number_and_drop_all()
        return self._position

    def take(
        self, now: float, max_entries: int, max_bytes: int, pacing: Pacing | None = None
    ) -> Sequence[Entry | Skipped] | None:
        """What comes next, in order: retained entries, then pending ones, which are numbered by this.

        Empty if nothing comes, or ``pacing`` holds back what does; otherwise at least one thing, however
        small the bounds. None in a ``gap``.
        """
        if self._position < self._log.head:
            return None if self.gap else self._retained(max_entries, max_bytes, pacing)
        if pacing is not None:
            max_entries = 1
            if not _may_go(self._log.oldest_pending(), pacing):
                return ()
        taken = self._log.take(now, max_entries, max_bytes)
        if taken:
            self._position = taken[-1].number
        return taken

    def _retained(self, max_entries: int, max_bytes: int, pacing: Pacing | None) -> list[Entry | Skipped]:
        batch: list[Entry | Skipped] = []
        if self._position < (processed := self._processed()):
            batch.append(Skipped(self._position + 1, processed, SkipReason.REPLAY_POLICY))
            self._position = processed
        while self._position < self._log.head and len(batch) < max_entries and max_bytes > 0:
            entry = self._log.retained(self._position + 1)
            reason = self._skips(entry)
            if reason is None and pacing is not None and not _may_go(entry, pacing):
                break
            self._position += 1
            if reason is None:
                batch.append(entry)
                max_bytes -= entry.size
            else:
                self._skip(batch, reason)
        return batch

    def _processed(self) -> int:
        """What the client acknowledged on this attachment: it may be ahead of what it was sent here."""
        now = self._log.acknowledged
        return now if now > self._acknowledged_before else 0

    def _skip(self, batch: list[Entry | Skipped], reason: SkipReason) -> None:
        """Pass over the entry at the cursor, in one range with its neighbours."""
        first = self._position
        if batch:
            before = batch[-1]
            if isinstance(before, Skipped) and before.reason is reason:
                first = before.first
                batch.pop()
        batch.append(Skipped(first, self._position, reason))

    def _skips(self, entry: Entry) -> SkipReason | None:
        if not entry.kind.droppable or entry.tag is None:
            return None
        if self._log.is_interrupted(entry):
            return SkipReason.INTERRUPTED
        match self._policy:
            case ReplayPolicy.FULL:
                return None
            case ReplayPolicy.NO_AUDIO:
                return SkipReason.REPLAY_POLICY
            case ReplayPolicy.FROM_PLAYHEAD:
                played = self._played.get((entry.tag.item_id or "", entry.tag.content_index), 0)
                return SkipReason.REPLAY_POLICY if entry.tag.samples <= played else None


def _may_go(entry: Entry | None, pacing: Pacing) -> bool:
    return entry is None or not entry.kind.audio or entry.tag is None or pacing.admits(entry.tag)
