"""Voice activity: is somebody speaking in these 32 ms?

Owns: one shared Silero model, and the shape of what it must remember per session.
Does not own: thresholds, onset and end rules, the clock (``counterpoint.audio``).
Here because: it is the dearest computation of a server, so frames of many sessions share one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .runtime import load_onnx

SAMPLE_RATE: Final = 16_000
#: The model's only frame length at 16 kHz: 32 ms.
FRAME_SAMPLES: Final = 512
#: Samples of the previous frame that the model wants in front of each frame.
_CONTEXT_SAMPLES: Final = 64
_RECURRENT_SHAPE: Final = (2, 128)


class VadState:
    """What the model remembers of one session. Made by `SileroVad.new_state`, advanced by `probabilities`."""

    __slots__ = ("_context", "_pending", "_recurrent")

    def __init__(self) -> None:
        self._context = np.zeros(_CONTEXT_SAMPLES, np.float32)
        self._recurrent = np.zeros(_RECURRENT_SHAPE, np.float32)
        #: Samples that do not fill a frame yet.
        self._pending = np.zeros(0, np.float32)

    def frames(self, samples: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Cut ``samples`` (16 kHz, any number) into whole frames; the rest waits for the next call."""
        audio = np.concatenate([self._pending, samples])
        whole = len(audio) // FRAME_SAMPLES * FRAME_SAMPLES
        self._pending = audio[whole:].copy()
        return list(audio[:whole].reshape(-1, FRAME_SAMPLES))


class SileroVad:
    """The shared model. Callable from any thread; a state belongs to one call at a time."""

    def __init__(self, path: Path) -> None:
        self._session = load_onnx(path)
        self._rate = np.array(SAMPLE_RATE, np.int64)

    def new_state(self) -> VadState:
        return VadState()

    def probabilities(self, frames: Sequence[tuple[VadState, NDArray[np.float32]]]) -> list[float]:
        """Speech probability of each frame (float32, 512 samples at 16 kHz), in one run for all of them.

        A row's result depends on its own state alone, never on its neighbours (invariant 109). Frames
        of one session follow each other, so a state may appear once per call: `ValueError` otherwise.
        """
        if not frames:
            return []
        states = [state for state, _ in frames]
        if len({id(state) for state in states}) != len(states):
            raise ValueError(
                "one frame per session and run: the second needs the state that the first leaves"
            )
        audio = np.stack([frame for _, frame in frames])
        if audio.shape[1] != FRAME_SAMPLES:
            raise ValueError(f"a frame has {FRAME_SAMPLES} samples, not {audio.shape[1]}")
        context = np.stack([state._context for state in states])
        recurrent = np.stack([state._recurrent for state in states], axis=1)
        speech, recurrent = self._session.run(
            None,
            {
                "input": np.concatenate([context, audio], axis=1),
                "state": recurrent,
                "sr": self._rate,
            },
        )
        for row, state in enumerate(states):
            state._context = audio[row, -_CONTEXT_SAMPLES:]
            state._recurrent = recurrent[:, row]
        return [float(p) for p in speech[:, 0]]
