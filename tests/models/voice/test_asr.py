"""Recognition: real speech, and everything that is none."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterpoint.errors import StaleFence
from counterpoint.models.voice.asr import MIN_SAMPLES, MoonshineAsr, read_vocabulary
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.runtime import OnnxSession

from .speech import RECORDINGS, noise, recording, silence, word_error_rate, words

pytestmark = pytest.mark.voice


@pytest.fixture
def asr(engines: VoiceEngines) -> MoonshineAsr:
    return engines.asr


def test_recordings_are_understood(asr: MoonshineAsr) -> None:
    pairs = [(text, asr.transcribe(recording(name))) for name, text in RECORDINGS.items()]
    assert word_error_rate(pairs) <= 0.15, pairs


@pytest.mark.parametrize("name", RECORDINGS)
def test_pre_roll_and_silence_around_the_words_change_little(asr: MoonshineAsr, name: str) -> None:
    audio = np.concatenate([silence(0.5), recording(name), silence(0.8)])
    assert word_error_rate([(RECORDINGS[name], asr.transcribe(audio))]) <= 0.25


class Watched:
    """A decoder that shows what it is given."""

    def __init__(self, session: OnnxSession) -> None:
        self._session = session
        self.inputs: list[Mapping[str, NDArray[Any]]] = []

    def run(self, names: Sequence[str] | None, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        self.inputs.append(dict(inputs))
        return self._session.run(names, inputs)


@pytest.fixture
def decoder(asr: MoonshineAsr, monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(asr._decoder)
    monkeypatch.setattr(asr, "_decoder", watched)
    return watched


def test_the_decoder_gets_the_mask_of_the_samples(asr: MoonshineAsr, decoder: Watched) -> None:
    """Not of the encoder's frames, though its name says so."""
    audio = recording("go_forward")
    asr.transcribe(audio)
    mask = decoder.inputs[0]["encoder_attention_mask"]
    assert mask.shape == (1, len(audio))
    assert mask.all()


@pytest.mark.parametrize("seconds", [0.3, 1.0, 4.0])
def test_tokens_are_capped_by_the_length_of_the_clip(
    asr: MoonshineAsr, decoder: Watched, seconds: float
) -> None:
    for seed in range(4):
        decoder.inputs.clear()
        asr.transcribe(noise(seconds, 0.1, seed))
        assert 1 <= len(decoder.inputs) <= 6.5 * seconds + 2


def test_each_step_after_the_first_reads_one_token_and_the_cache(asr: MoonshineAsr, decoder: Watched) -> None:
    asr.transcribe(recording("go_forward"))
    cached = [inputs["past_key_values.0.decoder.key"].shape[2] for inputs in decoder.inputs]
    assert cached == list(range(len(decoder.inputs)))
    first, *later = [inputs["past_key_values.0.encoder.key"].shape[2] for inputs in decoder.inputs]
    assert first == 0
    assert len(set(later)) == 1
    assert later[0] > 0


def test_silence_holds_no_words(asr: MoonshineAsr) -> None:
    assert [asr.transcribe(silence(seconds)) for seconds in (0.0, 0.3, 1.0, 5.0)] == [""] * 4


@pytest.mark.parametrize("samples", [0, 1, 160, 800, MIN_SAMPLES - 1])
def test_clips_too_short_for_a_word_hold_none(asr: MoonshineAsr, samples: int) -> None:
    """The model itself raises on 50 ms."""
    assert asr.transcribe(noise(1.0, 0.1)[:samples]) == ""


def test_the_shortest_clip_that_is_decoded_does_not_fail(asr: MoonshineAsr, decoder: Watched) -> None:
    asr.transcribe(noise(1.0, 0.1)[:MIN_SAMPLES])
    assert decoder.inputs


def test_a_lone_you_is_what_the_model_hears_in_breath_and_is_dropped(asr: MoonshineAsr) -> None:
    clips = [noise(0.3, 0.0005, seed) for seed in range(10)]
    raw = [asr._text(asr._decode(clip[None], lambda: False)) for clip in clips]
    assert "You" in raw
    assert [words(asr.transcribe(clip)) for clip in clips].count(["you"]) == 0


def test_a_cancelled_transcription_stops_at_the_next_token(asr: MoonshineAsr, decoder: Watched) -> None:
    with pytest.raises(StaleFence):
        asr.transcribe(recording("go_forward"), lambda: len(decoder.inputs) == 3)
    assert len(decoder.inputs) == 3


def test_a_call_that_was_cancelled_before_it_began_runs_nothing(asr: MoonshineAsr, decoder: Watched) -> None:
    with pytest.raises(StaleFence):
        asr.transcribe(recording("go_forward"), lambda: True)
    assert decoder.inputs == []


def test_vocabulary_records() -> None:
    long = b"x" * 300
    data = bytes([0, 3]) + b"abc" + bytes([6]) + b"<0xE2>" + bytes([300 % 128 + 128, 300 // 128]) + long
    assert read_vocabulary(data) == [b"", b"abc", b"\xe2", long]
