"""Synthesis: text in, a voice out.

Owns: one shared Hibari model, the five voices that are made of it, loudness, and text that it cannot say.
Does not own: which sentence is said when (``text``, the cascade), pacing and packets (delivery).
Here because: one model of eight megabytes gives five voices when its spectrum is stretched before it sounds.
"""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .cancellation import Cancelled, never, stop_if
from .runtime import load_onnx

SAMPLE_RATE: Final = 24_000


@dataclass(frozen=True, slots=True)
class Voice:
    """How far the model's own voice is moved. Within these bounds our recognition still understands it."""

    #: Factor on the pitch.
    pitch: float
    #: Factor on the resonances: below 1 a longer throat, above 1 a shorter one.
    formants: float
    #: Factor on the level, measured: a lower pitch has more harmonics under the same envelope.
    level: float


DEFAULT_VOICE: Final = "mezzo"
VOICES: Final = {
    "soprano": Voice(pitch=1.15, formants=1.05, level=0.87),
    "mezzo": Voice(pitch=1.0, formants=1.0, level=1.0),
    "alto": Voice(pitch=0.8, formants=0.95, level=0.74),
    "tenor": Voice(pitch=0.62, formants=0.88, level=0.5),
    "bass": Voice(pitch=0.55, formants=0.84, level=0.45),
}

#: The model is quiet: 6 dB more.
_GAIN: Final = 2.0
#: Above this level peaks are bent instead of clipped.
_KNEE: Final = 0.7
#: Below this the ends of a sentence are silence. The model makes 0.3 s of it first, and people would wait.
_AUDIBLE: Final = 0.01
#: Silence that stays before a sentence, and after it, so that sentences do not run into each other.
_LEAD_SAMPLES: Final = SAMPLE_RATE // 50
_PAUSE_SAMPLES: Final = SAMPLE_RATE // 5
#: Text of one run: longer ones take memory and cannot be cancelled in between.
_MOST_CHARACTERS: Final = 200
#: Numbers from here on have no name in the pronunciation rules; their digits are read one by one.
_NAMELESS_NUMBER: Final = re.compile(r"\d{16,}")
_PRONOUNCED_SIGNS: Final = frozenset("°£€¼½¾–—‘’“”…")
#: Marks of written emphasis, which the pronunciation rules would read out by name.
_MARKUP: Final = re.compile(r"[*#_~|`]+")
#: A space of the model's phoneme alphabet, which it expects at both ends.
_PAD: Final = 0


class HibariTts:
    """The shared model. It has no state between calls; any thread may call it."""

    def __init__(self) -> None:
        package = import_module("hibari.tts")
        assets = Path(package.ASSETS)
        self._session = load_onnx(assets / "hibari.onnx")
        self._sentences: Any = package.Hibari.split_sentences
        self._phonemes: Any = import_module("hibari.g2p").G2P()
        self._waveform: Any = package.dsp.synth
        self._ids: dict[str, int] = json.loads((assets / "vocab.json").read_text(encoding="utf-8"))

    def synthesize(
        self, text: str, voice: str = DEFAULT_VOICE, cancelled: Cancelled = never
    ) -> NDArray[np.int16]:
        """``text`` spoken by one of `VOICES`: 24 kHz mono; no samples for text without a sound.

        The same text gives the same samples. Raises `StaleFence` when cancelled, which is asked before
        every sentence, and `KeyError` for an unknown voice.
        """
        manner = VOICES[voice]
        spoken = [np.zeros(0, np.int16)]
        for sentence in self._speakable(text):
            stop_if(cancelled)
            spoken.append(self._speak(sentence, manner))
        return np.concatenate(spoken)

    def _speakable(self, text: str) -> Iterator[str]:
        for sentence in self._sentences(sayable(text)):
            for part in textwrap.wrap(sentence, _MOST_CHARACTERS):
                if any(character.isalnum() for character in part):
                    yield part

    def _speak(self, sentence: str, voice: Voice) -> NDArray[np.int16]:
        ids = [self._ids[phoneme] for phoneme in self._phonemes(sentence) if phoneme in self._ids]
        if not ids:
            return np.zeros(0, np.int16)
        inputs: dict[str, NDArray[Any]] = {
            "ids": np.array([[_PAD, *ids, _PAD]], np.int64),
            "speed": np.ones(1, np.float32),
        }
        *spectra, pitch = (output[0] for output in self._session.run(None, inputs))
        moved = [_stretched(spectrum, voice.formants) for spectrum in spectra]
        # The breath in the voice is noise: the same noise every time, so that equal text sounds equal.
        audio = self._waveform(*moved, pitch * np.float32(voice.pitch), np.random.default_rng(0))
        return _limited(_trimmed(audio * np.float32(_GAIN * voice.level)))


def sayable(text: str) -> str:
    """``text`` without markup, in characters that the pronunciation rules know; others become a space."""
    plain = "".join(_plain(character) for character in _MARKUP.sub(" ", text))
    return _NAMELESS_NUMBER.sub(lambda number: " ".join(number[0]), plain)


def _plain(character: str) -> str:
    if character.isascii() or character in _PRONOUNCED_SIGNS:
        return character
    if character.isalpha() and ord(character) < 256:
        return character
    # Decomposed, a circled digit is a digit and a letter with an unusual accent is a letter.
    return "".join(part for part in unicodedata.normalize("NFKD", character) if part.isascii()) or " "


def _stretched(spectrum: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """Move what is at frequency f to ``factor`` times f. ``spectrum`` is (bins, frames)."""
    if factor == 1.0:
        return spectrum
    top = len(spectrum) - 1
    sources = np.minimum(np.arange(top + 1) / factor, top).round().astype(np.intp)
    return spectrum[sources]


def _trimmed(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without the silence at both ends, but for a breath before and a pause after."""
    audible = np.flatnonzero(np.abs(audio) >= _AUDIBLE)
    if not len(audible):
        return audio[:0]
    return audio[max(0, audible[0] - _LEAD_SAMPLES) : audible[-1] + 1 + _PAUSE_SAMPLES]


def _limited(audio: NDArray[np.float32]) -> NDArray[np.int16]:
    """Linear up to the knee, then bent so that full scale is never reached."""
    level = np.abs(audio)
    room = 1.0 - _KNEE
    bent = _KNEE + room * np.tanh((level - _KNEE) / room)
    limited = np.where(level > _KNEE, np.copysign(bent, audio), audio)
    return np.round(limited * 32767.0).astype(np.int16)
