"""Model PCM to wire audio: exact counts, whole samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.encoder import OutputEncoder
from counterpoint.audio.g711 import ULAW
from counterpoint.protocol.audio import ALAW_8K, PCM16_24K, PCM_RATES, ULAW_8K, AudioFormat, Encoding

from .signals import cuts, noise, pieces, sine

WIRE_FORMATS = [PCM16_24K, ULAW_8K, ALAW_8K, AudioFormat(Encoding.FLOAT32, 16_000)]


def encoded(pcm: bytes, model_rate: int, wire: AudioFormat) -> bytes:
    encoder = OutputEncoder(model_rate, wire)
    return encoder.process(pcm) + encoder.flush()


@pytest.mark.parametrize("wire", WIRE_FORMATS)
@pytest.mark.parametrize("model_rate", PCM_RATES)
def test_a_second_is_a_second_in_every_format(model_rate: int, wire: AudioFormat) -> None:
    assert len(encoded(bytes(2 * model_rate), model_rate, wire)) == wire.bytes_per_second


def test_a_second_of_a_model_is_8000_bytes_of_ulaw() -> None:
    """In the model's chunks of 80 ms, the last one shorter (case H-07)."""
    encoder = OutputEncoder(24_000, ULAW_8K)
    pcm = sine(440, 24_000, 24_000)
    out = b"".join(encoder.process(pcm[i : i + 3840]) for i in range(0, len(pcm), 3840))
    assert len(out + encoder.flush()) == 8_000


@settings(max_examples=40, deadline=None)
@given(wire=st.sampled_from(WIRE_FORMATS), places=cuts(2000, unit=2))
def test_output_is_whole_samples_and_does_not_depend_on_chunking(
    wire: AudioFormat, places: list[int]
) -> None:
    """(case H-07, CASE-INV-5)"""
    pcm = noise(2000, dbfs=-6)
    encoder = OutputEncoder(22_050, wire)
    parts = [*(encoder.process(piece) for piece in pieces(pcm, places)), encoder.flush()]
    assert all(len(part) % wire.encoding.sample_bytes == 0 for part in parts)
    assert b"".join(parts) == encoded(pcm, 22_050, wire)


def test_a_flushed_encoder_begins_the_next_part_as_new() -> None:
    encoder = OutputEncoder(24_000, ULAW_8K)
    encoder.process(noise(1000, dbfs=-3))
    encoder.flush()
    pcm = sine(440, 24_000, 1000)
    assert encoder.process(pcm) + encoder.flush() == encoded(pcm, 24_000, ULAW_8K)


def test_the_same_format_copies_nothing() -> None:
    pcm = noise(480, dbfs=-6)
    assert OutputEncoder(24_000, PCM16_24K).process(pcm) is pcm


def test_floats_come_back_as_the_same_samples() -> None:
    every = np.arange(-32768, 32768).astype("<i2").tobytes()
    wire = AudioFormat(Encoding.FLOAT32, 24_000)
    assert InputDecoder().push(encoded(every, 24_000, wire), wire) == every


def test_ulaw_is_made_after_resampling() -> None:
    pcm = sine(440, 24_000, 2400)
    narrow = encoded(pcm, 24_000, AudioFormat(Encoding.PCM16, 8_000))
    assert encoded(pcm, 24_000, ULAW_8K) == ULAW.encode(np.frombuffer(narrow, "<i2"))


@pytest.mark.parametrize("model_rate", [16_000, 24_000])
def test_half_a_sample_of_a_model_is_refused(model_rate: int) -> None:
    with pytest.raises(ValueError, match="inside a sample"):
        OutputEncoder(model_rate, PCM16_24K).process(b"\x00\x00\x00")
