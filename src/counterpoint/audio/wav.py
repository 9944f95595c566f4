"""WAV files as canonical PCM, and back.

Owns: the RIFF container, its sample formats, mixing to mono; a reader for any common rate and width.
Does not own: other containers and codecs.
Here because: the standard library's reader knows neither floating point nor the extensible header, and both
are what recorders and editors write.

Formats: integer PCM of 8 (unsigned), 16, 24 and 32 bits, and floating point of 32 and 64 bits, plain or in an
extensible header (Microsoft's multimedia registration of WAVE formats).
"""

from __future__ import annotations

import math
import struct
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterpoint.protocol.audio import SESSION_RATE

from .resample import StreamingResampler

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MAX_RATE = 384_000
#: A rate that has little in common with ours takes a filter of that many rows; 44.1 kHz takes 147.
_MAX_STEP = 2000


class NotAWav(ValueError):
    """The file is not a WAV file that can be read; the message says why."""


def read_wav(path: Path, rate: int = SESSION_RATE) -> bytes:
    """The audio of ``path`` as mono int16 at ``rate``.

    Raises ``NotAWav`` for what is no WAV file, is cut off, has no audio, or has a format that is not listed
    above, and ``OSError`` if it cannot be read.
    """
    form, data = _chunks(path.read_bytes())
    encoding, channels, source_rate, bits = _format(form)
    if source_rate // math.gcd(source_rate, rate) > _MAX_STEP:
        raise NotAWav(f"{source_rate} Hz is no common rate; convert it to {rate} Hz")
    frame = channels * bits // 8
    if len(data) < frame:
        raise NotAWav("it has no audio")
    samples = _samples(data[: len(data) // frame * frame], encoding, bits)
    mono = samples.reshape(-1, channels).mean(axis=1)
    pcm = np.clip(np.round(mono * 32768), -32768, 32767).astype("<i2").tobytes()
    resampler = StreamingResampler(source_rate, rate)
    return resampler.process(pcm) + resampler.flush()


def write_wav(path: Path, pcm: bytes, rate: int = SESSION_RATE) -> None:
    """Write mono int16 ``pcm``. Raises ``OSError``."""
    with path.open("wb") as file, wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(rate)
        wav.writeframes(pcm)


def _chunks(raw: bytes) -> tuple[bytes, bytes]:
    """The format and the data chunk; others are passed over."""
    if not raw:
        raise NotAWav("it is empty")
    if raw[:4] != b"RIFF" or raw[8:12] != b"WAVE":
        raise NotAWav("it is not a WAV file")
    form, position = None, 12
    while position + 8 <= len(raw):
        name, size = struct.unpack_from("<4sI", raw, position)
        body = raw[position + 8 : position + 8 + size]
        if name == b"fmt ":
            form = body
        elif name == b"data":
            if form is None:
                raise NotAWav("its format is missing")
            # A stream that was written without seeking back states 0 or the largest size: to the end, then.
            if size in (0, 0xFFFFFFFF):
                return form, raw[position + 8 :]
            if len(body) < size:
                raise NotAWav(f"it is cut off: {len(body)} of {size} bytes of its audio are there")
            return form, body
        position += 8 + size + size % 2
    raise NotAWav("it is cut off before its audio")


def _format(form: bytes) -> tuple[int, int, int, int]:
    """Encoding, channels, rate and bits of a sample."""
    if len(form) < 16:
        raise NotAWav("its format is cut off")
    encoding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
    if encoding == _EXTENSIBLE:
        if len(form) < 26:
            raise NotAWav("its format is cut off")
        (encoding,) = struct.unpack_from("<H", form, 24)
    if (encoding, bits) not in _WIDTHS:
        raise NotAWav(f"{bits}-bit samples of format {encoding} are not supported; convert it to 16-bit PCM")
    if not 1 <= channels <= 64 or not 1000 <= rate <= _MAX_RATE:
        raise NotAWav(f"{channels} channels at {rate} Hz are not supported")
    return encoding, channels, rate, bits


_WIDTHS = {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}


def _samples(data: bytes, encoding: int, bits: int) -> NDArray[np.float64]:
    """Samples in -1..1, channels interleaved."""
    match encoding, bits:
        case 3, _:
            floats: NDArray[np.float64] = np.frombuffer(data, f"<f{bits // 8}").astype(np.float64)
            floats[~np.isfinite(floats)] = 0.0
            return floats
        case 1, 8:
            return (np.frombuffer(data, np.uint8).astype(np.float64) - 128.0) / 128.0
        case 1, 24:
            padded = np.zeros((len(data) // 3, 4), np.uint8)
            padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
            data, bits = padded.tobytes(), 32
        case _:
            pass  # integers as they are
    whole: NDArray[np.float64] = np.frombuffer(data, f"<i{bits // 8}").astype(np.float64)
    return whole / float(1 << (bits - 1))
