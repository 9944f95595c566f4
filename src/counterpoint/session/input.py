"""Audio from the client: decoded, kept, searched for speech, handed to the model.

Owns: the input clock, the buffer, the detector's state and what waits for it, the open utterance.
Does not own: what speech and a commit lead to (``turns``), the order of commands (``waiting``), detection
itself (the runner answers ``Detect``).
Here because: every byte of input is in exactly one place, so that the budget can be read off it.

Without a detector everything up to the commit is one utterance. With one, the buffer holds the utterance
and what may still become the beginning of one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import assert_never

from counterpoint.audio.buffer import UtteranceBuffer
from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.detectors import FRAME_SAMPLES
from counterpoint.audio.resample import StreamingResampler
from counterpoint.audio.turns import (
    EAGERNESS,
    CheckTurnEnd,
    SegmentEvent,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnConfig,
    TurnSegmenter,
)
from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.plugins.contract import StepInput
from counterpoint.protocol.audio import SESSION_RATE, AudioFormat, ms_to_samples, samples_to_ms
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import AppendAudio, AppendText, CommitAudio
from counterpoint.protocol.events import InputCleared
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import ContentPart, InputImage, InputText
from counterpoint.protocol.turn_detection import ServerVad, TurnDetection

from .effects import CheckTurn, Detect, Forget, Push, UseDetector
from .inputs import Detected, TurnChecked
from .out import Out
from .state import RunState
from .turns import Turns
from .utterance import Utterance

_SAMPLE_BYTES = 2

#: A shorter buffer is no turn (wire contract, section 4).
_MIN_COMMIT_SAMPLES = ms_to_samples(100, SESSION_RATE)

#: No turn model listens further back.
_CHECKED_SAMPLES = ms_to_samples(8_000, SESSION_RATE)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Audio on its way through the detector."""

    number: int
    size: int
    is_speech: bool | None  #: the client's own word, which counts more


