"""One channel out of several, and silence for what was lost."""

from __future__ import annotations

import numpy as np

from counterpoint.serving.webrtc.microphone import MOST_LOST_SAMPLES, Microphone

STEREO = np.array([10, 30, -10, -30], np.int16)


def heard(microphone: Microphone, at: int) -> list[int]:
    return list(np.frombuffer(microphone.hear(STEREO, 2, at), "<i2"))


def test_channels_are_mixed() -> None:
    assert heard(Microphone(), 0) == [20, -20]


def test_full_scale_does_not_wrap_around() -> None:
    loud = np.full(4, 32767, np.int16)
    assert np.frombuffer(Microphone().hear(loud, 2, 0), "<i2").tolist() == [32767, 32767]


def test_lost_samples_are_silence() -> None:
    microphone = Microphone()
    heard(microphone, 1000)
    assert heard(microphone, 1005) == [0, 0, 0, 20, -20]
    assert heard(microphone, 1007) == [20, -20]


def test_a_long_pause_is_none_of_it() -> None:
    microphone = Microphone()
    heard(microphone, 0)
    assert heard(microphone, 3 + MOST_LOST_SAMPLES) == [20, -20]


def test_what_comes_late_takes_nothing_away() -> None:
    microphone = Microphone()
    heard(microphone, 100)
    assert heard(microphone, 50) == [20, -20]
