"""What the tests of delivery share: logs with small bounds, and entries named by what they are.

Owns: makers of logs and entries.
Does not own: the reference model (``test_log_model``), links (``link``).
Here because: the body of every entry here is its own label, so that any order can be read off it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.entries import Entry, Skipped
from counterpoint.delivery.log import EventLog
from counterpoint.limits import JournalLimits
from counterpoint.protocol.catalog import CATALOG
from counterpoint.session.effects import Progress, Tag

AUDIO = CATALOG["response.output_audio.delta"]
TRANSCRIPT = CATALOG["response.output_audio_transcript.delta"]
AUDIO_DONE = CATALOG["response.output_audio.done"]
ITEM_ADDED = CATALOG["conversation.item.added"]
OUTPUT_ITEM_ADDED = CATALOG["response.output_item.added"]
PART_ADDED = CATALOG["response.content_part.added"]
CREATED = CATALOG["response.created"]
UPDATED = CATALOG["session.updated"]
CLOSED = CATALOG["session.closed"]
OVERLAP = CATALOG["overlap.decision"]
SPEAK = CATALOG["response.speak"]

#: More than any test takes at once.
ALL = 1 << 40


def new_log(
    *,
    max_bytes: int = 1 << 20,
    max_events: int = 0,
    ttl_s: float = 0.0,
    total: TotalBudget | None = None,
    accepted: Callable[[Tag], None] = lambda tag: None,
    head: int = 0,
) -> EventLog:
    limits = JournalLimits(max_bytes=max_bytes, max_events=max_events, ttl_s=ttl_s)
    return EventLog(limits, total or TotalBudget(1 << 40), accepted, head=head)


def audio_tag(response: str, item: str = "item", samples: int = 0) -> Tag:
    return Tag(response, item, samples=samples, progress=Progress.DELTA)


def fill(log: EventLog, count: int, *, now: float = 0.0, size: int = 1) -> None:
    """``count`` session facts of ``size`` bytes; they concern nobody but the log."""
    for _ in range(count):
        log.record(UPDATED, b"." * size, now=now)


def hand_over(log: EventLog, now: float = 0.0) -> list[int]:
    """Everything pending is taken, as by a writer that keeps up; returns the numbers."""
    return [taken.number for taken in log.take(now, ALL, ALL)]


def outline(batch: Iterable[Entry | Skipped] | None) -> list[int | tuple[int, int, str]]:
    """Numbers of what is sent, and (first, last, reason) of what is passed over."""
    assert batch is not None, "a gap"
    return [one.number if isinstance(one, Entry) else (one.first, one.last, str(one.reason)) for one in batch]