class InputLine:
    def __init__(
        self, state: RunState, out: Out, ids: IdSource, limits: Limits, turns: Turns, *, turn_model: bool
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._limits = limits
        self._turns = turns
        self._turn_model = turn_model
        self._decoder = InputDecoder()
        self._buffer = UtteranceBuffer(self._room())
        self._segmenter: TurnSegmenter | None = None
        self._chunks: deque[_Chunk] = deque()
        self._last_chunk = 0
        #: Where the next frame of the detector begins.
        self._detected = 0
        self._utterance: Utterance | None = None
        self._last_input = 0
        #: During a pause nothing is pushed: it would discard the answer that was prepared in it.
        self._hold_at: int | None = None
        #: Texts and images for the item that the next commit makes.
        self._extras: list[ContentPart] = []
        #: Questions to the turn model, by their number: the sample they are about.
        self._checks: dict[int, int] = {}
        self._last_check = 0
        self._last_append_at = state.now
        self.reconfigure()

    # ------------------------------------------------------------------ reading

    @property
    def waiting(self) -> bool:
        """Audio is with the detector: what depends on the order of input must wait."""
        return bool(self._chunks)

    @property
    def utterance(self) -> Utterance | None:
        return self._utterance

    @property
    def clock_ms(self) -> int:
        return samples_to_ms(self._buffer.end_sample, SESSION_RATE)

    @property
    def held_bytes(self) -> int:
        """Accepted and neither part of an item nor known to be no speech."""
        held = sum(chunk.size for chunk in self._chunks) + sum(_size(part) for part in self._extras)
        if self._utterance is not None:
            # What is with the detector is not counted twice.
            spoken = max(0, min(self._detected_end, self._buffer.end_sample) - self._utterance.start)
            held += spoken * _SAMPLE_BYTES
        return held

    @property
    def _detected_end(self) -> int:
        """Everything before this has left the detector."""
        pending = sum(chunk.size for chunk in self._chunks) // _SAMPLE_BYTES
        return self._buffer.end_sample - pending

    # ------------------------------------------------------------------ commands

    def append(self, command: AppendAudio) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        if command.video_frames and not self._state.capabilities.images:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model takes no images", param="video_frames")
        if command.audio and not self._state.capabilities.audio_input:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model takes no audio", param="audio")
        fmt = command.format or self._state.config.audio.input.format
        self._check_length(command.audio, fmt)
        pcm = self._decoder.push(command.audio, fmt)
        self._extras += [InputImage(image) for image in command.video_frames]
        self._last_append_at = self._state.now
        if pcm:
            self._take(pcm, command.is_speech)

    def append_text(self, command: AppendText) -> None:
        if not self._state.capabilities.text_input:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model takes no text", param="text")
        if command.text:
            self._extras.append(InputText(command.text))

    def commit(self, command: CommitAudio) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        utterance = None if self._is_hidden else self._utterance
        if not self._is_enough(utterance):
            message = "the buffer holds less than 100 ms of audio"
            raise ProtocolError(ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY, message)
        respond = self._turns.answers_commit(command)
        if respond:
            self._turns.check_room()
        if utterance is None:
            self._turns.commit_text(self._take_extras(), respond=respond)
            return
        self._end_audio()
        if self._segmenter is not None:
            self._turns.announce_end(utterance, self._buffer.end_sample)
            self._restart_detection(self._buffer.end_sample)
        self._commit(utterance, self._buffer.end_sample, respond=respond)

    def _is_enough(self, utterance: Utterance | None) -> bool:
        """Pending text alone makes a good commit."""
        if any(isinstance(part, InputText) for part in self._extras):
            return True
        end = self._buffer.end_sample + self._decoder.pending_samples
        return utterance is not None and end - utterance.start >= _MIN_COMMIT_SAMPLES

    @property
    def _is_hidden(self) -> bool:
        return self._utterance is not None and self._turns.is_hidden(self._utterance)

    def clear(self) -> None:
        self._end_audio()
        self._extras.clear()
        if self._utterance is not None:
            self._drop(self._utterance)
        if self._segmenter is not None:
            self._restart_detection(self._buffer.end_sample)
        self._buffer.drop_before(self._buffer.end_sample)
        self._out.emit(InputCleared())

    def lose(self) -> None:
        """There was no room for more of it: an utterance with a hole is none (case H-13)."""
        if self._utterance is not None or self._extras:
            self.clear()

    # ------------------------------------------------------------------ detection

    def detected(self, found: Detected) -> None:
        """The detector is done with the oldest chunk."""
        chunk = self._chunks.popleft()
        assert chunk.number == found.chunk, "detection is answered in order"
        if self._segmenter is None:
            return
        for probability in found.probabilities:
            told = probability if chunk.is_speech is None else float(chunk.is_speech)
            self._detected += FRAME_SAMPLES
            self._follow(self._segmenter.feed((told,)))
            self._end_long_turn()
        utterance = self._utterance
        if utterance is not None:
            self._push(utterance, self._detected if self._hold_at is None else self._hold_at)
            self._turns.speech_goes_on(utterance, samples_to_ms(self._segmenter.speech_samples, SESSION_RATE))
        self._buffer.drop_before(self._segmenter.keep_from)

    def turn_checked(self, checked: TurnChecked) -> None:
        """The turn model answered; without effect if speech went on since."""
        at_sample = self._checks.pop(checked.check, None)
        if at_sample is not None and self._segmenter is not None:
            self._follow(self._segmenter.turn_probability(at_sample, checked.probability))

    def reconfigure(self) -> None:
        """The session's turn detection was set or changed; an utterance goes on (case L-07)."""
        detection = self._state.config.audio.input.turn_detection
        if detection is None:
            self._stop_detecting()
            return
        config = _turn_config(detection, self._turn_model)
        if self._segmenter is None:
            self._start_detecting(config)
            return
        self._segmenter.reconfigure(config)
        self._detected = self._buffer.end_sample
        self._segmenter.realign(self._detected)
        self._out.do(UseDetector(detection.detector))

    def _start_detecting(self, config: TurnConfig) -> None:
        """What was appended by hand until now is searched for speech like what follows."""
        start = self._buffer.end_sample
        if self._utterance is not None:
            start = self._utterance.start
            self._drop(self._utterance)
        self._segmenter = TurnSegmenter(config)
        self._restart_detection(start)
        self._detect(self._buffer.slice(start, self._buffer.end_sample), None)

    def _stop_detecting(self) -> None:
        """An utterance that was found goes on until it is committed by hand."""
        self._segmenter = None
        self._hold_at = None
        if self._utterance is None:
            self._buffer.drop_before(self._buffer.end_sample)
        else:
            self._push(self._utterance, self._buffer.end_sample)

    def _restart_detection(self, start: int) -> None:
        """The input up to ``start`` is dealt with: the detector begins anew there."""
        assert self._segmenter is not None
        detection = self._state.config.audio.input.turn_detection
        self._segmenter.clear(start)
        self._detected = start
        self._checks.clear()
        self._out.do(UseDetector(detection.detector if detection else None))

    def _take(self, pcm: bytes, is_speech: bool | None) -> None:
        start = self._buffer.end_sample
        self._buffer.append(pcm)
        if self._segmenter is not None:
            self._detect(pcm, is_speech)
            return
        if self._utterance is None:
            self._open(start)
        assert self._utterance is not None
        self._push(self._utterance, self._buffer.end_sample)

    def _detect(self, pcm: bytes, is_speech: bool | None) -> None:
        if pcm:
            self._last_chunk += 1
            self._chunks.append(_Chunk(self._last_chunk, len(pcm), is_speech))
            self._out.do(Detect(self._last_chunk, pcm))

    # ------------------------------------------------------------------ speech

    def _follow(self, events: list[SegmentEvent]) -> None:
        for event in events:
            match event:
                case SpeechStarted(start_sample):
                    self._turns.speech_started(self._open(start_sample))
                case SpeechPaused(at_sample):
                    self._pause(at_sample)
                case SpeechResumed():
                    self._hold_at = None
                case CheckTurnEnd(at_sample):
                    self._check_turn(at_sample)
                case SpeechStopped(end_sample):
                    self._stop(end_sample)
                case _:
                    assert_never(event)

    def _pause(self, at_sample: int) -> None:
        assert self._utterance is not None
        self._push(self._utterance, at_sample)
        self._hold_at = at_sample
        self._turns.speech_paused(self._utterance)

    def _check_turn(self, at_sample: int) -> None:
        assert self._utterance is not None
        self._last_check += 1
        self._checks[self._last_check] = at_sample
        start = max(self._utterance.start, at_sample - _CHECKED_SAMPLES)
        self._out.do(CheckTurn(self._last_check, self._buffer.slice(start, at_sample)))

    def _stop(self, end_sample: int) -> None:
        utterance = self._utterance
        assert utterance is not None
        self._checks.clear()
        if self._is_hidden:
            self._drop(utterance)
            return
        self._turns.announce_end(utterance, end_sample)
        self._commit(utterance, end_sample, respond=self._turns.answers_speech())

    def _end_long_turn(self) -> None:
        """``limits.max_turn_s`` of speech are a turn, and what follows is another."""
        most = self._most_samples
        if self._segmenter is None or self._utterance is None or not most:
            return
        end = self._utterance.start + most
        if self._detected >= end:
            self._follow(self._segmenter.stall(end))

    # ------------------------------------------------------------------ the open utterance

    def _open(self, start: int) -> Utterance:
        self._last_input += 1
        resampler = StreamingResampler(SESSION_RATE, self._state.capabilities.input_rate)
        self._utterance = Utterance(self._last_input, self._ids.item(), start, start, resampler)
        self._turns.expect(self._utterance)
        return self._utterance

    def _push(self, utterance: Utterance, end: int, *, final: bool = False) -> None:
        """Hand the model what it does not have yet, up to ``end``."""
        audio = b""
        if end > utterance.pushed:
            audio = utterance.resampler.process(self._buffer.slice(utterance.pushed, end))
            utterance.pushed = end
        if final:
            audio += utterance.resampler.flush()
        if not audio and not final:
            return
        step = StepInput(
            self._state.fence(),
            utterance.input,
            audio,
            final,
            real_samples=len(audio) // _SAMPLE_BYTES,
            transcribe=final and self._state.config.audio.input.transcription is not None,
        )
        self._out.do(Push(step))

    def _commit(self, utterance: Utterance, end: int, *, respond: bool) -> None:
        self._push(utterance, end, final=True)
        pcm = self._buffer.slice(utterance.start, end)
        self._close()
        self._buffer.drop_before(end)
        self._turns.commit(utterance, pcm, self._take_extras(), respond=respond)

    def _drop(self, utterance: Utterance) -> None:
        self._close()
        self._out.do(Forget(utterance.input))
        self._turns.forget(utterance)

    def _close(self) -> None:
        self._utterance = None
        self._hold_at = None

    def _end_audio(self) -> None:
        """A commit or clear: no odd byte is carried over, no resampler's tail is left behind."""
        self._buffer.append(self._decoder.end())

    def _take_extras(self) -> tuple[ContentPart, ...]:
        extras, self._extras = tuple(self._extras), []
        return extras

    # ------------------------------------------------------------------ limits

    @property
    def _most_samples(self) -> int:
        """Of one turn; 0: any."""
        return int(self._limits.max_turn_s * SESSION_RATE)

    def _room(self) -> int:
        """Samples that may have to be kept: a turn, and what is with the detector behind it."""
        turn = self._most_samples or 2**62
        return turn + self._limits.max_pending_input_bytes + SESSION_RATE

    def _check_length(self, audio: bytes, fmt: AudioFormat) -> None:
        if self._segmenter is not None or self._utterance is None or not self._most_samples:
            return
        added = len(audio) // fmt.encoding.sample_bytes * SESSION_RATE // fmt.rate
        if self._buffer.end_sample - self._utterance.start + added > self._most_samples:
            message = f"a turn has at most {self._limits.max_turn_s:g} s (limits.max_turn_s)"
            raise ProtocolError(ErrorCode.INPUT_BACKPRESSURE, message, param="audio")

    # ------------------------------------------------------------------ time

    def resume_clock(self) -> None:
        """A client that was away has not stopped speaking because of that."""
        self._last_append_at = self._state.now

    def deadline(self) -> float | None:
        """When speech counts as over because no more audio comes (case L-05)."""
        speaking = self._segmenter is not None and self._segmenter.in_utterance
        if not speaking or self._chunks or not self._state.attached or not self._limits.input_stall_ms:
            return None
        return self._last_append_at + self._limits.input_stall_ms / 1000

    def expire(self) -> None:
        deadline = self.deadline()
        if deadline is not None and deadline <= self._state.now and self._segmenter is not None:
            self._follow(self._segmenter.stall(self._buffer.end_sample))


def _turn_config(detection: TurnDetection, turn_model: bool) -> TurnConfig:
    if isinstance(detection, ServerVad):
        return TurnConfig(
            threshold=detection.threshold,
            prefix_padding_ms=detection.prefix_padding_ms,
            silence_duration_ms=detection.silence_duration_ms,
            min_speech_ms=detection.min_speech_ms,
        )
    return TurnConfig(semantic=EAGERNESS[detection.eagerness], has_turn_model=turn_model)


def _size(part: ContentPart) -> int:
    match part:
        case InputText(text):
            return len(text)
        case InputImage(image_url):
            return len(image_url)
        case _:
            raise AssertionError("only texts and images wait for a commit")
