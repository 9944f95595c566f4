"""Replay: what a resumed connection is sent again, what is passed over, when it gets a snapshot instead."""

from __future__ import annotations

import pytest

from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.log import EventLog
from counterpoint.errors import ResumeRefused
from counterpoint.protocol.commands import ReplayPolicy

from .support import ALL, AUDIO, TRANSCRIPT, audio_tag, fill, hand_over, new_log, outline


def rest(cursor: Cursor) -> list[int | tuple[int, int, str]]:
    """Everything that the cursor has to give, in as few batches as it takes."""
    seen: list[int | tuple[int, int, str]] = []
    while batch := cursor.take(0.0, ALL, ALL):
        seen += outline(batch)
    return seen


def spoken(log: EventLog, response: str, chunks: int, *, item: str = "item", step: int = 100) -> None:
    """``chunks`` pairs of a transcript delta and an audio delta of ``step`` samples, as a model speaks."""
    for chunk in range(1, chunks + 1):
        log.record(TRANSCRIPT, b"t", tag=audio_tag(response, item), now=0.0)
        log.record(AUDIO, b"a", tag=audio_tag(response, item, samples=chunk * step), now=0.0)


class TestPosition:
    def test_before_any_event(self) -> None:
        """(case A-02 a, b)"""
        cursor = new_log().replay(0, 0.0)
        assert (cursor.first, cursor.last, cursor.gap, cursor.dropped_audio_events) == (None, None, False, 0)
        assert rest(cursor) == []

    def test_after_a_long_silence_with_nothing_missed(self) -> None:
        """Everything aged out or was acknowledged, and the client has all of it (case A-02 c)."""
        aged = new_log(ttl_s=60.0)
        fill(aged, 5)
        hand_over(aged)
        acknowledged = new_log()
        fill(acknowledged, 5)
        hand_over(acknowledged)
        acknowledged.acknowledge(5)
        for log in (aged, acknowledged):
            cursor = log.replay(5, 1000.0)
            assert (log.boundary, cursor.gap, cursor.first, cursor.last) == (5, False, None, None)
            fill(log, 1, now=1000.0)
            assert rest(cursor) == [6]

    def test_at_the_boundary_nothing_is_missing(self) -> None:
        log = new_log()
        fill(log, 5)
        hand_over(log)
        log.acknowledge(3)
        cursor = log.replay(3, 0.0)
        assert (cursor.gap, cursor.first, cursor.last) == (False, 4, 5)
        assert rest(cursor) == [4, 5]

    @pytest.mark.parametrize(
        ("after", "code"),
        [
            (41, "session_resume_conflict"),
            (1040, "session_resume_conflict"),
            (1 << 63, "session_resume_conflict"),
            (-1, "invalid_session_resume"),
        ],
    )
    def test_a_position_from_the_future_is_refused_and_changes_nothing(self, after: int, code: str) -> None:
        """The attached connection keeps receiving (case A-06)."""
        log = new_log()
        fill(log, 42)
        owner = log.replay(0, 0.0)
        owner.take(0.0, 40, ALL)
        with pytest.raises(ResumeRefused) as refused:
            log.replay(after, 0.0)
        assert refused.value.code == code
        assert rest(owner) == [41, 42]

    def test_replayed_pending_and_live_entries_follow_without_a_seam(self) -> None:
        """(case A-07)"""
        log = new_log()
        fill(log, 60)
        log.take(0.0, 55, ALL)
        cursor = log.replay(50, 0.0)
        seen = outline(cursor.take(0.0, 3, ALL))
        fill(log, 2)
        seen += outline(cursor.take(0.0, 1, ALL))
        fill(log, 2)
        assert seen + rest(cursor) == list(range(51, 65))

    def test_it_numbers_pending_entries_only_when_it_reaches_them(self) -> None:
        log = new_log()
        fill(log, 4)
        log.take(0.0, 2, ALL)
        cursor = log.replay(0, 0.0)
        cursor.take(0.0, ALL, ALL)
        assert log.head == 2
        cursor.take(0.0, 1, ALL)
        assert log.head == 3

    @pytest.mark.parametrize(("max_entries", "max_bytes"), [(2, ALL), (ALL, 11)])
    def test_a_replay_is_taken_in_bounded_batches(self, max_entries: int, max_bytes: int) -> None:
        log = new_log()
        fill(log, 5, size=10)
        hand_over(log)
        cursor = log.replay(0, 0.0)
        assert outline(cursor.take(0.0, max_entries, max_bytes)) == [1, 2]


class TestGap:
    def test_a_position_before_the_boundary_is_a_gap_and_never_a_replay(self) -> None:
        log = new_log()
        fill(log, 5)
        hand_over(log)
        log.acknowledge(3)
        cursor = log.replay(2, 0.0)
        assert (cursor.gap, cursor.first, cursor.last) == (True, None, None)

    def test_pruning_at_the_replay_can_make_it_one(self) -> None:
        log = new_log(ttl_s=60.0)
        fill(log, 5)
        hand_over(log)
        assert not log.replay(4, 59.9).gap
        assert log.replay(4, 60.0).gap

    def test_after_the_snapshot_live_events_follow_from_the_next_number(self) -> None:
        log = new_log(head=10)
        fill(log, 3)
        log.take(0.0, 1, ALL)
        cursor = log.replay(5, 0.0)
        assert cursor.jump() == 13
        assert (cursor.gap, log.boundary, log.bytes_held) == (False, 13, 0)
        fill(log, 2)
        assert rest(cursor) == [14, 15]

    def test_a_connection_that_lags_behind_an_overflow_is_in_a_gap(self) -> None:
        log = new_log(max_events=3)
        cursor = log.replay(0, 0.0)
        fill(log, 3)
        assert not cursor.gap
        fill(log, 1)
        assert cursor.gap

    def test_overflow_of_what_it_was_sent_is_none(self) -> None:
        log = new_log(max_events=3)
        cursor = log.replay(0, 0.0)
        fill(log, 3)
        rest(cursor)
        fill(log, 3)
        assert not cursor.gap
        assert rest(cursor) == [4, 5, 6]


