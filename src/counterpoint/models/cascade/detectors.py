"""The speech engines as detectors that a server can use for every session.

Owns: the way from the session's audio to the engines': rate, frames, one run for many sessions.
Does not own: the engines (``models.voice``), threads and batching (``runtime.detection``).
Here because: whoever runs the embedded voice has these engines in memory already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from counterpoint.audio.resample import StreamingResampler
from counterpoint.models.voice.turn_end import WINDOW_SAMPLES, SmartTurn
from counterpoint.models.voice.vad import SAMPLE_RATE, SileroVad, VadState
from counterpoint.protocol.audio import SESSION_RATE

from .loudness import samples_of

#: The resampler's delay, in samples at the session's rate. With so much silence in front of the stream,
#: every frame of the session's audio completes a frame of the engine's, 1 ms late, in the same call.
_LEAD: Final = 24


def _resampler() -> StreamingResampler:
    return StreamingResampler(SESSION_RATE, SAMPLE_RATE)


@dataclass(slots=True)
class SileroState:
    """One session's stream."""

    vad: VadState
    resampler: StreamingResampler = field(default_factory=_resampler)

    def frames(self, pcm: bytes) -> list[NDArray[np.float32]]:
        return self.vad.frames(samples_of(self.resampler.process(pcm)))


class SileroDetector:
    """A ``SpeechDetector``."""

    name: Final = "silero"

    def __init__(self, engine: SileroVad) -> None:
        self._engine = engine

    def new_state(self) -> SileroState:
        state = SileroState(self._engine.new_state())
        state.frames(bytes(2 * _LEAD))
        return state

    def probabilities(self, chunks: Sequence[tuple[SileroState, bytes]]) -> list[list[float]]:
        """In rounds: the n-th frames of all sessions in one run, since each needs the state before it."""
        states = [state for state, _ in chunks]
        frames = [state.frames(pcm) for state, pcm in chunks]
        found: list[list[float]] = [[] for _ in chunks]
        for column in zip_longest(*frames):
            rows = [row for row, frame in enumerate(column) if frame is not None]
            batch = [(states[row].vad, column[row]) for row in rows]
            for row, probability in zip(rows, self._engine.probabilities(batch), strict=True):
                found[row].append(probability)
        return found


class SmartTurnModel:
    """A ``TurnModel``."""

    def __init__(self, engine: SmartTurn) -> None:
        self._engine = engine

    def probability(self, pcm: bytes) -> float:
        """Of a long turn only its end counts."""
        heard = pcm[-2 * WINDOW_SAMPLES * SESSION_RATE // SAMPLE_RATE :]
        resampler = _resampler()
        return self._engine.probability(samples_of(resampler.process(heard) + resampler.flush()))
