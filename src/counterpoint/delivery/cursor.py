"""One attachment's place in the event log.

Owns: what is sent again and what is passed over, and in which order replay, pending and live entries follow.
Does not own: numbers (``log``), writing (``writer``), what a snapshot holds (``session``).
Here because: a resume is moving a cursor, and a slow consumer is a cursor that lags.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from .entries import Skipped, Taken

#: Samples played of each part, by (item id, content index), at the rate of the session's output format.
Played = Mapping[tuple[str, int], int]


class ReplayPolicy(enum.Enum):
    """Which retained audio is sent again (wire contract, section 3)."""

    FULL = "full"
    NO_AUDIO = "no_audio"
    FROM_PLAYHEAD = "from_playhead"


class Cursor:
    """Made by ``EventLog.replay``; read by one writer."""

    position: int  #: newest number that this attachment was handed, or that was passed over for it
    first: int | None  #: ``session.resumed.replay.from``
    last: int | None  #: ``session.resumed.replay.to``
    dropped_audio_events: int

    @property
    def gap(self) -> bool:
        """Entries that this attachment never got are gone: it needs a snapshot next."""
        raise NotImplementedError

    def jump(self) -> int:
        """Number and drop everything in the log, stand behind it, and return the last number: the snapshot's."""
        raise NotImplementedError

    def take(self, now: float, max_entries: int, max_bytes: int) -> list[Taken | Skipped]:
        """The next entries in order: retained ones, then pending ones, which are numbered now. At least one if any."""
        raise NotImplementedError
