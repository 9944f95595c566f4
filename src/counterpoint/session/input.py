"""Audio from the client: decoded, kept, handed to the model, committed or dropped.

Owns: the input clock, the buffer, the open utterance, what waits for the next commit.
Does not own: finding speech (``hearing``), what speech and a commit lead to (``turns``), the order of
commands (``waiting``).
Here because: every byte of input is in exactly one place, so that the budget can be read off it.

Without a detector everything up to the commit is one utterance. With one, the buffer holds the utterance
and what may still become the beginning of one.
"""

from __future__ import annotations

from typing import assert_never

from counterpoint.audio.buffer import UtteranceBuffer
from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.resample import StreamingResampler
from counterpoint.audio.turns import (
    PAUSE_MS,
    CheckTurnEnd,
    SegmentEvent,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
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

from .effects import Forget, Push
from .hearing import Hearing
from .inputs import Detected, TurnChecked
from .judging import Judging
from .out import Out
from .state import RunState
from .steps import Steps
from .turns import Turns
from .utterance import Recorded, Utterance

_SAMPLE_BYTES = 2

#: A shorter buffer is no turn (wire contract, section 4).
_MIN_COMMIT_SAMPLES = ms_to_samples(100, SESSION_RATE)

_PAUSE_SAMPLES = ms_to_samples(PAUSE_MS, SESSION_RATE)

#: A native model has heard it all; the newest is kept for a commit by hand.
_KEPT_SAMPLES = ms_to_samples(30_000, SESSION_RATE)

#: No turn model listens further back.
_CHECKED_SAMPLES = ms_to_samples(8_000, SESSION_RATE)


class InputLine:
    def __init__(
        self,
        state: RunState,
        out: Out,
        ids: IdSource,
        limits: Limits,
        turns: Turns,
        judging: Judging,
        steps: Steps | None,
        *,
        turn_model: bool,
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._limits = limits
        self._turns = turns
        self._judging = judging
        #: Of a native model: it hears everything, utterance or not.
        self._steps = steps
        self._turn_model = turn_model
        self._decoder = InputDecoder()
        #: Of one turn; 0: any number.
        self._most_samples = int(limits.max_turn_s * SESSION_RATE)
        # Room for a turn, and for what is with the detector behind it.
        room = (self._most_samples or 2**62) + limits.max_pending_input_bytes
        self._buffer = UtteranceBuffer(room)
        self._hearing: Hearing | None = None
        self._utterance: Utterance | None = None
        self._last_input = 0
        #: During a pause nothing is pushed: that would discard the answer which was prepared in it.
        self._hold_at: int | None = None
        #: Texts and images for the item that the next commit makes.
        self._extras: list[ContentPart] = []
        self._last_append_at = state.now
        self.reconfigure()

    # ------------------------------------------------------------------ reading

    @property
    def waiting(self) -> bool:
        """Audio is with the detector: what depends on the order of input must wait."""
        return self._hearing is not None and self._hearing.waiting

    @property
    def clock_ms(self) -> int:
        """All that came in, what the resampler still holds included."""
        return samples_to_ms(self._buffer.end_sample + self._decoder.pending_samples, SESSION_RATE)

    @property
    def is_spoken(self) -> bool:
        """An utterance is open and somebody was told, or is filling it by hand."""
        return self._utterance is not None and not self._is_hidden

    @property
    def open_utterance(self) -> int | None:
        return None if self._utterance is None else self._utterance.input

    @property
    def held_bytes(self) -> int:
        """Accepted, and neither part of an item nor known to be no speech."""
        waiting = 0 if self._hearing is None else self._hearing.waiting_bytes
        held = waiting + sum(_size(part) for part in self._extras)
        if self._utterance is not None:
            # What is with the detector is not counted twice.
            spoken = self._buffer.end_sample - self._utterance.start - waiting // _SAMPLE_BYTES
            held += max(0, spoken) * _SAMPLE_BYTES
        return held

    # ------------------------------------------------------------------ commands

    def append(self, command: AppendAudio) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        if command.video_frames and not self._state.capabilities.images:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model takes no images", param="video_frames")
        if command.audio and not self._state.capabilities.audio_input:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model takes no audio", param="audio")
        fmt = command.format_within(self._state.config.audio.input.format)
        self._check_length(command.audio, fmt)
        pcm = self._decoder.push(command.audio, fmt)
        self._last_append_at = self._state.now
        if self._steps is None:
            self._extras += [InputImage(image) for image in command.video_frames]
        else:
            self._steps.feed(pcm, command.video_frames)
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
        if utterance is None:
            self._turns.commit_text(self._take_extras(), respond=respond)
            return
        self._end_audio()
        end = self._buffer.end_sample
        if self._hearing is not None:
            self._turns.announce_end(utterance, end)
            self._hearing.restart(end)
        self._commit(utterance, end, respond=respond)

    def clear(self) -> None:
        self._end_audio()
        self._extras.clear()
        if self._utterance is not None:
            self._drop(self._utterance)
        if self._hearing is not None:
            self._hearing.restart(self._buffer.end_sample)
        if self._steps is not None:
            self._steps.clear()
        self._buffer.drop_before(self._buffer.end_sample)
        self._out.emit(InputCleared())

    def lose(self) -> None:
        """There was no room for more of it: an utterance with a hole is none (case H-13)."""
        if self._utterance is not None or self._extras:
            self.clear()

    def end(self) -> None:
        """The session is over: no input is held any longer (invariant 143)."""
        self._hearing = self._utterance = None
        self._extras.clear()
        self._buffer.drop_before(self._buffer.end_sample)

    def _is_enough(self, utterance: Utterance | None) -> bool:
        """Pending text alone makes a good commit."""
        if any(isinstance(part, InputText) for part in self._extras):
            return True
        end = self._buffer.end_sample + self._decoder.pending_samples
        return utterance is not None and end - utterance.start >= _MIN_COMMIT_SAMPLES

    def _check_length(self, audio: bytes, fmt: AudioFormat) -> None:
        """By hand a turn can only be too long; what a detector finds is cut (``_end_long_turn``).

        No backpressure: to try again does not help, and the number of the command is used by now.
        """
        if (
            self._steps is not None
            or self._hearing is not None
            or self._utterance is None
            or not self._most_samples
        ):
            return
        added = len(audio) // fmt.encoding.sample_bytes * SESSION_RATE // fmt.rate
        if self._buffer.end_sample - self._utterance.start + added > self._most_samples:
            message = f"a turn has at most {self._limits.max_turn_s:g} s (limits.max_turn_s)"
            raise ProtocolError(ErrorCode.INVALID_AUDIO, message, param="audio")

    # ------------------------------------------------------------------ detection

    def detected(self, found: Detected) -> None:
        """The detector is done with the oldest chunk."""
        hearing = self._hearing
        assert hearing is not None, "a detector is not taken away while audio is with it"
        for events in hearing.frames(found):
            self._follow(events)
            self._end_long_turn(hearing)
        if self._utterance is not None:
            self._push(self._utterance, hearing.heard if self._hold_at is None else self._hold_at)
            self._turns.speech_goes_on(self._utterance, hearing.speech_ms)
        self._buffer.drop_before(hearing.keep_from)

    def turn_checked(self, checked: TurnChecked) -> None:
        """The turn model answered."""
        if self._hearing is not None:
            self._follow(self._hearing.turn_checked(checked))

    def reconfigure(self) -> None:
        """The session's turn detection was set or changed; an open utterance goes on."""
        detection = self._state.config.audio.input.turn_detection
        if detection is None:
            self._stop_hearing()
        elif self._hearing is not None:
            self._hearing.reconfigure(detection, self._buffer.end_sample)
        else:
            # What was appended by hand until now is searched for speech like what follows.
            start = self._buffer.end_sample if self._utterance is None else self._utterance.start
            if self._utterance is not None:
                self._drop(self._utterance)
            self._hearing = Hearing(self._out, detection, start, turn_model=self._turn_model)
            if start < self._buffer.end_sample:
                self._hearing.detect(self._buffer.slice(start, self._buffer.end_sample))

    def _stop_hearing(self) -> None:
        """An utterance that was found goes on until it is committed by hand."""
        self._hearing = None
        self._hold_at = None
        if self._utterance is None:
            self._buffer.drop_before(self._buffer.end_sample)
        else:
            self._push(self._utterance, self._buffer.end_sample)

    def _take(self, pcm: bytes, is_speech: bool | None) -> None:
        start = self._buffer.end_sample
        self._buffer.append(pcm)
        if self._hearing is not None:
            self._hearing.detect(pcm, is_speech)
        else:
            utterance = self._utterance or self._open(start, start)
            self._push(utterance, self._buffer.end_sample)
            if self._steps is not None:
                utterance.start = max(utterance.start, self._buffer.end_sample - _KEPT_SAMPLES)
                self._buffer.drop_before(utterance.start)

    # ------------------------------------------------------------------ speech

    def _follow(self, events: list[SegmentEvent]) -> None:
        for event in events:
            match event:
                case SpeechStarted(start_sample, onset_sample):
                    self._judging.settle()
                    self._turns.speech_started(self._open(start_sample, onset_sample))
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
        self._utterance.speech_end = at_sample - _PAUSE_SAMPLES
        self._turns.speech_paused(self._utterance)

    def _check_turn(self, at_sample: int) -> None:
        assert self._utterance is not None
        assert self._hearing is not None
        start = max(self._utterance.start, at_sample - _CHECKED_SAMPLES)
        self._hearing.check_turn(at_sample, self._buffer.slice(start, at_sample))

    def _stop(self, end_sample: int) -> None:
        assert self._utterance is not None
        if self._is_hidden:
            self._drop(self._utterance)
            return
        self._turns.announce_end(self._utterance, end_sample)
        if self._steps is not None:
            self._drop(self._utterance)  # detection only informs (wire contract, section 4)
            return
        respond = self._turns.answers_speech()
        if self._judging.doubts(self._utterance, self._extras):
            self._judging.judge(
                self._take_audio(self._utterance, end_sample, transcribe=True), respond=respond
            )
        else:
            self._commit(self._utterance, end_sample, respond=respond)

    def _end_long_turn(self, hearing: Hearing) -> None:
        """``limits.max_turn_s`` of speech are a turn, and what follows is another."""
        if self._utterance is not None and self._most_samples:
            end = self._utterance.start + self._most_samples
            if hearing.heard >= end:
                self._follow(hearing.stop_at(end))

    @property
    def _is_hidden(self) -> bool:
        return self._utterance is not None and self._turns.is_hidden(self._utterance)

    # ------------------------------------------------------------------ the open utterance

    def _open(self, start: int, onset: int) -> Utterance:
        self._last_input += 1
        resampler = StreamingResampler(SESSION_RATE, self._state.capabilities.input_rate)
        self._utterance = Utterance(self._last_input, self._ids.item(), start, onset, start, resampler)
        self._turns.expect(self._utterance)
        return self._utterance

    def _push(self, utterance: Utterance, end: int, *, final: bool = False, transcribe: bool = False) -> None:
        """Hand the model what it does not have yet, up to ``end``; a native model has everything."""
        if self._steps is not None:
            return
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
            transcribe=transcribe,
        )
        self._out.do(Push(step))

    def _commit(self, utterance: Utterance, end: int, *, respond: bool) -> None:
        asked = self._state.config.audio.input.transcription is not None
        spoken = self._take_audio(utterance, end, transcribe=asked)
        self._turns.commit(spoken, self._take_extras(), respond=respond)

    def _take_audio(self, utterance: Utterance, end: int, *, transcribe: bool) -> Recorded:
        """The utterance is over: the model gets the rest of it, and the buffer gives it up."""
        self._push(utterance, end, final=True, transcribe=transcribe)
        pcm = self._buffer.slice(utterance.start, end)
        self._close()
        self._buffer.drop_before(end)
        return Recorded(utterance, pcm)

    def _drop(self, utterance: Utterance) -> None:
        self._close()
        self._out.do(Forget(utterance.input))
        self._turns.forget(utterance)

    def _close(self) -> None:
        self._utterance = None
        self._hold_at = None

    def _end_audio(self) -> None:
        """A commit or clear: no odd byte is carried over, no resampler's tail is left behind."""
        tail = self._decoder.end()
        self._buffer.append(tail)
        if self._steps is not None:
            self._steps.feed(tail)

    def _take_extras(self) -> tuple[ContentPart, ...]:
        extras, self._extras = tuple(self._extras), []
        return extras

    # ------------------------------------------------------------------ time

    def resume_clock(self) -> None:
        """A client that was away has not stopped speaking because of that."""
        self._last_append_at = self._state.now

    def deadline(self) -> float | None:
        """When speech counts as over because no more audio comes (case L-05)."""
        hearing, stall_ms = self._hearing, self._limits.input_stall_ms
        if hearing is None or not hearing.in_utterance or hearing.waiting:
            return None
        return self._last_append_at + stall_ms / 1000 if stall_ms and self._state.attached else None

    def expire(self) -> None:
        deadline = self.deadline()
        if deadline is not None and deadline <= self._state.now and self._hearing is not None:
            self._follow(self._hearing.stop_at(self._buffer.end_sample))


def _size(part: ContentPart) -> int:
    match part:
        case InputText(text):
            return len(text)
        case InputImage(image_url):
            return len(image_url)
        case _:
            raise AssertionError("only texts and images wait for a commit")
