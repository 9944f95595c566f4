"""The event log by example: numbers, bounds, interruption, acknowledgement."""

from __future__ import annotations

import gc

import pytest

from counterpoint.delivery.log import EventLog
from counterpoint.errors import ConfigurationError, ProtocolError
from counterpoint.limits import JournalLimits
from counterpoint.session.effects import Progress, Tag

from .support import (
    ALL,
    AUDIO,
    AUDIO_DONE,
    CREATED,
    ITEM_ADDED,
    OUTPUT_ITEM_ADDED,
    PART_ADDED,
    SPEAK,
    TRANSCRIPT,
    UPDATED,
    audio_tag,
    fill,
    hand_over,
    new_log,
)


def bodies(log: EventLog) -> list[bytes]:
    return [taken.body for taken in log.take(0.0, ALL, ALL)]


class TestNumbers:
    def test_an_entry_is_numbered_when_it_is_taken_and_not_before(self) -> None:
        log = new_log()
        fill(log, 3)
        assert log.head == 0
        assert hand_over(log) == [1, 2, 3]
        assert log.head == 3

    def test_a_restored_session_goes_on_after_its_head(self) -> None:
        log = new_log(head=480)
        fill(log, 1)
        assert hand_over(log) == [481]

    def test_taking_reports_the_tag_when_the_entry_is_already_numbered_and_retained(self) -> None:
        tag = audio_tag("r1", samples=480)
        seen: list[tuple[Tag, int | None, int]] = []
        log = new_log(accepted=lambda tag: seen.append((tag, log.retained(1).number, log.pending_bytes)))
        log.record(AUDIO, b"ab", tag=tag, now=0.0)
        log.record(UPDATED, b"c", now=0.0)
        assert not seen
        hand_over(log)
        assert seen == [(tag, 1, 0)]

    @pytest.mark.parametrize(("max_entries", "max_bytes", "expected"), [(2, ALL, 2), (ALL, 11, 2), (1, 1, 1)])
    def test_a_take_is_bounded_and_never_empty_while_something_waits(
        self, max_entries: int, max_bytes: int, expected: int
    ) -> None:
        log = new_log()
        fill(log, 5, size=10)
        assert len(log.take(0.0, max_entries, max_bytes)) == expected

    def test_the_duplex_object_stays_apart_and_is_counted(self) -> None:
        log = new_log()
        log.record(AUDIO, b"{}", duplex=b'{"epoch":0}', epoch=7, now=0.0)
        assert log.pending_bytes == 13
        (taken,) = log.take(0.0, ALL, ALL)
        assert (taken.body, taken.duplex, taken.epoch) == (b"{}", b'{"epoch":0}', 7)


