"""End of turn: finished sentences are over, cut ones are not."""

import numpy as np
import pytest

from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.turn_end import WINDOW_SAMPLES, SmartTurn

from .speech import Audio, heard, noise, recording, silence

pytestmark = pytest.mark.voice

SENTENCES = (
    "What time does the library open on Sunday?",
    "I would like a cup of coffee, please.",
    "Can you tell me a story about the sea?",
    "How are you today?",
)


@pytest.fixture
def turn_end(engines: VoiceEngines) -> SmartTurn:
    return engines.turn_end


def with_pause(audio: Audio) -> Audio:
    """As it is at the moment of asking: 200 ms after the last sound."""
    return np.concatenate([audio, silence(0.2)])


def test_a_finished_command_is_over(turn_end: SmartTurn) -> None:
    assert turn_end.probability(with_pause(recording("go_forward"))) > 0.5


@pytest.mark.parametrize("name", ["go_forward", "made_amiable", "ill_disposed"])
def test_half_a_recording_is_not_over(turn_end: SmartTurn, name: str) -> None:
    audio = recording(name)
    assert turn_end.probability(audio[: len(audio) // 2]) < 0.5


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_synthetic_sentence_is_over(engines: VoiceEngines, sentence: str) -> None:
    assert engines.turn_end.probability(with_pause(heard(engines.tts.synthesize(sentence)))) > 0.5


@pytest.mark.parametrize("sentence", SENTENCES[:2])
def test_the_beginning_of_a_synthetic_sentence_is_not_over(engines: VoiceEngines, sentence: str) -> None:
    audio = heard(engines.tts.synthesize(sentence))
    assert engines.turn_end.probability(audio[: 4 * len(audio) // 10]) < 0.5


def test_only_the_last_eight_seconds_count(turn_end: SmartTurn) -> None:
    window = np.concatenate([silence(5.0), recording("go_forward"), silence(0.5)])[-WINDOW_SAMPLES:]
    assert turn_end.probability(np.concatenate([noise(4.0, 0.1), window])) == turn_end.probability(window)


def test_a_short_turn_is_heard_after_silence(turn_end: SmartTurn) -> None:
    audio = recording("go_forward")
    padded = np.concatenate([np.zeros(WINDOW_SAMPLES - len(audio), np.float32), audio])
    assert turn_end.probability(audio) == turn_end.probability(padded)
