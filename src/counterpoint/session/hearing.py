"""Finding speech in the input: what is with the detector, and what its answers mean.

Owns: chunks on their way through the detector, the segmenter, questions to the turn model.
Does not own: the audio (``input``), detection itself (the runner answers ``Detect`` and ``CheckTurn``), what
speech leads to (``turns``).
Here because: answers come later than the audio, and each must be applied to the audio that it is about.

Positions are samples of the session's input clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from counterpoint.audio.detectors import FRAME_SAMPLES
from counterpoint.audio.turns import EAGERNESS, SegmentEvent, TurnConfig, TurnSegmenter
from counterpoint.protocol.audio import SESSION_RATE, samples_to_ms
from counterpoint.protocol.turn_detection import ServerVad, TurnDetection

from .effects import CheckTurn, Detect, UseDetector
from .inputs import Detected, TurnChecked
from .out import Out


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Audio that is with the detector."""

    number: int
    size: int
    is_speech: bool | None  #: the client's own word, which counts more


class Hearing:
    """At work while the session has a detector."""

    def __init__(self, out: Out, detection: TurnDetection, start: int, *, turn_model: bool) -> None:
        self._out = out
        self._turn_model = turn_model
        self._detection = detection
        self._segmenter = TurnSegmenter(_turn_config(detection, turn_model))
        self._chunks: deque[_Chunk] = deque()
        self._last_chunk = 0
        self.heard = start  #: where the next frame of the detector begins
        #: Questions to the turn model, by their number: the sample they are about.
        self._checks: dict[int, int] = {}
        self._last_check = 0
        self.restart(start)

    # ------------------------------------------------------------------ reading

    @property
    def waiting(self) -> bool:
        """Audio is with the detector."""
        return bool(self._chunks)

    @property
    def waiting_bytes(self) -> int:
        return sum(chunk.size for chunk in self._chunks)

    @property
    def in_utterance(self) -> bool:
        return self._segmenter.in_utterance

    @property
    def keep_from(self) -> int:
        """Older audio is in no utterance to come."""
        return self._segmenter.keep_from

    @property
    def speech_ms(self) -> int:
        """Speech in the utterance, pauses not counted."""
        return samples_to_ms(self._segmenter.speech_samples, SESSION_RATE)

    # ------------------------------------------------------------------ settings

    def reconfigure(self, detection: TurnDetection, at: int) -> None:
        """Other rules from ``at`` on; an utterance goes on (case L-07)."""
        self._segmenter.reconfigure(_turn_config(detection, self._turn_model))
        if detection.detector != self._detection.detector:
            self._out.do(UseDetector(detection.detector))
            self._segmenter.realign(at)
            self.heard = at
        self._detection = detection

    def restart(self, at: int) -> None:
        """The input up to ``at`` is dealt with: the detector begins anew there."""
        self._segmenter.clear(at)
        self._checks.clear()
        self.heard = at
        self._out.do(UseDetector(self._detection.detector))

    # ------------------------------------------------------------------ detection

    def detect(self, pcm: bytes, is_speech: bool | None = None) -> None:
        """``pcm`` comes next in the input."""
        self._last_chunk += 1
        self._chunks.append(_Chunk(self._last_chunk, len(pcm), is_speech))
        self._out.do(Detect(self._last_chunk, pcm))

    def frames(self, found: Detected) -> Iterator[list[SegmentEvent]]:
        """The detector is done with the oldest chunk: what each frame that it completed leads to."""
        chunk = self._chunks.popleft()
        assert chunk.number == found.chunk, "detection is answered in order"
        for probability in found.probabilities:
            told = probability if chunk.is_speech is None else float(chunk.is_speech)
            self.heard += FRAME_SAMPLES
            yield self._segmenter.feed((told,))

    def stop_at(self, sample: int) -> list[SegmentEvent]:
        """An utterance ends at ``sample``, whatever is said there."""
        return self._segmenter.stall(sample)

    def check_turn(self, at_sample: int, pcm: bytes) -> None:
        """Ask the turn model about the utterance up to ``at_sample``."""
        self._last_check += 1
        self._checks[self._last_check] = at_sample
        self._out.do(CheckTurn(self._last_check, pcm))

    def turn_checked(self, checked: TurnChecked) -> list[SegmentEvent]:
        """The turn model answered; without effect if speech went on since."""
        at_sample = self._checks.pop(checked.check, None)
        return [] if at_sample is None else self._segmenter.turn_probability(at_sample, checked.probability)


def _turn_config(detection: TurnDetection, turn_model: bool) -> TurnConfig:
    if isinstance(detection, ServerVad):
        return TurnConfig(
            threshold=detection.threshold,
            prefix_padding_ms=detection.prefix_padding_ms,
            silence_duration_ms=detection.silence_duration_ms,
            min_speech_ms=detection.min_speech_ms,
        )
    return TurnConfig(semantic=EAGERNESS[detection.eagerness], has_turn_model=turn_model)
