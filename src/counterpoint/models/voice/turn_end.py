"""End of turn: has the speaker finished, or only paused?

Owns: one shared smart-turn model and how audio is presented to it.
Does not own: when it is asked (at a pause) and what follows from the answer (the turn detector).
Here because: silence alone cannot tell "I would like a" from "I would like a coffee".
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .log_mel import SAMPLE_RATE, log_mel
from .runtime import load_onnx

#: The model's window: it hears the last eight seconds of a turn, silence in front of a shorter one.
WINDOW_SAMPLES: Final = 8 * SAMPLE_RATE


class SmartTurn:
    """The shared model. It has no state; any thread may call it."""

    def __init__(self, path: Path) -> None:
        self._session = load_onnx(path)

    def probability(self, audio: NDArray[np.float32]) -> float:
        """How likely the turn in ``audio`` (16 kHz, onset to pause) is over: 0 to 1, above 0.5 is yes."""
        heard = audio[-WINDOW_SAMPLES:]
        window = np.pad(heard, (WINDOW_SAMPLES - len(heard), 0))
        (result,) = self._session.run(None, {"input_features": log_mel(window)[None]})
        return float(result[0, 0])
