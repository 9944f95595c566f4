"""Speech told from silence by loudness."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.cascade.fakes import loud, silent

from counterpoint.models.cascade.loudness import WINDOW, SpeechLevel, levels, samples_of


def scaled(pcm: bytes, factor: float) -> bytes:
    return (np.frombuffer(pcm, "<i2") * factor).astype("<i2").tobytes()


def test_levels_are_those_of_each_window() -> None:
    samples = np.concatenate([np.full(WINDOW, 0.5), np.full(WINDOW, -0.25), np.full(5, 1.0)])
    assert levels(samples.astype(np.float32)).tolist() == [0.5, 0.25]


@pytest.mark.parametrize("count", [0, 1, WINDOW - 1])
def test_less_than_a_window_is_a_window(count: int) -> None:
    assert levels(np.full(count, 0.5, np.float32)).tolist() == [0.5] * (count > 0)


def test_full_scale_is_one() -> None:
    assert samples_of(b"\x00\x80\xff\x7f").tolist() == [-1.0, 32767 / 32768]


def test_speech_is_what_is_about_as_loud_as_the_utterance() -> None:
    level = SpeechLevel()
    assert level.is_speech(loud(100))
    assert not level.is_speech(silent(100))
    assert level.is_speech(scaled(loud(20), 0.3))
    assert not level.is_speech(scaled(loud(100), 0.1))
    assert not level.is_speech(b"")


def test_a_quiet_speaker_is_heard_and_a_silent_room_is_not() -> None:
    assert SpeechLevel().is_speech(scaled(loud(100), 0.03))
    assert not SpeechLevel().is_speech(scaled(loud(100), 0.01))


def test_a_short_word_in_a_long_silence_counts() -> None:
    level = SpeechLevel()
    level.is_speech(loud(100))
    assert level.is_speech(silent(480) + loud(20) + silent(500))
