"""The built-in detectors: exact loudness, and an energy detector that knows noise from speech."""

import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.audio.detectors import FRAME_SAMPLES, AmpDetector, Detector, EnergyDetector
from counterpoint.audio.resample import StreamingResampler

from .signals import cuts, flat, noise, pcm16, pieces

RECORDINGS = Path(__file__).parents[1] / "data" / "audio"
FRAME_BYTES = 2 * FRAME_SAMPLES
DETECTORS: list[type[AmpDetector] | type[EnergyDetector]] = [AmpDetector, EnergyDetector]

every_detector = pytest.mark.parametrize("make", DETECTORS)


def recording(name: str) -> bytes:
    """At 24 kHz."""
    with wave.open(str(RECORDINGS / f"{name}.wav")) as file:
        resampler = StreamingResampler(file.getframerate(), 24_000)
        return resampler.process(file.readframes(file.getnframes())) + resampler.flush()


@every_detector
@settings(max_examples=30, deadline=None)
@given(places=cuts(5 * FRAME_SAMPLES + 99, unit=2))
def test_probabilities_do_not_depend_on_chunking(make: type[Detector], places: list[int]) -> None:
    """(invariant 105)"""
    audio = noise(2 * FRAME_SAMPLES, dbfs=-50) + noise(3 * FRAME_SAMPLES + 99, dbfs=-30)
    whole, parts = make(), make()
    found = [probability for piece in pieces(audio, places) for probability in parts.feed(piece)]
    assert found == whole.feed(audio)
    assert len(found) == 5


@every_detector
def test_reset_forgets_everything(make: type[Detector]) -> None:
    used, fresh = make(), make()
    used.feed(noise(3 * FRAME_SAMPLES + 500, dbfs=-20))
    used.reset()
    audio = noise(4 * FRAME_SAMPLES, dbfs=-30, seed=2)
    assert used.feed(audio) == fresh.feed(audio)


@every_detector
def test_two_sessions_share_nothing(make: type[Detector]) -> None:
    """(case C-20)"""
    speaking, silent, alone = make(), make(), make()
    loud, quiet = noise(FRAME_SAMPLES, dbfs=-20), bytes(FRAME_BYTES)
    for _ in range(5):
        assert speaking.feed(loud) == alone.feed(loud)
        assert silent.feed(quiet) == [0.0]


@given(st.lists(st.integers(-32768, 32767), min_size=FRAME_SAMPLES, max_size=FRAME_SAMPLES))
@settings(max_examples=20)
def test_amp_is_the_mean_of_the_absolute_samples(samples: list[int]) -> None:
    """(wire contract, section 12)"""
    [probability] = AmpDetector().feed(pcm16(np.array(samples)))
    assert probability == min(sum(map(abs, samples)) / (32767 * FRAME_SAMPLES), 1.0)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_amp_reaches_both_ends(probability: float) -> None:
    assert AmpDetector().feed(flat(FRAME_SAMPLES, probability)) == [probability]


def test_amp_stays_a_probability_at_the_most_negative_sample() -> None:
    assert AmpDetector().feed(b"\x00\x80" * FRAME_SAMPLES) == [1.0]


def test_ten_minutes_of_quiet_noise_and_of_nothing_are_not_speech() -> None:
    """Nowhere near: 0.35 would keep an utterance open (case L-09)."""
    detector = EnergyDetector()
    minute = noise(60 * 24_000, dbfs=-50)
    assert max(p for _ in range(10) for p in detector.feed(minute)) < 0.2
    assert max(p for _ in range(10) for p in detector.feed(bytes(len(minute)))) < 0.2
    assert max(detector.feed(minute)) < 0.2


def test_a_room_that_is_noisy_from_the_start_is_not_speech() -> None:
    assert max(EnergyDetector().feed(noise(60 * 24_000, dbfs=-35))) < 0.35


@pytest.mark.parametrize("room", [-80, -60, -45])
def test_speech_stands_out_of_its_room(room: int) -> None:
    detector = EnergyDetector()
    quiet, speech = noise(24_000, dbfs=room), noise(12_000, dbfs=-25)
    assert max(detector.feed(quiet)) < 0.35
    assert min(detector.feed(speech)[1:]) > 0.5
    assert max(detector.feed(quiet)[1:]) < 0.35


def test_speech_from_the_first_sample_on_is_heard() -> None:
    """(case L-04)"""
    assert EnergyDetector().feed(noise(FRAME_SAMPLES, dbfs=-25))[0] > 0.5


def test_a_sudden_steady_noise_is_speech_only_until_the_floor_has_reached_it() -> None:
    detector = EnergyDetector()
    detector.feed(noise(24_000, dbfs=-60))
    probabilities = detector.feed(noise(20 * 24_000, dbfs=-30))
    assert probabilities[5] > 0.9
    assert probabilities[-1] < 0.35


@pytest.mark.parametrize(
    ("name", "begins_ms", "ends_ms"),
    [("go_forward", 480, 2300), ("ill_disposed", 256, 2800), ("made_amiable", 288, 2850)],
)
def test_recorded_speech_is_found_where_it_is(name: str, begins_ms: int, ends_ms: int) -> None:
    probabilities = EnergyDetector().feed(recording(name) + bytes(2 * 24_000))
    speech = [32 * frame for frame, probability in enumerate(probabilities) if probability > 0.5]
    assert abs(speech[0] - begins_ms) <= 64
    assert abs(speech[-1] - ends_ms) <= 200
    assert len(speech) * 32 > 0.6 * (ends_ms - begins_ms)
