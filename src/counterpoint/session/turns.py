"""What the user's turns lead to, for models that answer turns.

Owns: whether speech interrupts, what a commit makes, which answers wait for their turn.
Does not own: finding speech and cutting audio (``input``), the overlap rules (``overlap``), a response once
it starts (``responses``).
Here because: this is all in which a turn-based session differs from one whose model decides for itself.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.plugins.contract import HistoryItem
from counterpoint.protocol.audio import SESSION_RATE, samples_to_ms
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CommitAudio
from counterpoint.protocol.config import OverlapPolicy, SessionType
from counterpoint.protocol.events import (
    InputCommitted,
    InputTimeout,
    ItemAdded,
    ItemDone,
    SpeechStarted,
    SpeechStopped,
)
from counterpoint.protocol.events import OverlapDecision as OverlapDecided
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import ContentPart, InputAudio, Message, Role

from .conversation import Conversation
from .effects import Prepare
from .out import Out
from .overlap import Action, OverlapConfig, OverlapInput, decide
from .plan import Planner
from .playing import Playing
from .responses import Responses
from .state import RunState
from .transcripts import Transcripts
from .unheard import Remainders
from .utterance import Recorded, Standing, Utterance


@dataclass(frozen=True, slots=True)
class _Queued:
    """A committed turn whose answer waits until the active response ends."""

    response_id: str  #: its place in the conversation is kept under this id
    item_id: str
    input: int


class Turns:
    def __init__(
        self,
        state: RunState,
        out: Out,
        ids: IdSource,
        limits: Limits,
        conversation: Conversation,
        planner: Planner,
        responses: Responses,
        playing: Playing,
        transcripts: Transcripts,
        remainders: Remainders,
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._limits = limits
        self._conversation = conversation
        self._planner = planner
        self._responses = responses
        self._playing = playing
        self._transcripts = transcripts
        self._remainders = remainders
        self._queue: deque[_Queued] = deque()

    @property
    def waiting(self) -> int:
        """Committed turns whose answer has not started."""
        return len(self._queue)

    # ------------------------------------------------------------------ speech

    def expect(self, utterance: Utterance) -> None:
        self._transcripts.expect(utterance.input)

    def forget(self, utterance: Utterance) -> None:
        self._transcripts.forget(utterance.input)

    def speech_started(self, utterance: Utterance) -> None:
        """The user speaks; what that means to an answer that is being given is decided here."""
        if self._responses.active is None and not self._playing.is_playing:
            self._announce(utterance, interrupts=False)
            return
        utterance.standing = Standing.HIDDEN
        self._decide(utterance, onset=True)

    def speech_goes_on(self, utterance: Utterance, speech_ms: int) -> None:
        """``speech_ms`` of it so far, pauses not counted."""
        if utterance.standing is not Standing.SETTLED:
            self._decide(utterance, speech_ms=speech_ms)

    def speech_paused(self, utterance: Utterance) -> None:
        """The model may guess that this was all, and start on the answer."""
        if not self.answers_speech() or self._responses.active is not None:
            return
        item = HistoryItem(utterance.item_id, "message", role="user", input=utterance.input)
        plan = self._planner.upcoming(item, utterance.input)
        self._out.do(Prepare(plan.request(self._state.fence(self._responses.next_turn))))

    def is_hidden(self, utterance: Utterance) -> bool:
        """Nobody was told of it: when it ends, it never was."""
        return utterance.standing is Standing.HIDDEN

    def announce_end(self, utterance: Utterance, end_sample: int) -> None:
        end_ms = samples_to_ms(end_sample, SESSION_RATE)
        self._out.emit(SpeechStopped(audio_end_ms=end_ms, item_id=utterance.item_id))

    def barge_in(self) -> None:
        """The client says that the user talks over the answer; nothing to act on is no error."""
        if not self._state.capabilities.barge_in:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model cannot be interrupted")
        self.drop_waiting()
        self._interrupt(None, None)

    def _decide(self, utterance: Utterance, *, onset: bool = False, speech_ms: int = 0) -> None:
        policy = self._state.config.overlap_policy
        heard = OverlapInput(
            onset=onset,
            detected=True,
            speech_ms=speech_ms,
            transcript=self._transcripts.words(utterance.input),
            language=self._state.language,
        )
        decision = decide(self._overlap_config(), heard)
        announced = utterance.standing is not Standing.HIDDEN
        if policy is not None and decision != utterance.decision:
            self._out.emit(OverlapDecided(policy=policy, action=decision.action, reason=decision.reason))
        utterance.decision = decision
        if decision.action is Action.BARGE_IN:
            if announced:
                self._interrupt(None, utterance)
            else:
                self._announce(utterance, interrupts=True)
            utterance.standing = Standing.SETTLED
        elif decision.announced and not announced:
            self._announce(utterance, interrupts=False)
            utterance.standing = Standing.LISTENED if self._is_graded else Standing.SETTLED

    def _announce(self, utterance: Utterance, *, interrupts: bool) -> None:
        """New speech: answers that wait for older turns will not be heard any more (case E-09)."""
        self.drop_waiting()
        event = SpeechStarted(audio_start_ms=utterance.start_ms, item_id=utterance.item_id)
        if interrupts:
            self._interrupt(event, utterance)
        else:
            self._out.emit(event)

    def _interrupt(self, event: SpeechStarted | None, utterance: Utterance | None) -> None:
        said = self._remainders.said() if utterance is not None and self._may_take_back else ()
        if self._responses.active is not None:
            self._responses.interrupt("turn_detected", event)
        elif event is not None:
            self._out.emit(event)
        self._playing.stop()
        if utterance is not None and said:
            utterance.unheard = self._remainders.unheard(said)

    # ------------------------------------------------------------------ commits

    def answers_speech(self) -> bool:
        """The end of speech starts a response, unless the model decides that itself."""
        config = self._state.config
        detection = config.audio.input.turn_detection
        if self._state.native or detection is None:
            return False
        return config.type is SessionType.REALTIME and detection.create_response

    def answers_commit(self, command: CommitAudio) -> bool:
        """A client's commit starts a response (wire contract, section 4)."""
        config = self._state.config
        return (
            self._state.duplex
            and not self._state.native
            and config.type is SessionType.REALTIME
            and config.audio.input.turn_detection is None
            and command.response_create is not False
            and config.extra_body.get("auto_response") is not False
        )

    def commit(self, spoken: Recorded, extras: tuple[ContentPart, ...], *, respond: bool) -> None:
        """The utterance is an item now."""
        utterance = spoken.utterance
        content = (InputAudio(audio=spoken.pcm), *extras)
        self._planner.last_input = utterance.input
        self._add(utterance.item_id, content, utterance.input)
        seconds = len(spoken.pcm) / 2 / SESSION_RATE
        self._transcripts.commit(utterance.input, utterance.item_id, seconds)
        if respond:
            self._respond(utterance.item_id, utterance.input)

    def commit_text(self, content: tuple[ContentPart, ...], *, respond: bool) -> None:
        item_id = self._ids.item()
        self._add(item_id, content, None)
        if respond:
            self._respond(item_id, self._planner.last_input)

    def time_out(self, start_ms: int, end_ms: int) -> None:
        """Nobody spoke for too long: the silence is a turn, and is answered (``idle_timeout_ms``)."""
        item_id = self._ids.item()
        self._out.emit(InputTimeout(audio_start_ms=start_ms, audio_end_ms=end_ms, item_id=item_id))
        self._add(item_id, (InputAudio(audio=b"", transcript=""),), None)
        self._respond(item_id, self._planner.last_input)

    def _add(self, item_id: str, content: tuple[ContentPart, ...], input: int | None) -> None:
        self._conversation.add(Message(id=item_id, role=Role.USER, content=content), input=input)
        previous = self._conversation.previous_id(item_id)
        self._responses.pin(previous)
        item = self._conversation.render(item_id)
        self._out.emit(InputCommitted(item_id=item_id, previous_item_id=previous))
        self._out.emit(ItemAdded(previous_item_id=previous, item=item))
        self._out.emit(ItemDone(previous_item_id=previous, item=item))

    # ------------------------------------------------------------------ answers

    def answer_item(self, item_id: str, *, interrupts: bool) -> None:
        """A client created an item that is to be answered, at once or when the active response has ended."""
        if interrupts and self._responses.active is not None:
            self._responses.interrupt("client_cancelled")
        self._respond(item_id, self._planner.last_input)

    def advance(self) -> None:
        """Start the next answer that waits, if nothing is in its way."""
        if self._queue and self._responses.active is None:
            queued = self._queue.popleft()
            self._responses.start(self._planner.turn(queued.input, queued.item_id, queued.response_id))

    def _respond(self, item_id: str, input: int) -> None:
        """Now, or in line; beyond ``limits.max_pending_turns`` speech that was found gets no answer.

        A commit never comes that far: it is refused before it has used its number (``runtime.intake``)."""
        if self._responses.active is None:
            self._responses.start(self._planner.turn(input, item_id))
        elif not self._is_full:
            queued = _Queued(self._ids.response(), item_id, input)
            self._conversation.reserve(queued.response_id)
            self._queue.append(queued)

    def drop_waiting(self) -> None:
        """The answers that wait will not be given; nobody was told of them."""
        for queued in self._queue:
            self._conversation.release(queued.response_id)
        self._queue.clear()

    # ------------------------------------------------------------------ parts

    @property
    def _is_full(self) -> bool:
        most = self._limits.max_pending_turns
        return 0 < most <= len(self._queue)

    @property
    def _may_take_back(self) -> bool:
        detection = self._state.config.audio.input.turn_detection
        return detection is not None and detection.false_interruption_ms > 0

    @property
    def _is_graded(self) -> bool:
        return self._state.config.overlap_policy is OverlapPolicy.GRADED

    def _overlap_config(self) -> OverlapConfig:
        config = self._state.config
        detection = config.audio.input.turn_detection
        return OverlapConfig(
            policy=config.overlap_policy,
            interrupt_response=detection is not None and detection.interrupt_response,
            native=self._state.native,
            barge_in=self._state.capabilities.barge_in,
            short_ack_ms=config.overlap_short_ack_ms,
            barge_in_ms=config.overlap_barge_in_ms,
            silence_rms=config.overlap_silence_rms,
        )
