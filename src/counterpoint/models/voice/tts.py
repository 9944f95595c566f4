"""Synthesis: text in, a voice out.

Owns: one shared Hibari model, the five voices that are made of it, and loudness.
Does not own: cutting text into sentences (``text``), pacing and packets (delivery).
Here because: one model of eight megabytes gives five voices when its spectrum is stretched before it sounds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .cancellation import Cancelled, never

SAMPLE_RATE: Final = 24_000
DEFAULT_VOICE: Final = "mezzo"
VOICES: Final = ("soprano", "mezzo", "alto", "tenor", "bass")


class HibariTts:
    """The shared model. Any thread may call it."""

    def synthesize(
        self, text: str, voice: str = DEFAULT_VOICE, cancelled: Cancelled = never
    ) -> NDArray[np.int16]:
        """``text`` spoken: 24 kHz mono; no samples for text without a sound. `KeyError` for an unknown voice.

        Raises `StaleFence` when cancelled, which is asked before every sentence.
        """
        raise NotImplementedError
