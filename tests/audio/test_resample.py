"""The resampler for every pair of rates: length, delay, alignment, quality, independence of chunking."""

from itertools import permutations
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.audio.resample import _WEIGHT_SCALE, StreamingResampler, _design
from counterpoint.protocol.audio import PCM_RATES

from .signals import cuts, noise, pcm16, pieces, samples_of, sine

PAIRS = list(permutations(PCM_RATES, 2))
every_pair = pytest.mark.parametrize(("src", "dst"), PAIRS)


def converted(pcm: bytes, src: int, dst: int) -> bytes:
    resampler = StreamingResampler(src, dst)
    return resampler.process(pcm) + resampler.flush()


def level_db(pcm: bytes, *, amplitude: float = 0.6) -> float:
    """Of the middle of ``pcm``, relative to a sine of that amplitude."""
    middle = samples_of(pcm)[len(pcm) // 8 : -len(pcm) // 8]
    rms = np.sqrt(np.square(middle).mean()) / (amplitude * 32767 / np.sqrt(2))
    return float(20 * np.log10(rms + 1e-9))


@every_pair
@pytest.mark.parametrize("samples", [0, 1, 2, 441, 1237, 48_000])
def test_output_is_exactly_as_long_as_the_input(src: int, dst: int, samples: int) -> None:
    assert len(converted(bytes(2 * samples), src, dst)) == 2 * (samples * dst // src)


@settings(max_examples=60, deadline=None)
@given(pair=st.sampled_from(PAIRS), places=cuts(3000, unit=2))
def test_output_does_not_depend_on_chunking(pair: tuple[int, int], places: list[int]) -> None:
    """Byte for byte (invariant 37)."""
    src, dst = pair
    signal = noise(3000, dbfs=-6)
    resampler = StreamingResampler(src, dst)
    out = b"".join(resampler.process(piece) for piece in pieces(signal, places)) + resampler.flush()
    assert out == converted(signal, src, dst)


@pytest.mark.parametrize(("src", "dst"), [(16_000, 24_000), (22_050, 24_000), (48_000, 8_000)])
def test_sample_by_sample_is_the_same_as_all_at_once(src: int, dst: int) -> None:
    signal = noise(500, dbfs=-6)
    resampler = StreamingResampler(src, dst)
    out = b"".join(resampler.process(signal[i : i + 2]) for i in range(0, len(signal), 2))
    assert out + resampler.flush() == converted(signal, src, dst)


def test_a_long_append_is_the_same_as_many_short_ones() -> None:
    signal = noise(200_000, dbfs=-6)
    resampler = StreamingResampler(44_100, 24_000)
    out = b"".join(resampler.process(signal[i : i + 882]) for i in range(0, len(signal), 882))
    assert out + resampler.flush() == converted(signal, 44_100, 24_000)


@every_pair
def test_sums_are_exact_in_every_order(src: int, dst: int) -> None:
    """Whole weights whose largest sum fits a float64: why chunking and BLAS cannot change a bit."""
    weights = _design(src, dst).weights * _WEIGHT_SCALE
    assert (weights == np.rint(weights)).all()
    assert np.abs(weights).sum(axis=0).max() * 32768 < 2**53


@every_pair
def test_at_most_two_milliseconds_are_held_back(src: int, dst: int) -> None:
    resampler = StreamingResampler(src, dst)
    taken = given = 0
    for samples in (1, 7, 160, 3, 441, 960, 2):
        given += len(resampler.process(bytes(2 * samples))) // 2
        taken += samples
        assert resampler.pending_samples == taken * dst // src - given
        assert 0 <= resampler.pending_samples <= ceil(0.002 * dst)


@every_pair
def test_speech_passes_unchanged(src: int, dst: int) -> None:
    slower = min(src, dst)
    for fraction in (0.02, 0.1, 0.25, 0.39):
        out = converted(sine(fraction * slower, src, src // 4), src, dst)
        assert abs(level_db(out)) < 0.1, fraction


@pytest.mark.parametrize(("src", "dst"), [(src, dst) for src, dst in PAIRS if src > dst])
def test_what_the_slower_rate_cannot_hold_is_removed(src: int, dst: int) -> None:
    highest = 0.5 * src / dst
    for fraction in (0.51, 0.6, 0.9, 1.4):
        if fraction < highest:
            assert level_db(converted(sine(fraction * dst, src, src // 4), src, dst)) < -50, fraction


@every_pair
def test_nothing_is_added_to_a_tone(src: int, dst: int) -> None:
    hertz = 0.3 * min(src, dst)
    out = samples_of(converted(sine(hertz, src, src // 4), src, dst))[dst // 50 : -dst // 50]
    phase = 2 * np.pi * hertz / dst * np.arange(len(out))
    basis = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    rest = out - basis @ np.linalg.lstsq(basis, out)[0]
    assert level_db(pcm16(np.rint(rest))) < -50


@every_pair
def test_output_is_aligned_in_time_with_the_input(src: int, dst: int) -> None:
    hertz = 0.1 * min(src, dst)
    out = samples_of(converted(sine(hertz, src, src // 4), src, dst))
    expected = samples_of(sine(hertz, dst, len(out)))
    middle = slice(dst // 50, -dst // 50)
    assert np.abs(out - expected)[middle].max() < 0.002 * 32767


@every_pair
@pytest.mark.parametrize("value", [-32768, -1, 12_345, 32767])
def test_a_constant_stays_that_constant(src: int, dst: int, value: int) -> None:
    out = samples_of(converted(pcm16(np.full(src // 20, value)), src, dst))
    assert (out[dst // 400 : -dst // 400] == value).all()


def test_overshoot_is_clipped_and_does_not_wrap() -> None:
    square = np.where(np.arange(1600) // 40 % 2, 32767, -32768)
    out = samples_of(converted(pcm16(square), 8_000, 24_000))
    beside_edges = (np.arange(len(out)) + 4) % 120 >= 8
    assert (np.sign(out) == np.sign(np.repeat(square, 3)))[beside_edges].all()
    assert out.max() == 32767
    assert out.min() == -32768


def test_equal_rates_copy_nothing() -> None:
    resampler = StreamingResampler(24_000, 24_000)
    pcm = noise(100, dbfs=-6)
    assert resampler.process(pcm) is pcm
    assert resampler.flush() == b""


def test_a_flushed_resampler_is_as_new() -> None:
    resampler = StreamingResampler(16_000, 24_000)
    resampler.process(noise(333, dbfs=-6))
    resampler.flush()
    signal = noise(777, dbfs=-6, seed=2)
    assert resampler.pending_samples == 0
    assert resampler.process(signal) + resampler.flush() == converted(signal, 16_000, 24_000)


@pytest.mark.parametrize("size", [1, 3, 959])
def test_half_a_sample_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        StreamingResampler(16_000, 24_000).process(bytes(size))
