"""The engines as detectors: frames of the session's clock, one run for many sessions, nothing shared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.voice.speech import recording

from counterpoint.audio.detectors import FRAME_SAMPLES
from counterpoint.audio.resample import StreamingResampler
from counterpoint.models.cascade.detectors import SileroDetector, SmartTurnModel
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.vad import VadState
from counterpoint.plugins.detection import SpeechDetector, TurnModel

FRAME_BYTES = 2 * FRAME_SAMPLES


class CountingVad:
    """The probability of a session's n-th frame is n / 1000; notes how many sessions shared each run."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.frames: dict[int, int] = {}

    def new_state(self) -> VadState:
        return VadState()

    def probabilities(self, frames: Sequence[tuple[VadState, NDArray[np.float32]]]) -> list[float]:
        assert len({id(state) for state, _ in frames}) == len(frames)
        assert all(frame.shape == (512,) for _, frame in frames)
        self.runs.append(len(frames))
        for state, _ in frames:
            self.frames[id(state)] = self.frames.get(id(state), 0) + 1
        return [self.frames[id(state)] / 1000 for state, _ in frames]


class EchoTurn:
    def probability(self, audio: NDArray[np.float32]) -> float:
        return float(len(audio))


def session_audio(name: str) -> bytes:
    resampler = StreamingResampler(16_000, 24_000)
    pcm = (recording(name) * 32767).astype("<i2").tobytes()
    return resampler.process(pcm) + resampler.flush()


def pieces_of(pcm: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    pieces = []
    while pcm:
        size = 2 * chance.choice([1, 100, 480, 768, 1920, 24_000])
        pieces.append(pcm[:size])
        pcm = pcm[size:]
    return pieces


def test_they_are_what_a_server_looks_for() -> None:
    silero: SpeechDetector = SileroDetector(cast(Any, CountingVad()))
    turn: TurnModel = SmartTurnModel(cast(Any, EchoTurn()))
    assert isinstance(silero, SpeechDetector)
    assert isinstance(turn, TurnModel)
    assert not isinstance(silero, TurnModel)
    assert silero.name == "silero"


@pytest.mark.parametrize("frames", [1, 2, 7])
def test_a_frame_of_session_audio_is_a_probability_at_once(frames: int) -> None:
    """However long a session lasts."""
    detector = SileroDetector(cast(Any, CountingVad()))
    state = detector.new_state()
    for _ in range(200):
        (found,) = detector.probabilities([(state, bytes(frames * FRAME_BYTES))])
        assert len(found) == frames


def test_sessions_share_runs_and_keep_their_own_order() -> None:
    engine = CountingVad()
    detector = SileroDetector(cast(Any, engine))
    one, two = detector.new_state(), detector.new_state()
    found = detector.probabilities(
        [(one, bytes(3 * FRAME_BYTES)), (two, bytes(FRAME_BYTES)), (detector.new_state(), b"")]
    )
    assert found == [[0.001, 0.002, 0.003], [0.001], []]
    assert engine.runs == [2, 1, 1]
    assert detector.probabilities([]) == []


@pytest.mark.parametrize(("seconds", "samples"), [(1, 16_000), (60, 128_000)])
def test_of_a_long_turn_the_model_hears_the_end(seconds: int, samples: int) -> None:
    assert SmartTurnModel(cast(Any, EchoTurn())).probability(bytes(48_000 * seconds)) == samples


@pytest.mark.voice
def test_probabilities_do_not_depend_on_how_the_audio_came(engines: VoiceEngines) -> None:
    """Invariant 105."""
    detector = SileroDetector(engines.vad)
    pcm = bytes(24_000) + session_audio("go_forward") + bytes(48_000)
    (whole,) = detector.probabilities([(detector.new_state(), pcm)])
    state = detector.new_state()
    pieces = [p for piece in pieces_of(pcm, 3) for p in detector.probabilities([(state, piece)])[0]]
    assert pieces == pytest.approx(whole, abs=1e-6)
    assert len(whole) == len(pcm) // FRAME_BYTES
    assert max(whole[:12]) < 0.5 < max(whole[16:])


@pytest.mark.voice
def test_a_session_is_heard_alike_alone_and_among_others(engines: VoiceEngines) -> None:
    """Invariant 109, case C-20: every other of thirty sessions is silent, their frames interleaved."""
    detector = SileroDetector(engines.vad)
    pcm = session_audio("made_amiable")
    (alone,) = detector.probabilities([(detector.new_state(), pcm)])
    states = [detector.new_state() for _ in range(30)]
    found: list[list[float]] = [[] for _ in states]
    for start in range(0, len(pcm), 4800):
        piece = pcm[start : start + 4800]
        chunks = [(state, piece if n % 2 else bytes(len(piece))) for n, state in enumerate(states)]
        for row, probabilities in zip(found, detector.probabilities(chunks), strict=True):
            row.extend(probabilities)
    for number, probabilities in enumerate(found):
        if number % 2:
            assert probabilities == pytest.approx(alone, abs=1e-3)
        else:
            assert max(probabilities) < 0.3


@pytest.mark.voice
def test_a_finished_sentence_is_told_from_an_unfinished_one(engines: VoiceEngines) -> None:
    model = SmartTurnModel(engines.turn_end)
    whole = session_audio("made_amiable")
    pause = bytes(48_000 // 5)
    assert model.probability(whole + pause) > 0.5
    assert model.probability(whole[: len(whole) // 2] + pause) < model.probability(whole + pause)
