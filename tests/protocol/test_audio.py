"""Audio formats: sizes of samples, and arithmetic that rounds down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.protocol.audio import (
    PCM16_24K,
    PCM_RATES,
    ULAW_8K,
    AudioFormat,
    Encoding,
    ms_to_samples,
    samples_to_ms,
)


@pytest.mark.parametrize(
    ("audio", "bytes_per_ms"),
    [
        (PCM16_24K, 48),
        (ULAW_8K, 8),
        (AudioFormat(Encoding.ALAW, 8_000), 8),
        (AudioFormat(Encoding.FLOAT32, 16_000), 64),
    ],
)
def test_a_millisecond_has_so_many_bytes(audio: AudioFormat, bytes_per_ms: int) -> None:
    assert audio.bytes_per_second == bytes_per_ms * 1000


@given(st.integers(0, 10**9), st.sampled_from(PCM_RATES))
def test_durations_round_down(samples: int, rate: int) -> None:
    """(case F-09)"""
    ms = samples_to_ms(samples, rate)
    assert ms_to_samples(ms, rate) <= samples < ms_to_samples(ms + 1, rate) + 1
