"""The ring of recent input: addressing, forgetting, and bounded memory."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.audio.buffer import UtteranceBuffer

from .signals import noise

AUDIO = noise(4000, dbfs=-6)


def held(buffer: UtteranceBuffer) -> bytes:
    return buffer.slice(buffer.start_sample, buffer.end_sample)


def test_positions_are_samples_since_the_session_began() -> None:
    buffer = UtteranceBuffer(1000)
    buffer.append(AUDIO[:200])
    buffer.append(AUDIO[200:600])
    buffer.drop_before(150)
    assert (buffer.start_sample, buffer.end_sample) == (150, 300)
    assert buffer.slice(160, 290) == AUDIO[320:580]


def test_the_oldest_gives_way_when_it_is_full() -> None:
    buffer = UtteranceBuffer(100)
    buffer.append(AUDIO[:160])
    buffer.append(AUDIO[160:300])
    assert (buffer.start_sample, buffer.end_sample) == (50, 150)
    assert held(buffer) == AUDIO[100:300]


@pytest.mark.parametrize(("start", "end"), [(49, 100), (50, 151), (-1, 60), (100, 99)])
def test_audio_that_is_not_held_is_an_error_not_a_short_answer(start: int, end: int) -> None:
    """(case H-13)"""
    buffer = UtteranceBuffer(100)
    buffer.append(AUDIO[:300])
    with pytest.raises(ValueError, match=r"not within \[50, 150\)"):
        buffer.slice(start, end)


@pytest.mark.parametrize(("sample", "start"), [(-5, 0), (0, 0), (30, 30), (100, 100), (900, 100)])
def test_dropping_is_clamped_and_leaves_the_clock_alone(sample: int, start: int) -> None:
    """(case H-12)"""
    buffer = UtteranceBuffer(1000)
    buffer.append(AUDIO[:200])
    buffer.drop_before(sample)
    assert (buffer.start_sample, buffer.end_sample) == (start, 100)


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="inside a sample"):
        UtteranceBuffer(100).append(b"\x00")


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(-10, 400))))
def test_what_is_held_is_the_input_between_its_two_positions(steps: list[tuple[int, int]]) -> None:
    buffer = UtteranceBuffer(200)
    start = end = 0
    for count, keep_from in steps:
        buffer.append(AUDIO[:2] * count)
        end += count
        buffer.drop_before(keep_from)
        start = min(max(start, end - 200, keep_from), end)
        assert (buffer.start_sample, buffer.end_sample) == (start, end)
        assert held(buffer) == AUDIO[:2] * (end - start)


def test_ten_minutes_of_audio_take_no_more_memory_than_what_is_kept() -> None:
    """(case C-15)"""
    buffer = UtteranceBuffer(24_000 * 30)
    chunk = bytes(2 * 480)
    tracemalloc.start()
    for _ in range(600 * 50):
        buffer.append(chunk)
        buffer.drop_before(buffer.end_sample - 7200)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2 * 7200
