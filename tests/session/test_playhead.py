"""The server's guess of a silent client's playback (wire contract, section 7, policy ``auto``)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from counterpoint.session.playhead import Playhead

RATE = 24_000


def test_playback_starts_with_the_first_audio_and_runs_at_real_speed() -> None:
    head = Playhead(RATE, start=10.0)
    assert head.played(10.5) == 0
    head.hand_over(4 * RATE, 10.5)
    assert [head.played(at) / RATE for at in (10.5, 11.0, 12.5, 14.5, 99.0)] == [0, 0.5, 2.0, 4.0, 4.0]
    assert head.ends_at == 14.5


def test_playback_waits_where_there_is_no_more_audio() -> None:
    """As while no connection is attached: later audio starts when it comes (wire contract, section 3)."""
    head = Playhead(RATE, start=0.0)
    head.hand_over(RATE, 0.0)
    head.hand_over(2 * RATE, 30.0)
    assert [head.played(at) / RATE for at in (30.0, 30.25, 31.0)] == [1.0, 1.25, 2.0]


def test_audio_in_small_pieces_plays_like_audio_in_one() -> None:
    head = Playhead(RATE, start=0.0)
    for piece in range(50):
        head.hand_over((piece + 1) * RATE // 50, piece * 0.001)
    assert abs(head.played(0.73) - 0.73 * RATE) <= 1


def test_a_playhead_may_have_to_wait_for_another() -> None:
    head = Playhead(RATE, start=5.0)
    head.hand_over(RATE, 1.0)
    assert [head.played(at) for at in (4.9, 5.0, 5.5)] == [0, 0, RATE // 2]
    assert head.ends_at == 6.0


def test_a_stopped_playhead_stays_and_leaves_the_stage() -> None:
    head = Playhead(RATE, start=0.0)
    head.hand_over(8 * RATE, 0.0)
    head.stop(1.0)
    assert (head.played(1.0), head.played(50.0), head.ends_at) == (RATE, RATE, 1.0)


def test_one_that_never_started_leaves_the_stage_at_once() -> None:
    head = Playhead(RATE, start=100.0)
    head.hand_over(RATE, 1.0)
    head.stop(2.0)
    assert (head.played(101.0), head.ends_at) == (0, 2.0)


@given(st.lists(st.tuples(st.integers(0, RATE), st.floats(0.0, 2.0)), min_size=1, max_size=30))
def test_it_never_falls_nor_overtakes_what_was_handed_over(steps: list[tuple[int, float]]) -> None:
    head, now, sent, before = Playhead(RATE, start=0.0), 0.0, 0, 0
    for samples, elapsed in steps:
        now += elapsed
        assert before <= head.played(now) <= sent
        before = head.played(now)
        sent += samples
        head.hand_over(sent, now)
        assert head.played(now) == before
