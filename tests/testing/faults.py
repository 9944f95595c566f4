"""Ten faults that servers of this kind have had, each as a patch of the real code.

Owns: the patches.
Does not own: finding them (``test_seeded_faults``).
Here because: a simulator that finds nothing may be blind; these are what it must be able to see.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from counterpoint.delivery import credential
from counterpoint.delivery.attachment import Attachments
from counterpoint.delivery.credential import ResumeCredential
from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.entries import Entry, Skipped
from counterpoint.delivery.log import EventLog
from counterpoint.runtime.live import Attachment, LiveSession
from counterpoint.runtime.manager import SessionManager

Fault = Callable[[pytest.MonkeyPatch], None]


def old_token_revoked_at_rotation(patch: pytest.MonkeyPatch) -> None:
    """The reply with the new token may be lost, and the old one is good no more."""

    def rotate(self: ResumeCredential, presented: str, fresh: str) -> None:
        self._digests = (credential._digest(fresh),)

    patch.setattr(ResumeCredential, "rotate", rotate)


def detach_not_fenced_by_generation(patch: pytest.MonkeyPatch) -> None:
    """The late end of an old connection drops the one that replaced it."""
    detach = Attachments.detach
    patch.setattr(Attachments, "detach", lambda self, generation=None: detach(self))
    patch.setattr(Attachment, "disconnected", lambda self, code: self.live.disconnected(self, code))


def wrong_lease_generation_given_back(patch: pytest.MonkeyPatch) -> None:
    """The lease of the connection before, which nobody holds any more."""
    give_back = LiveSession._lease_given_back
    patch.setattr(LiveSession, "_lease_given_back", lambda self, lease: give_back(self, lease - 1))


def claim_not_released_on_cancellation(patch: pytest.MonkeyPatch) -> None:
    """Whoever waited for the lease left, and its claim stays open for ever."""
    patch.setattr(Attachments, "_abandon", lambda self, swap: swap.cancelled() or swap.exception())


def pending_audio_not_purged_on_cancel(patch: pytest.MonkeyPatch) -> None:
    """What was waiting for its connection is sent after the cancel."""

    def discard(self: EventLog, response_id: str, items: Collection[str]) -> None:
        self._interrupted[response_id] = self.head

    patch.setattr(EventLog, "discard", discard)


def numbered_when_recorded(patch: pytest.MonkeyPatch) -> None:
    """An event counts as handed over before anybody took it, so an interruption cannot remove it."""
    record = EventLog.record

    def record_and_number(self: EventLog, *args: Any, now: float, **fields: Any) -> None:
        record(self, *args, now=now, **fields)
        self.take(now, 1, 1)

    patch.setattr(EventLog, "record", record_and_number)


def grace_restarted_by_second_report(patch: pytest.MonkeyPatch) -> None:
    """The writer and the reader of one dead socket both report it, some time apart."""
    disconnected = Attachment.disconnected

    def report_again(self: Attachment, code: int | None) -> None:
        disconnected(self, code)
        lease = self.live.lease
        if not self.live.attached and not lease.attached:
            lease._since = self.live._loop.time()

    patch.setattr(Attachment, "disconnected", report_again)


def slot_freed_before_cleanup(patch: pytest.MonkeyPatch) -> None:
    """The session is over, and its model side has not let go."""
    ended = SessionManager._session_ended

    def free_first(self: SessionManager, live: LiveSession) -> None:
        self.slots.free(live.id)
        ended(self, live)

    patch.setattr(SessionManager, "_session_ended", free_first)


def live_event_before_replay(patch: pytest.MonkeyPatch) -> None:
    """What is new overtakes what is sent again."""
    take = Cursor.take

    def take_new_first(self: Cursor, now: float, most: int, size: int, pacing: Any = None) -> Any:
        new: list[Entry | Skipped] = list(self._log.take(now, most, size))
        return new or take(self, now, most, size, pacing)

    patch.setattr(Cursor, "take", take_new_first)


def old_sockets_command_accepted(patch: pytest.MonkeyPatch) -> None:
    """A connection that was replaced is still listened to."""
    patch.setattr(Attachment, "receive", lambda self, frame: self.live.receive(self, frame))


FAULTS: tuple[Fault, ...] = (
    old_token_revoked_at_rotation,
    detach_not_fenced_by_generation,
    wrong_lease_generation_given_back,
    claim_not_released_on_cancellation,
    pending_audio_not_purged_on_cancel,
    numbered_when_recorded,
    grace_restarted_by_second_report,
    slot_freed_before_cleanup,
    live_event_before_replay,
    old_sockets_command_accepted,
)
