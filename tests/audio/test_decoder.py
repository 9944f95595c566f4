"""Wire audio to canonical PCM: exact counts, whatever the cuts, formats and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.g711 import ALAW, ULAW, Law
from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import ALAW_8K, PCM16_24K, PCM_RATES, ULAW_8K, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode

from .signals import cuts, noise, pcm16, pieces, sine

FLOAT_24K = AudioFormat(Encoding.FLOAT32, 24_000)
PCM16_16K = AudioFormat(Encoding.PCM16, 16_000)
WIRE_FORMATS = [
    ULAW_8K,
    ALAW_8K,
    *(AudioFormat(encoding, rate) for encoding in (Encoding.PCM16, Encoding.FLOAT32) for rate in PCM_RATES),
]


def floats(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def decoded(audio: bytes, fmt: AudioFormat) -> bytes:
    decoder = InputDecoder()
    return decoder.push(audio, fmt) + decoder.end()


@pytest.mark.parametrize("fmt", WIRE_FORMATS)
def test_a_second_is_a_second_in_every_format(fmt: AudioFormat) -> None:
    """(cases H-07, H-09)"""
    assert len(decoded(bytes(fmt.bytes_per_second), fmt)) == 48_000


def test_canonical_audio_passes_without_a_copy() -> None:
    audio = noise(480, dbfs=-6)
    assert InputDecoder().push(audio, PCM16_24K) is audio


def test_odd_chunks_lose_no_sample_in_a_hundred_thousand_appends() -> None:
    """(case H-11)"""
    decoder = InputDecoder()
    chunk = bytes(2 * 441)
    assert sum(len(decoder.push(chunk, PCM16_24K)) for _ in range(100_000)) == 2 * 441 * 100_000


def test_resampled_chunks_lose_no_sample_either() -> None:
    """(case H-11)"""
    decoder = InputDecoder()
    fmt = AudioFormat(Encoding.PCM16, 44_100)
    count = sum(len(decoder.push(bytes(2 * 441), fmt)) for _ in range(10_000))
    assert count + len(decoder.end()) == 2 * 240 * 10_000


@settings(max_examples=60, deadline=None)
@given(fmt=st.sampled_from(WIRE_FORMATS), data=st.data())
def test_output_does_not_depend_on_where_bytes_are_cut(fmt: AudioFormat, data: st.DataObject) -> None:
    """Also inside a sample (invariants 36, 37)."""
    tone = np.frombuffer(sine(440, fmt.rate, 1500), "<i2")
    audio = {
        Encoding.PCM16: tone.tobytes(),
        Encoding.FLOAT32: (tone / np.float32(32768)).astype("<f4").tobytes(),
        Encoding.ULAW: ULAW.encode(tone),
        Encoding.ALAW: ALAW.encode(tone),
    }[fmt.encoding]
    places = data.draw(cuts(len(audio)))
    decoder = InputDecoder()
    out = b"".join(decoder.push(piece, fmt) for piece in pieces(audio, places))
    assert out + decoder.end() == decoded(audio, fmt)


def test_an_odd_byte_waits_for_the_next_append() -> None:
    """(invariant 36)"""
    decoder = InputDecoder()
    assert decoder.push(b"\x01\x02\x03", PCM16_24K) == b"\x01\x02"
    assert decoder.push(b"\x04", PCM16_24K) == b"\x03\x04"


def test_end_drops_an_odd_byte() -> None:
    """(wire contract, section 4)"""
    decoder = InputDecoder()
    decoder.push(b"\x01\x02\x03", PCM16_24K)
    assert decoder.end() == b""
    assert decoder.push(b"\x04\x05", PCM16_24K) == b"\x04\x05"


def test_end_leaves_nothing_for_the_next_item() -> None:
    """(wire contract, section 4)"""
    decoder = InputDecoder()
    decoder.push(noise(1000, dbfs=-3), PCM16_16K)
    decoder.end()
    signal = sine(300, 16_000, 1000)
    assert decoder.push(signal, PCM16_16K) + decoder.end() == decoded(signal, PCM16_16K)


def test_pending_samples_are_what_end_returns() -> None:
    decoder = InputDecoder()
    assert decoder.pending_samples == 0
    out = decoder.push(bytes(2 * 1600 + 1), PCM16_16K)
    assert decoder.pending_samples == 2400 - len(out) // 2 > 0
    assert len(decoder.end()) // 2 == 2400 - len(out) // 2


def test_an_empty_append_changes_nothing() -> None:
    """Not even the format (case H-03)."""
    decoder = InputDecoder()
    first = decoder.push(sine(300, 16_000, 500), PCM16_16K)
    assert decoder.push(b"", FLOAT_24K) == b""
    rest = decoder.push(sine(300, 16_000, 500), PCM16_16K) + decoder.end()
    assert first + rest == decoded(sine(300, 16_000, 500) * 2, PCM16_16K)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_bad_floats_are_refused_without_a_trace(bad: float) -> None:
    """(invariant 36)"""
    decoder = InputDecoder()
    first = decoder.push(sine(300, 16_000, 500) + b"\x01", PCM16_16K)
    with pytest.raises(ProtocolError) as refusal:
        decoder.push(floats(0.5, bad), FLOAT_24K)
    assert refusal.value.code == ErrorCode.INVALID_AUDIO
    assert refusal.value.param == "audio"
    rest = decoder.push(b"\x02" + sine(300, 16_000, 500), PCM16_16K) + decoder.end()
    assert first + rest == decoded(sine(300, 16_000, 500) + b"\x01\x02" + sine(300, 16_000, 500), PCM16_16K)


def test_a_bad_float_is_found_when_its_last_byte_comes() -> None:
    """The carried bytes stay, so that a good ending can still come (invariant 36)."""
    decoder = InputDecoder()
    bad, good = floats(float("nan")), floats(0.5)
    assert bad[:2] == good[:2]
    assert decoder.push(bad[:2], FLOAT_24K) == b""
    with pytest.raises(ProtocolError):
        decoder.push(bad[2:], FLOAT_24K)
    assert decoder.push(good[2:], FLOAT_24K) == pcm16(np.array([16_384]))


def test_floats_are_clipped_to_full_scale() -> None:
    audio = floats(-3e38, -1.0, -0.5, 0.0, 0.5, 1.0, 3e38)
    expected = np.array([-32768, -32768, -16384, 0, 16384, 32767, 32767])
    assert InputDecoder().push(audio, FLOAT_24K) == pcm16(expected)


def test_every_int16_survives_as_a_float() -> None:
    every = np.arange(-32768, 32768)
    audio = (every / 32768).astype("<f4").tobytes()
    assert InputDecoder().push(audio, FLOAT_24K) == pcm16(every)


def test_a_change_of_format_keeps_the_count_exact() -> None:
    """What the old resampler held back comes out first, and an odd byte of it is dropped."""
    decoder = InputDecoder()
    out = decoder.push(bytes(2 * 1600 + 1), PCM16_16K)
    out += decoder.push(b"\x11\x11", PCM16_24K)
    assert out == bytes(2 * 2400) + b"\x11\x11"


@settings(max_examples=40, deadline=None)
@given(plan=st.lists(st.sampled_from(WIRE_FORMATS), max_size=20))
def test_any_sequence_of_formats_keeps_the_count_exact(plan: list[AudioFormat]) -> None:
    """20 ms are a whole number of samples at every rate of the wire."""
    decoder = InputDecoder()
    out = b"".join(decoder.push(bytes(fmt.bytes_per_second // 50), fmt) for fmt in plan)
    assert len(out + decoder.end()) == 2 * 480 * len(plan)


@pytest.mark.parametrize(("fmt", "law"), [(ULAW_8K, ULAW), (ALAW_8K, ALAW)], ids=["ulaw", "alaw"])
def test_g711_is_expanded_before_it_is_resampled(fmt: AudioFormat, law: Law) -> None:
    codes = law.encode(np.frombuffer(sine(440, 8000, 800), "<i2"))
    narrow = AudioFormat(Encoding.PCM16, 8_000)
    assert decoded(codes, fmt) == decoded(law.decode(codes).astype("<i2").tobytes(), narrow)
