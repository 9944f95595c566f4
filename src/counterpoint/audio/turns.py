"""Finds the turns of a user in a stream of speech probabilities.

Owns: onset, padding, pauses and the end of utterances, on the session's input clock (invariants 105-108).
Does not own: the probabilities (``detectors``), the audio (``buffer``), the turn model and what a turn
does (``session``), stalls of the input (the caller knows the time).
Here because: these rules decide when the server speaks. As a function of numbers alone they can be
tested on every frame, and cannot depend on how the audio was cut or how long a model took.

Every position is a sample of the input clock, exact to the rule that made it: silence of 500 ms ends
500 ms after the last speech, not at the end of the 32 ms frame in which that was noticed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from counterpoint.protocol.audio import SESSION_RATE, ms_to_samples

from .detectors import FRAME_SAMPLES

#: An utterance ends below the threshold minus this, but not below the smallest end threshold (invariant 106).
_HYSTERESIS: Final = 0.15
_MIN_END_THRESHOLD: Final = 0.01

#: So much silence is a pause: worth a guess at the answer, and the end of a burst too short to be speech.
PAUSE_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Semantic:
    """How eager a session with a turn model is to take its turn."""

    ask_after_ms: int  #: silence after which the turn model is asked, once per pause
    threshold: float  #: its probability must exceed this
    max_silence_ms: int  #: ends the turn whatever the model says
    unaided_ms: int  #: ends the turn where there is no turn model


_MEDIUM: Final = Semantic(ask_after_ms=300, threshold=0.5, max_silence_ms=2000, unaided_ms=500)

#: ``semantic_vad.eagerness`` (wire contract, section 4).
EAGERNESS: Final = {
    "high": Semantic(ask_after_ms=200, threshold=0.5, max_silence_ms=800, unaided_ms=300),
    "medium": _MEDIUM,
    "auto": _MEDIUM,
    "low": Semantic(ask_after_ms=500, threshold=0.8, max_silence_ms=4000, unaided_ms=800),
}


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """The rules in force; the defaults are those of ``server_vad``."""

    threshold: float = 0.5  #: 0.01 to 1
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500  #: without ``semantic``
    min_speech_ms: int = 96
    semantic: Semantic | None = None
    has_turn_model: bool = False

    @property
    def end_threshold(self) -> float:
        return max(self.threshold - _HYSTERESIS, _MIN_END_THRESHOLD)

    @property
    def silence_limit_ms(self) -> int:
        """Silence that ends a turn when nobody is asked, or nobody says so earlier."""
        if self.semantic is None:
            return self.silence_duration_ms
        return self.semantic.max_silence_ms if self.has_turn_model else self.semantic.unaided_ms

    @property
    def ask_after_ms(self) -> int | None:
        """Silence after which the turn model is asked, if there is one to ask."""
        return self.semantic.ask_after_ms if self.semantic and self.has_turn_model else None


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Somebody speaks. The utterance begins at ``start_sample``: the onset minus the padding, clamped."""

    start_sample: int
    onset_sample: int
    confirmed_at_sample: int  #: where ``min_speech_ms`` of speech were complete


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """``PAUSE_MS`` of silence within the utterance: it may end here, so an answer may be prepared."""

    at_sample: int


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The pause was not the end: what was prepared in it is void."""

    at_sample: int


@dataclass(frozen=True, slots=True)
class CheckTurnEnd:
    """Ask the turn model about the utterance up to ``at_sample``; answer by ``turn_probability``."""

    at_sample: int
    silence_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The utterance is over. ``end_sample`` includes the silence that ended it (invariant 107)."""

    end_sample: int


SegmentEvent = SpeechStarted | SpeechPaused | SpeechResumed | CheckTurnEnd | SpeechStopped


class _State(enum.Enum):
    IDLE = enum.auto()
    CANDIDATE = enum.auto()  #: speech too short to be believed yet
    SPEECH = enum.auto()
    SILENCE = enum.auto()  #: in an utterance, since less than a pause
    PAUSE = enum.auto()  #: announced
    ASKED = enum.auto()  #: announced, and the turn model was asked about it