class TestBounds:
    @pytest.mark.parametrize(
        ("limits", "key"),
        [
            (JournalLimits(max_bytes=0), "journal.max_bytes"),
            (JournalLimits(max_events=-1), "journal.max_events"),
            (JournalLimits(ttl_s=-1.0), "journal.ttl_s"),
        ],
    )
    def test_bounds_that_bound_nothing_are_refused(self, limits: JournalLimits, key: str) -> None:
        with pytest.raises(ConfigurationError) as refused:
            new_log(max_bytes=limits.max_bytes, max_events=limits.max_events, ttl_s=limits.ttl_s)
        assert refused.value.key == key

    def test_overflow_evicts_the_oldest_retained_first(self) -> None:
        """(invariants 121, 122)"""
        log = new_log(max_bytes=30)
        fill(log, 2, size=10)
        hand_over(log)
        fill(log, 2, size=10)
        assert (log.boundary, log.head, log.journal_bytes, log.pending_bytes) == (1, 2, 10, 20)

    def test_overflow_numbers_and_reports_what_nobody_took(self) -> None:
        """(invariant 122)"""
        evicted: list[str | None] = []
        log = new_log(max_bytes=20, accepted=lambda tag: evicted.append(tag.response_id))
        for name in ("r1", "r2", "r3"):
            log.record(AUDIO, b"." * 10, tag=audio_tag(name), now=0.0)
        assert (log.boundary, log.head) == (1, 1)
        assert evicted == ["r1"]

    def test_the_number_of_entries_is_bounded_too(self) -> None:
        log = new_log(max_events=3)
        fill(log, 5)
        assert log.head == 2
        assert hand_over(log) == [3, 4, 5]

    def test_an_entry_larger_than_the_log_is_sent_and_not_retained(self) -> None:
        log = new_log(max_bytes=10)
        fill(log, 2)
        hand_over(log)
        fill(log, 1)
        log.record(UPDATED, b"." * 50, now=0.0)
        assert hand_over(log) == [3, 4]
        assert (log.boundary, log.head, log.bytes_held) == (4, 4, 0)

    def test_of_entries_larger_than_the_log_one_may_wait(self) -> None:
        log = new_log(max_bytes=10)
        for _ in range(3):
            log.record(UPDATED, b"." * 50, now=0.0)
        assert (log.head, log.bytes_held) == (2, 50)
        fill(log, 1)
        assert hand_over(log) == [3, 4]

    def test_its_exemption_ends_with_it_however_it_leaves(self) -> None:
        log = new_log(max_bytes=10, max_events=2)
        log.record(UPDATED, b"." * 50, now=0.0)
        fill(log, 2, size=5)
        fill(log, 1, size=6)
        assert (log.head, log.bytes_held) == (3, 6)

    def test_an_interruption_that_removes_the_large_entry_removes_its_exemption(self) -> None:
        log = new_log(max_bytes=10)
        log.record(AUDIO, b"." * 50, tag=audio_tag("r"), now=0.0)
        log.discard("r", ())
        fill(log, 2, size=10)
        assert log.bytes_held == 10

    def test_an_entry_leaves_exactly_when_it_is_as_old_as_the_bound(self) -> None:
        log = new_log(ttl_s=60.0)
        fill(log, 1)
        hand_over(log, now=100.0)
        log.prune(159.999)
        assert log.boundary == 0
        log.prune(160.0)
        assert log.boundary == 1

    def test_age_counts_from_the_hand_over_and_only_then(self) -> None:
        log = new_log(ttl_s=60.0)
        fill(log, 1, now=0.0)
        log.prune(1000.0)
        assert hand_over(log, now=1000.0) == [1]
        fill(log, 1, now=1059.0)
        assert log.boundary == 0

    def test_recording_lets_old_entries_leave(self) -> None:
        log = new_log(ttl_s=60.0)
        fill(log, 1)
        hand_over(log)
        fill(log, 1, now=60.0)
        assert log.boundary == 1

    def test_without_a_ttl_nothing_leaves_by_age(self) -> None:
        log = new_log(ttl_s=0.0)
        fill(log, 1)
        hand_over(log)
        log.prune(1e9)
        assert log.boundary == 0

    def test_a_retained_entry_costs_the_collector_nothing(self) -> None:
        log = new_log()
        log.record(AUDIO, b"body", tag=audio_tag("r"), now=0.0)
        (taken,) = log.take(1.5, ALL, ALL)
        assert not gc.is_tracked(taken)
        assert not any(gc.is_tracked(part) for part in gc.get_referents(taken) if part is not AUDIO)


