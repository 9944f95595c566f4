"""How loud input is, in windows of 20 ms.

Owns: telling speech from the silence around it, roughly and at no cost.
Does not own: detection of speech (``plugins.detection``): where turns begin and end is decided elsewhere.
Here because: recognition invents words in silence, and a prepared answer holds until speech goes on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .stages import INPUT_RATE

WINDOW: Final = INPUT_RATE // 50

#: Root mean square, of full scale, below which a window holds no speech: -50 dBFS.
SILENCE: Final = 0.003
#: As loud as speech is: within 14 dB of the loudest window of the utterance.
_NEAR_PEAK: Final = 0.2


def samples_of(pcm: bytes) -> NDArray[np.float32]:
    """``pcm`` (int16) as numbers in -1..1."""
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)


def levels(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Root mean square of each whole window; of fewer samples than a window, that of all of them."""
    width = min(WINDOW, len(samples)) or WINDOW
    whole = len(samples) // width * width
    power: NDArray[np.float32] = np.mean(np.square(samples[:whole].reshape(-1, width)), axis=1)
    return np.sqrt(power)


class SpeechLevel:
    """Follows one utterance and tells its speech from its pauses."""

    def __init__(self) -> None:
        self._peak = np.float32(SILENCE)

    def is_speech(self, pcm: bytes) -> bool:
        """Whether ``pcm``, which follows what was asked about before, holds a window as loud as speech."""
        loudest = levels(samples_of(pcm)).max(initial=np.float32(0))
        self._peak = max(self._peak, loudest)
        return bool(loudest > SILENCE and loudest >= _NEAR_PEAK * self._peak)
