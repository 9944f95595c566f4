"""Synthesis: five voices that can be understood, and text that cannot be said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import StaleFence
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.tts import SAMPLE_RATE, VOICES, HibariTts, _limited, sayable

from .speech import heard, word_error_rate

SENTENCES = (
    "The library opens at nine o'clock in the morning.",
    "I would like a cup of coffee with milk, please.",
    "Can you tell me how to get to the train station?",
    "My favorite season is autumn because of the colors.",
)


@pytest.fixture
def tts(engines: VoiceEngines) -> HibariTts:
    return engines.tts


def level(pcm: np.ndarray) -> float:
    """Root mean square, 1.0 for full scale."""
    return float(np.sqrt(np.square(pcm / 32768).mean()))


def harmonic_hertz(pcm: np.ndarray) -> float:
    """Spacing of the harmonics: where the spectrum's spectrum peaks, median over loud 100 ms pieces.

    Pieces begin every 25 ms: where they happen to begin must not matter.
    """
    pieces = np.lib.stride_tricks.sliding_window_view(pcm, 2400)[::600].astype(np.float64)
    loud = pieces[np.square(pieces).mean(axis=1) > np.square(pieces).mean()]
    spectra = np.log(np.abs(np.fft.rfft(loud * np.hanning(2400), 8192)) + 1.0)[:, : 8192 // 12]
    cepstra = np.abs(np.fft.rfft(spectra - spectra.mean(axis=1, keepdims=True), 16384))
    # Bin q of a spectrum with bins of 24000/8192 Hz: a ripple of 16384 / q bins.
    spacing = np.arange(1, cepstra.shape[1])
    hertz = 16384 / spacing * (SAMPLE_RATE / 8192)
    usable = (hertz > 80) & (hertz < 300)
    return float(np.median(hertz[usable][cepstra[:, 1:][:, usable].argmax(axis=1)]))


@pytest.mark.voice
@pytest.mark.parametrize("voice", VOICES)
def test_every_voice_is_understood(engines: VoiceEngines, voice: str) -> None:
    pairs = [(text, engines.asr.transcribe(heard(engines.tts.synthesize(text, voice)))) for text in SENTENCES]
    assert word_error_rate(pairs) <= 0.2, pairs


@pytest.mark.voice
def test_voices_differ_in_pitch_in_the_order_of_their_names(tts: HibariTts) -> None:
    text = " ".join(SENTENCES)
    pitches = {name: harmonic_hertz(tts.synthesize(text, name)) for name in VOICES}
    assert list(pitches) == sorted(pitches, key=pitches.__getitem__, reverse=True)
    for name, voice in VOICES.items():
        assert pitches[name] / pitches["mezzo"] == pytest.approx(voice.pitch, rel=0.2)


@pytest.mark.voice
def test_voices_are_equally_loud_and_loud_enough(tts: HibariTts) -> None:
    """The model alone is 6 dB below this."""
    levels = {voice: level(tts.synthesize(" ".join(SENTENCES), voice)) for voice in VOICES}
    assert min(levels.values()) > 0.06, levels
    assert max(levels.values()) / min(levels.values()) < 1.3, levels


def test_the_limiter_is_linear_below_the_knee_and_never_clips() -> None:
    audio = np.linspace(-4, 4, 2001, dtype=np.float32)
    limited = _limited(audio).astype(np.int64)
    low = np.abs(audio) < 0.7
    np.testing.assert_allclose(limited[low], audio[low] * 32767, atol=0.51)
    assert np.abs(limited).max() <= 32767
    assert (np.diff(limited) >= 0).all()
    np.testing.assert_array_equal(limited, -limited[::-1])


@pytest.mark.voice
@pytest.mark.parametrize("text", ["", "   ", "\n", "...", "!?", "—", "🙂", "你好", "\x00", "**", "# - _"])
def test_text_without_a_sound_gives_no_samples(tts: HibariTts, text: str) -> None:
    assert tts.synthesize(text).tobytes() == b""


@pytest.mark.voice
@pytest.mark.parametrize(
    "text",
    [
        "9" * 400,  # numbers that have no name
        "² ① ❶ ⑵ ₆",  # digits to the eye, not to the pronunciation rules
        "İstanbul, naïve café, Łódź",
        "zxqvbn-ty",
        "[a](/b/) [c](http://d.e)",
        "$1e400 12:75 13/45/2099 -5% a@b.c <b>",
    ],
)
def test_odd_text_is_said_somehow(tts: HibariTts, text: str) -> None:
    assert len(tts.synthesize(text)) > SAMPLE_RATE // 4


@pytest.mark.voice
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=20) | st.text(alphabet="a9.,:$/-'²①İ ", max_size=20))
def test_no_text_raises(engines: VoiceEngines, text: str) -> None:
    assert engines.tts.synthesize(text).dtype == np.int16


def test_sayable_keeps_what_can_be_pronounced_and_drops_the_rest() -> None:
    assert sayable("Café — “3½” costs £5…") == "Café — “3½” costs £5…"
    assert sayable("**Bold** `code`") == " Bold   code "
    assert sayable("①ﬁő") == "1fio"
    assert sayable("a你b") == "a b"
    assert sayable("12345678901234567") == " ".join("12345678901234567")
    assert sayable("123456789012345") == "123456789012345"


@pytest.mark.voice
def test_the_same_text_sounds_the_same(tts: HibariTts) -> None:
    np.testing.assert_array_equal(tts.synthesize(SENTENCES[0]), tts.synthesize(SENTENCES[0]))


@pytest.mark.voice
def test_sentences_follow_each_other(tts: HibariTts) -> None:
    both = tts.synthesize("I am here. You are there.")
    apart = [tts.synthesize("I am here."), tts.synthesize("You are there.")]
    np.testing.assert_array_equal(both, np.concatenate(apart))


@pytest.mark.voice
def test_an_unknown_voice_is_a_key_error(tts: HibariTts) -> None:
    with pytest.raises(KeyError, match="castrato"):
        tts.synthesize("Hello.", "castrato")


@pytest.mark.voice
@pytest.mark.parametrize("text", ["One. Two. Three. Four.", "word " * 200])
def test_a_cancelled_call_stops_before_the_next_sentence(tts: HibariTts, text: str) -> None:
    """Text without a full stop is cut, too."""
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(len(asked) == 2)
        return asked[-1]

    with pytest.raises(StaleFence):
        tts.synthesize(text, cancelled=cancelled)
    assert asked == [False, False, True]


@pytest.mark.parametrize("voice", VOICES)
def test_nobody_waits_for_silence_before_a_sentence(tts: HibariTts, voice: str) -> None:
    audio = np.abs(tts.synthesize("Good morning, how are you?", voice).astype(np.int32))
    audible = np.flatnonzero(audio > 0.012 * 32768)
    assert audible[0] <= 0.04 * SAMPLE_RATE
    assert 0.1 * SAMPLE_RATE <= len(audio) - audible[-1] <= 0.25 * SAMPLE_RATE