class TurnSegmenter:
    """Turns frame probabilities into utterances; one per session, for the session's life.

    Feed it every frame once and in order. Its clock counts the frames; after a reset of the detector,
    ``realign`` says where the next frame begins.
    """

    def __init__(self, config: TurnConfig) -> None:
        self._config = config
        self._state = _State.IDLE
        self._clock = 0
        #: Start of the utterance if there is one, else the earliest start that the next one may have.
        self._start = 0
        self._onset = 0
        self._speech_end = 0
        self._speech = 0
        self._asked_at = 0

    @property
    def in_utterance(self) -> bool:
        """``SpeechStarted`` was given out, and its ``SpeechStopped`` was not."""
        return self._state not in (_State.IDLE, _State.CANDIDATE)

    @property
    def keep_from(self) -> int:
        """Older audio than this is in no utterance to come: ``UtteranceBuffer.drop_before``."""
        return self._start

    @property
    def speech_samples(self) -> int:
        """Speech accumulated in the utterance, or in the burst that may become one; silence not counted."""
        return self._speech

    def feed(self, probabilities: Iterable[float]) -> list[SegmentEvent]:
        """One probability per frame of ``FRAME_SAMPLES``, in order."""
        events: list[SegmentEvent] = []
        for probability in probabilities:
            self._clock += FRAME_SAMPLES
            match self._state:
                case _State.IDLE:
                    self._idle(probability, events)
                case _State.CANDIDATE:
                    self._candidate(probability, events)
                case _:
                    self._utterance(probability, events)
        return events

    def _idle(self, probability: float, events: list[SegmentEvent]) -> None:
        if probability < self._config.threshold:
            self._advance_start(self._clock)
            return
        self._state = _State.CANDIDATE
        self._onset = max(self._clock - FRAME_SAMPLES, self._start)
        self._candidate(probability, events)

    def _candidate(self, probability: float, events: list[SegmentEvent]) -> None:
        """Speech accumulates until it is believed; a pause ends the burst.

        Only the threshold counts here. By the end threshold, noise between the two could hold a burst,
        and the audio since, for ever.
        """
        if probability < self._config.threshold:
            if self._clock - self._speech_end >= _samples(PAUSE_MS):
                self._drop()
                self._advance_start(self._clock)
            return
        self._speech += FRAME_SAMPLES
        self._speech_end = self._clock
        if self._speech >= _samples(self._config.min_speech_ms):
            self._state = _State.SPEECH
            self._advance_start(self._onset)
            events.append(SpeechStarted(self._start, self._onset, self._clock))

    def _utterance(self, probability: float, events: list[SegmentEvent]) -> None:
        if probability >= self._config.end_threshold:
            if self._state in (_State.PAUSE, _State.ASKED):
                events.append(SpeechResumed(self._clock - FRAME_SAMPLES))
            self._state = _State.SPEECH
            self._speech += FRAME_SAMPLES
            self._speech_end = self._clock
            return
        if self._state is _State.SPEECH:
            self._state = _State.SILENCE
        self._silence(self._clock - self._speech_end, events)

    def _silence(self, silence: int, events: list[SegmentEvent]) -> None:
        limit = _samples(self._config.silence_limit_ms)
        if silence >= limit:
            events.append(self._stop(self._speech_end + limit))
            return
        if self._state is _State.SILENCE and silence >= _samples(PAUSE_MS):
            self._state = _State.PAUSE
            events.append(SpeechPaused(self._speech_end + _samples(PAUSE_MS)))
        ask_after_ms = self._config.ask_after_ms
        if self._state is _State.PAUSE and ask_after_ms is not None and silence >= _samples(ask_after_ms):
            self._state = _State.ASKED
            self._asked_at = self._speech_end + _samples(ask_after_ms)
            events.append(CheckTurnEnd(self._asked_at, ask_after_ms))

    def _stop(self, end: int) -> SpeechStopped:
        self._drop()
        self._start = end
        return SpeechStopped(end)

    def _drop(self) -> None:
        self._state = _State.IDLE
        self._speech = 0

    def _advance_start(self, onset: int) -> None:
        """Never back: what lies before was given away with an utterance, or is no longer kept."""
        self._start = max(self._start, onset - _samples(self._config.prefix_padding_ms))

    def turn_probability(self, at_sample: int, probability: float) -> list[SegmentEvent]:
        """The turn model's answer to ``CheckTurnEnd(at_sample)``; without effect if speech went on since.

        A yes ends the utterance at ``at_sample``, however long the model took.
        """
        semantic = self._config.semantic
        if self._state is not _State.ASKED or at_sample != self._asked_at:
            return []
        if semantic is None or probability <= semantic.threshold:
            return []
        return [self._stop(at_sample)]

    def stall(self, now_samples: int) -> list[SegmentEvent]:
        """Input stopped arriving at ``now_samples`` of the clock: an utterance ends there (case L-05)."""
        if self.in_utterance:
            return [self._stop(now_samples)]
        self._drop()
        return []

    def clear(self, now_samples: int) -> None:
        """The input up to ``now_samples`` was committed or thrown away, and the detector reset.

        Nothing is announced; nothing of it is in a later utterance (case H-12).
        """
        self._drop()
        self._start = now_samples
        self.realign(now_samples)

    def realign(self, next_sample: int) -> None:
        """The detector was reset: the next frame begins at ``next_sample`` (invariant 108)."""
        self._clock = next_sample

    def reconfigure(self, config: TurnConfig) -> None:
        """New rules from the next frame on. An utterance, or the beginning of one, goes on (case L-07)."""
        self._config = config


def _samples(ms: int) -> int:
    return ms_to_samples(ms, SESSION_RATE)
