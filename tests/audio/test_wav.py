"""WAV files of every common kind are read; everything else is refused in one sentence."""

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.audio.wav import NotAWav, read_wav, write_wav

RATE = 24_000
TONE = 0.5 * np.sin(np.arange(2400) * 2 * np.pi * 440 / RATE)


def wav(form: bytes, data: bytes, *, before: bytes = b"") -> bytes:
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + before
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def form(encoding: int, bits: int, channels: int = 1, rate: int = RATE) -> bytes:
    width = channels * bits // 8
    return struct.pack("<HHIIHH", encoding, channels, rate, rate * width, width, bits)


def encoded(samples: np.ndarray, encoding: int, bits: int) -> bytes:
    if encoding == 3:
        return samples.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    whole = np.round(samples * (2 ** (bits - 1) - 1)).astype("<i8")
    raw = whole.view(np.uint8).reshape(-1, 8)
    return bytes(raw[:, : bits // 8].tobytes())


def read(tmp_path: Path, raw: bytes) -> np.ndarray:
    path = tmp_path / "x.wav"
    path.write_bytes(raw)
    return np.frombuffer(read_wav(path), "<i2") / 32768


@pytest.mark.parametrize(("encoding", "bits"), [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_every_sample_format_and_any_number_of_channels(
    tmp_path: Path, encoding: int, bits: int, channels: int
) -> None:
    interleaved = np.repeat(TONE, channels)
    found = read(tmp_path, wav(form(encoding, bits, channels), encoded(interleaved, encoding, bits)))
    assert len(found) == len(TONE)
    assert np.abs(found - TONE).max() < (0.02 if bits == 8 else 0.001)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000])
def test_every_common_rate(tmp_path: Path, rate: int) -> None:
    tone = 0.5 * np.sin(np.arange(rate) * 2 * np.pi * 440 / rate)
    found = read(tmp_path, wav(form(1, 16, rate=rate), encoded(tone, 1, 16)))
    assert abs(len(found) - RATE) <= 1
    assert np.abs(np.fft.rfft(found)).argmax() == pytest.approx(440, abs=1)


def test_an_extensible_header_and_chunks_in_between(tmp_path: Path) -> None:
    extensible = struct.pack("<HHIIHH", 0xFFFE, 1, RATE, RATE * 2, 2, 16) + struct.pack("<HHIH", 22, 16, 0, 1)
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    raw = wav(extensible + bytes(14), encoded(TONE, 1, 16), before=odd)
    assert np.abs(read(tmp_path, raw) - TONE).max() < 0.001


def test_a_stream_without_a_length_is_read_to_its_end(tmp_path: Path) -> None:
    raw = bytearray(wav(form(1, 16), encoded(TONE, 1, 16)))
    position = raw.index(b"data") + 4
    raw[position : position + 4] = b"\xff\xff\xff\xff"
    assert len(read(tmp_path, bytes(raw))) == len(TONE)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"ID3 and so on, not audio of this kind", "not a WAV"),
        (wav(form(1, 16), b"")[:30], "cut off"),
        (wav(form(1, 16), b""), "no audio"),
        (wav(b"\1\0", b"\0\0"), "cut off"),
        (wav(form(2, 4), b"\0\0"), "not supported"),
        (wav(form(1, 16, channels=0), b"\0\0"), "not supported"),
        (wav(form(1, 16, rate=1), b"\0\0"), "not supported"),
        (wav(form(1, 16, rate=44_101), b"\0\0"), "no common rate"),
        (wav(form(1, 16), bytes(1000))[:-1], "cut off: 999 of 1000 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(tmp_path: Path, raw: bytes, reason: str) -> None:
    with pytest.raises(NotAWav, match=reason):
        read(tmp_path, raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.wav"
    path.write_bytes(b"RIFF\0\0\0\0WAVE" + raw)
    with contextlib.suppress(NotAWav):
        assert read_wav(path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    pcm = encoded(TONE, 1, 16)
    write_wav(tmp_path / "y.wav", pcm)
    assert read_wav(tmp_path / "y.wav") == pcm
