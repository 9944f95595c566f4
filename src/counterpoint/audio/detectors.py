"""Is somebody speaking in these 32 ms? Two answers that need no model.

Owns: the ``Detector`` protocol, the cutting of canonical PCM into frames, ``AmpDetector`` and
``EnergyDetector``.
Does not own: onset, end and padding (``turns``), neural detectors (``models``), batching (``runtime``).
Here because: detection must work without any optional package, and tests need a detector whose
probabilities can be written down beforehand.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

#: 32 ms of canonical PCM: what common neural detectors take (512 samples at 16 kHz).
FRAME_SAMPLES: Final = 768

_FRAME_BYTES: Final = 2 * FRAME_SAMPLES
_FULL_SCALE: Final = 32767


class Detector(Protocol):
    """The state of one session's speech detection."""

    @property
    def frame_samples(self) -> int:
        """Samples of canonical PCM per probability: ``FRAME_SAMPLES``."""
        ...

    def feed(self, pcm: bytes) -> list[float]:
        """A speech probability in [0, 1] for every frame that ``pcm`` completes (invariant 105)."""
        ...

    def reset(self) -> None:
        """Forget everything, an incomplete frame included: the next sample begins a frame."""
        ...


class FrameCutter:
    """Cuts a stream of canonical PCM into frames; what is left over waits for more."""

    def __init__(self) -> None:
        self._rest = b""

    def cut(self, pcm: bytes) -> NDArray[np.int16]:
        """The frames completed by ``pcm``, shape (frames, FRAME_SAMPLES)."""
        data = self._rest + pcm
        whole = len(data) - len(data) % _FRAME_BYTES
        self._rest = data[whole:]
        return np.frombuffer(data, "<i2", whole // 2).reshape(-1, FRAME_SAMPLES)

    def reset(self) -> None:
        self._rest = b""


class AmpDetector:
    """Probability is the mean |sample| / 32767 of each frame, exactly (wire contract, section 12)."""

    frame_samples: Final = FRAME_SAMPLES

    def __init__(self) -> None:
        self._frames = FrameCutter()

    def feed(self, pcm: bytes) -> list[float]:
        loudness = np.abs(self._frames.cut(pcm).astype(np.int64)).sum(axis=1)
        # The most negative sample has no positive counterpart: its frame would exceed 1.
        return [min(total / (FRAME_SAMPLES * _FULL_SCALE), 1.0) for total in loudness.tolist()]

    def reset(self) -> None:
        self._frames.reset()


#: Decibels above the noise floor that make a probability of one; half of it makes one half.
_RANGE_DB: Final = 24.0
#: The floor is never below this: a frame weaker than -42 dBFS is not speech, however quiet the room.
_LOWEST_FLOOR_DB: Final = -54.0
#: A stream that begins louder than this begins with speech, not with noise.
_HIGHEST_START_DB: Final = -40.0
#: How fast the floor follows. Down within a few frames, so that a pause between words is enough to find
#: it; up so slowly that a long sentence does not become its own noise.
_FALL_PER_FRAME: Final = 0.2
_RISE_DB_PER_FRAME: Final = 0.064


class EnergyDetector:
    """Loudness over an adaptive noise floor: probability 1/2 at 12 dB above it.

    Good for close microphones and steady noise. It takes music for speech, and a sudden steady noise
    too until the floor has risen to it, by 2 dB a second.
    """

    frame_samples: Final = FRAME_SAMPLES

    def __init__(self) -> None:
        self._frames = FrameCutter()
        self._floor_db: float | None = None

    def feed(self, pcm: bytes) -> list[float]:
        frames = self._frames.cut(pcm).astype(np.float64) / _FULL_SCALE
        power = np.square(frames).mean(axis=1)
        levels = 10 * np.log10(np.maximum(power, 1e-12))
        return [self._probability(level) for level in levels.tolist()]

    def _probability(self, level_db: float) -> float:
        floor = self._follow(level_db)
        return min(max((level_db - floor) / _RANGE_DB, 0.0), 1.0)

    def _follow(self, level_db: float) -> float:
        floor = self._floor_db
        if floor is None:
            floor = min(level_db, _HIGHEST_START_DB)
        elif level_db < floor:
            floor += _FALL_PER_FRAME * (level_db - floor)
        else:
            floor += min(_RISE_DB_PER_FRAME, level_db - floor)
        self._floor_db = max(floor, _LOWEST_FLOOR_DB)
        return self._floor_db

    def reset(self) -> None:
        self._frames.reset()
        self._floor_db = None