class TestInterruption:
    def written(self, log: EventLog) -> None:
        """A response with one announced item and one that is not, as the session writes it."""
        log.record(CREATED, b"created", tag=Tag("r"), now=0.0)
        log.record(SPEAK, b"speak", tag=Tag("r"), now=0.0)
        for item in ("i1", "i2"):
            name = item.encode()
            log.record(
                OUTPUT_ITEM_ADDED, name + b" added", tag=Tag("r", item, progress=Progress.ADDED), now=0.0
            )
            log.record(ITEM_ADDED, name + b" listed", tag=Tag("r", item, progress=Progress.LISTED), now=0.0)
            log.record(PART_ADDED, name + b" part", tag=Tag("r", item, progress=Progress.PART_ADDED), now=0.0)
            log.record(TRANSCRIPT, name + b" text", tag=audio_tag("r", item), now=0.0)
            log.record(AUDIO, name + b" audio", tag=audio_tag("r", item), now=0.0)
            log.record(AUDIO_DONE, name + b" done", tag=Tag("r", item, progress=Progress.AUDIO_DONE), now=0.0)
        log.record(AUDIO, b"other", tag=audio_tag("q"), now=0.0)
        log.record(UPDATED, b"updated", now=0.0)

    def test_deltas_terminals_and_items_not_announced_are_removed_and_nothing_else(self) -> None:
        """(invariant 123)"""
        log = new_log()
        self.written(log)
        log.discard("r", {"i2"})
        assert bodies(log) == [
            b"created",
            b"speak",
            b"i1 added",
            b"i1 listed",
            b"i1 part",
            b"other",
            b"updated",
        ]

    def test_there_is_no_hole_where_entries_were_removed(self) -> None:
        log = new_log()
        self.written(log)
        log.take(0.0, 3, ALL)
        log.discard("r", {"i2"})
        assert hand_over(log) == [4, 5, 6, 7]

    def test_removed_entries_are_not_reported_and_not_counted(self) -> None:
        reported: list[Tag] = []
        log = new_log(accepted=reported.append)
        for _ in range(3):
            log.record(AUDIO, b"." * 10, duplex=b"{}", tag=audio_tag("r"), now=0.0)
        log.discard("r", ())
        assert (log.pending_bytes, log.bytes_held, hand_over(log), reported) == (0, 0, [], [])

    def test_interrupted_responses_are_forgotten_with_their_entries(self) -> None:
        log = new_log()
        for number in range(1, 1001):
            log.record(AUDIO, b"a", tag=audio_tag(f"r{number}"), now=0.0)
            hand_over(log)
            log.discard(f"r{number}", ())
            log.acknowledge(number)
        assert len(log._interrupted) <= 1


class TestAcknowledgement:
    def test_what_was_processed_leaves(self) -> None:
        log = new_log()
        fill(log, 5, size=10)
        hand_over(log)
        assert log.acknowledge(3) == 3
        assert (log.boundary, log.head, log.journal_bytes) == (3, 5, 20)

    def test_again_or_older_changes_nothing(self) -> None:
        log = new_log()
        fill(log, 5)
        hand_over(log)
        log.acknowledge(3)
        assert [log.acknowledge(number) for number in (3, 1, 0)] == [0, 0, 0]
        assert log.boundary == 3

    @pytest.mark.parametrize("number", [-1, 4, 1 << 63])
    def test_a_number_that_was_never_given_is_refused(self, number: int) -> None:
        log = new_log()
        fill(log, 5)
        log.take(0.0, 3, ALL)
        with pytest.raises(ProtocolError) as refused:
            log.acknowledge(number)
        assert (refused.value.code, refused.value.param) == ("invalid_event_ack", "server_event_seq")
        assert (log.boundary, log.head) == (0, 3)


class TestListening:
    def test_the_listener_hears_of_the_first_entry_only_until_it_takes(self) -> None:
        woken: list[int] = []
        log = new_log()
        log.listen(lambda: woken.append(log.head))
        fill(log, 3)
        hand_over(log)
        fill(log, 1)
        assert woken == [0, 3]

    def test_it_hears_of_an_interruption_too(self) -> None:
        """What it waits for may be gone."""
        woken: list[int] = []
        log = new_log()
        fill(log, 1)
        log.listen(lambda: woken.append(1))
        log.discard("r", ())
        assert woken == [1]

    def test_after_none_nobody_is_called(self) -> None:
        log = new_log()
        log.listen(lambda: pytest.fail("called"))
        log.listen(None)
        fill(log, 1)
        assert log.pending_bytes == 1


def test_numbering_and_dropping_everything_reports_everything() -> None:
    reported: list[Tag] = []
    log = new_log(accepted=reported.append)
    fill(log, 2)
    hand_over(log)
    log.record(AUDIO, b"a", tag=audio_tag("r"), now=0.0)
    log.record(UPDATED, b"b", now=0.0)
    assert log.number_and_drop_all() == 4
    assert (log.boundary, log.bytes_held, reported) == (4, 0, [audio_tag("r")])


def test_a_closed_log_holds_nothing_and_reports_nothing() -> None:
    log = new_log(accepted=lambda tag: pytest.fail("reported"))
    log.record(AUDIO, b"a", tag=audio_tag("r"), now=0.0)
    log.close()
    assert (log.bytes_held, log.head, hand_over(log)) == (0, 0, [])