class TestAcknowledgedAhead:
    def test_what_was_processed_on_an_earlier_connection_is_announced_as_passed_over(self) -> None:
        log = new_log()
        fill(log, 6)
        hand_over(log)
        cursor = log.replay(1, 0.0)
        seen = outline(cursor.take(0.0, 1, ALL))
        log.acknowledge(4)
        assert not cursor.gap
        assert seen + rest(cursor) == [2, (3, 4, "replay_policy"), 5, 6]

    def test_asking_for_a_replay_of_what_was_acknowledged_is_a_gap(self) -> None:
        log = new_log()
        fill(log, 6)
        hand_over(log)
        log.acknowledge(4)
        assert log.replay(2, 0.0).gap


class TestPolicies:
    def test_full_sends_everything_again(self) -> None:
        log = new_log()
        spoken(log, "r", 3)
        hand_over(log)
        cursor = log.replay(0, 0.0, ReplayPolicy.FULL)
        assert cursor.dropped_audio_events == 0
        assert rest(cursor) == [1, 2, 3, 4, 5, 6]

    def test_no_audio_passes_over_audio_in_its_place(self) -> None:
        log = new_log()
        spoken(log, "r", 2)
        log.record(AUDIO, b"a", tag=audio_tag("r", samples=300), now=0.0)
        hand_over(log)
        cursor = log.replay(0, 0.0, ReplayPolicy.NO_AUDIO)
        assert cursor.dropped_audio_events == 3
        assert rest(cursor) == [1, (2, 2, "replay_policy"), 3, (4, 5, "replay_policy")]

    def test_no_audio_is_about_what_was_sent_before(self) -> None:
        """What nobody was handed yet is not sent again but for the first time."""
        log = new_log()
        spoken(log, "r", 1)
        hand_over(log)
        spoken(log, "r", 1)
        assert rest(log.replay(0, 0.0, ReplayPolicy.NO_AUDIO)) == [1, (2, 2, "replay_policy"), 3, 4]

    def test_from_playhead_passes_over_what_was_played(self) -> None:
        log = new_log()
        spoken(log, "r", 3, item="i1")
        spoken(log, "r", 1, item="i2")
        hand_over(log)
        cursor = log.replay(0, 0.0, ReplayPolicy.FROM_PLAYHEAD, {("i1", 0): 200})
        assert cursor.dropped_audio_events == 2
        assert rest(cursor) == [1, (2, 2, "replay_policy"), 3, (4, 4, "replay_policy"), 5, 6, 7, 8]

    @pytest.mark.parametrize(("played", "sent"), [(99, True), (100, False), (101, False)])
    def test_audio_that_ends_at_the_playhead_was_played(self, played: int, sent: bool) -> None:
        log = new_log()
        log.record(AUDIO, b"a", tag=audio_tag("r", samples=100), now=0.0)
        hand_over(log)
        cursor = log.replay(0, 0.0, ReplayPolicy.FROM_PLAYHEAD, {("item", 0): played})
        assert rest(cursor) == ([1] if sent else [(1, 1, "replay_policy")])


class TestInterruptedAudio:
    @pytest.mark.parametrize("policy", list(ReplayPolicy))
    def test_it_is_never_sent_again_whatever_the_policy(self, policy: ReplayPolicy) -> None:
        log = new_log()
        spoken(log, "r", 2)
        hand_over(log)
        log.discard("r", ())
        cursor = log.replay(0, 0.0, policy)
        assert cursor.dropped_audio_events == 2
        assert rest(cursor) == [1, (2, 2, "interrupted"), 3, (4, 4, "interrupted")]

    def test_an_interruption_during_the_replay_counts(self) -> None:
        log = new_log()
        spoken(log, "r", 3)
        hand_over(log)
        cursor = log.replay(0, 0.0)
        assert outline(cursor.take(0.0, 2, ALL)) == [1, 2]
        log.discard("r", ())
        assert rest(cursor) == [3, (4, 4, "interrupted"), 5, (6, 6, "interrupted")]

    def test_neighbours_are_announced_as_one_range_and_each_reason_apart(self) -> None:
        log = new_log()
        for response in ("r", "r", "q", "q", "r"):
            log.record(AUDIO, b"a", tag=audio_tag(response), now=0.0)
        hand_over(log)
        log.discard("r", ())
        cursor = log.replay(0, 0.0, ReplayPolicy.NO_AUDIO)
        assert rest(cursor) == [(1, 2, "interrupted"), (3, 4, "replay_policy"), (5, 5, "interrupted")]

    def test_other_responses_are_not_touched(self) -> None:
        log = new_log()
        spoken(log, "r", 1)
        spoken(log, "q", 1)
        hand_over(log)
        log.discard("r", ())
        assert rest(log.replay(0, 0.0)) == [1, (2, 2, "interrupted"), 3, 4]

    def test_it_is_remembered_while_its_audio_is_retained(self) -> None:
        log = new_log()
        spoken(log, "r", 1)
        hand_over(log)
        log.discard("r", ())
        spoken(log, "q", 1)
        hand_over(log)
        log.discard("q", ())
        assert rest(log.replay(0, 0.0)) == [1, (2, 2, "interrupted"), 3, (4, 4, "interrupted")]
