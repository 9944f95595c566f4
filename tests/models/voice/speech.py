"""Speech in and out of tests: the recordings, word error rate, noise.

Owns: reading ``tests/data/audio`` and comparing words.
Does not own: the engines (``conftest``).
Here because: several test modules measure against the same recordings in the same way.
"""

from __future__ import annotations

import re
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterpoint.audio.resample import StreamingResampler

RECORDINGS = {
    "ill_disposed": "he was not an ill disposed young man",
    "made_amiable": "he might even have been made amiable himself",
    "go_forward": "go forward ten meters",
}

Audio = NDArray[np.float32]

_DIRECTORY = Path(__file__).parents[2] / "data" / "audio"
FULL_SCALE = 32768


def recording(name: str) -> Audio:
    """16 kHz, -1..1."""
    with wave.open(str(_DIRECTORY / f"{name}.wav"), "rb") as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        return _floats(file.readframes(file.getnframes()))


def heard(pcm: NDArray[np.int16]) -> Audio:
    """Synthesised speech (24 kHz) as recognition takes it."""
    resampler = StreamingResampler(24_000, 16_000)
    return _floats(resampler.process(pcm.tobytes()) + resampler.flush())


def noise(seconds: float, amplitude: float, seed: int = 0) -> Audio:
    """White, of that root mean square; -50 dBFS is 0.00316."""
    samples = np.random.default_rng(seed).standard_normal(round(seconds * 16_000))
    return (samples * amplitude).astype(np.float32)


def silence(seconds: float) -> Audio:
    return np.zeros(round(seconds * 16_000), np.float32)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower().replace("-", " "))


def word_errors(expected: str, got: str) -> int:
    """Insertions, deletions and replacements that turn the one into the other."""
    costs = list(range(len(words(got)) + 1))
    for row, word in enumerate(words(expected), start=1):
        before, costs[0] = costs[0], row
        for column, other in enumerate(words(got), start=1):
            replaced = before + (word != other)
            before, costs[column] = costs[column], min(replaced, costs[column] + 1, costs[column - 1] + 1)
    return costs[-1]


def word_error_rate(pairs: list[tuple[str, str]]) -> float:
    """Errors per expected word over all (expected, got) pairs together."""
    errors = sum(word_errors(expected, got) for expected, got in pairs)
    return errors / sum(len(words(expected)) for expected, _ in pairs)


def _floats(pcm: bytes) -> Audio:
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(FULL_SCALE)
