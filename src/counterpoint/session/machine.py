"""One session as a state machine: what it is told comes in, what it asks for goes out.

Owns: the parts and their wiring, which part an input or a command goes to, the frame of a step.
Does not own: any rule of a part. Nothing here awaits, reads a clock or draws a random number.
Here because: one writer per session. All that happens to a session happens in ``receive``, one input at a
time; ``accepted`` alone may come between two of them, and only moves what was handed over.

A step: responses that were handed over meanwhile get their ``response.done`` and the next answer in line
starts; then the input has its effect; then the same again.
"""

from __future__ import annotations

from typing import Any, assert_never

from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.plugins.contract import (
    AudioDelta,
    Capabilities,
    Failure,
    ItemEnd,
    Listen,
    Scope,
    SpeechBoundary,
    StageMetrics,
    StepDone,
    TextDelta,
    ToolCall,
    TurnEnd,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.audio import AudioFormat
from counterpoint.protocol.codes import ErrorCode, FailureCode
from counterpoint.protocol.commands import CancelInput, CancelResponse, CloseSession, Command
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.events import ItemAdded, ItemDone, SessionSnapshot, SessionUpdated
from counterpoint.protocol.ids import IdSource

from .close import Closing
from .commands import Commands
from .configure import Configuring, as_able, in_force
from .conversation import Conversation
from .describe import Description
from .effects import Effect, Tag
from .idle import Idle
from .input import InputLine
from .inputs import (
    Attached,
    CleanedUp,
    CloseRequested,
    CommandReceived,
    CommandRefused,
    DeadlineReached,
    Detached,
    Detected,
    Input,
    ModelHeld,
    ModelOpened,
    ModelOpenFailed,
    ModelRaised,
    Played,
    ResponseDrained,
    StageOutput,
    TurnChecked,
)
from .items import Items
from .judging import Judging
from .lifespan import Lifespan
from .native import Native
from .out import Out
from .output_buffer import OutputBuffer
from .plan import Planner, Validate
from .playback import PlaybackLedger
from .playing import Playing
from .rebuild import Rebuild
from .responses import Responses
from .state import Lifecycle, ModelSide, RunState
from .steps import Steps
from .tools import ToolLedger
from .transcripts import Transcripts
from .turns import Turns
from .unheard import Remainders
from .waiting import Waiting, WaitingCommands, loses_input


class SessionMachine:
    """``config`` has passed ``validate``, the plugin's. ``locked``: fields that win over every update;
    ``duplex``: the session was opened with ``duplex=1``; ``turn_model``: somebody answers ``CheckTurn``;
    ``resumable``: a lost connection does not end it."""

    def __init__(
        self,
        session_id: str,
        config: SessionConfig,
        capabilities: Capabilities,
        limits: Limits,
        ids: IdSource,
        *,
        validate: Validate,
        now: float,
        locked: dict[str, Any] | None = None,
        duplex: bool = False,
        turn_model: bool = False,
        resumable: bool = True,
    ) -> None:
        self.ids = ids
        validate = in_force(validate, capabilities)
        state = self._state = RunState(session_id, capabilities, duplex, as_able(config, capabilities), now)
        out = self._out = Out(state, ids)
        conversation = Conversation(limits.max_history_audio_bytes)
        tools = ToolLedger()
        ledger = self._ledger = PlaybackLedger(
            capabilities.output_rate, capabilities.text_alignment, config.playback_commit_policy
        )
        self._responses = Responses(state, out, ids, limits, conversation, ledger, tools)
        planner = Planner(state, ids, conversation, ledger, tools, validate)
        self._buffer = OutputBuffer(state, out, ledger, self._responses)
        playing = Playing(state, out, conversation, ledger, self._responses, self._buffer)
        self._transcripts = Transcripts(state, out, conversation)
        self._turns = Turns(
            state,
            out,
            ids,
            limits,
            conversation,
            planner,
            self._responses,
            playing,
            self._transcripts,
            Remainders(state, conversation, ledger, self._responses),
        )
        self._judging = Judging(state, out, self._turns, self._responses)
        self._steps = Steps(state, out) if state.native else None
        self._native = Native(state, out, planner, self._responses) if state.native else None
        self._input = InputLine(
            state, out, ids, limits, self._turns, self._judging, self._steps, turn_model=turn_model
        )
        self._description = Description(
            state, limits, conversation, ledger, self._responses, self._input, resumable=resumable
        )
        configuring = Configuring(
            state, out, ledger, self._input, validate, locked or {}, self._description.session
        )
        self._closing = Closing(state, out, self._responses, self._turns)
        self._rebuild = Rebuild(state, out, planner, self._responses, self._closing, self._steps)
        self._idle = Idle(state, ledger, self._input, self._turns, self._responses)
        lifespan = Lifespan(state, out, limits, self._closing)
        timed = (self._input, self._judging, self._responses, self._idle, lifespan, self._steps)
        self._timed = tuple(part for part in timed if part is not None)
        self._commands = Commands(
            self._input,
            self._turns,
            Items(state, out, ids, conversation, ledger, tools, self._responses, self._turns),
            playing,
            planner,
            self._responses,
            configuring,
        )
        self._line = WaitingCommands()

    # ------------------------------------------------------------------ reading

    @property
    def session_id(self) -> str:
        return self._state.session_id

    @property
    def state(self) -> RunState:
        """To read; only the parts of the machine write it."""
        return self._state

    @property
    def config(self) -> SessionConfig:
        return self._state.config

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def is_open(self) -> bool:
        return self._state.lifecycle is Lifecycle.OPEN

    @property
    def busy(self) -> bool:
        """An answer is being given: that is activity, whoever is silent."""
        return self._responses.active is not None

    @property
    def held_input_bytes(self) -> int:
        """Input that was accepted and is neither part of an item nor known to be no speech."""
        return self._input.held_bytes + self._line.held_bytes

    @property
    def open_utterance(self) -> int | None:
        """The input that is not committed yet, by the number under which the model is given it."""
        return self._input.open_utterance

    @property
    def open_turns(self) -> int:
        """Committed turns whose answer has not started, and commits that wait for the detector."""
        return self._turns.waiting + self._line.commits

    @property
    def input_audio_ms(self) -> int:
        """The session's input clock."""
        return self._input.clock_ms

    def played(self, now: float) -> dict[tuple[str, int], int]:
        """Samples played of each part, for a replay from the playhead."""
        return self._ledger.played(now)

    def ahead_of_playback_ms(self, tag: Tag, now: float) -> float:
        """How far the end of an audio entry is ahead of playback, for pacing."""
        return self._ledger.ahead_ms(tag.item_id or "", tag.samples, now)

    def output_format(self, response_id: str | None) -> AudioFormat:
        """Of the audio of a response; of one that is over, the session's."""
        response = None if response_id is None else self._responses.find(response_id)
        return (response.config if response else self.config).audio.output.format

    def describe(self) -> dict[str, Any]:
        """The wire's ``session`` object, in full."""
        return self._description.session()

    def snapshot(self, as_of: int) -> tuple[SessionSnapshot]:
        """What takes the place of entries that are gone, on an extended connection."""
        return (self._description.snapshot(as_of),)

    def restated(self) -> tuple[SessionUpdated | ItemAdded | ItemDone, ...]:
        """The same on a stock connection."""
        return self._description.restated()

    # ------------------------------------------------------------------ time

    def next_deadline(self) -> float | None:
        """When ``DeadlineReached`` is due, if nothing else comes before."""
        if not self.is_open:
            return None
        # Asked after every step, so without a generator.
        earliest: float | None = None
        for part in self._timed:
            at = part.deadline()
            if at is not None and (earliest is None or at < earliest):
                earliest = at
        return earliest

    def _expire(self) -> None:
        for part in self._timed:
            part.expire()

    # ------------------------------------------------------------------ steps

    def accepted(self, tag: Tag, now: float) -> str | None:
        """An entry was handed to a transport, or evicted. Returns a response that now only waits for its
        ``response.done``: post ``ResponseDrained`` for it."""
        self._state.now = now
        return self._responses.accepted(tag)

    def receive(self, news: Input, now: float) -> list[Effect]:
        """One step; its effects are to be carried out in order, with nothing in between."""
        self._state.now = now
        self._go_on()
        if self.is_open:
            self._take(news)
        else:
            self._take_late(news)
        self._go_on()
        self._idle.watch()
        return self._out.take()

    def _go_on(self) -> None:
        self._responses.settle()
        if self.is_open:
            self._turns.advance()
            self._buffer.settle()
            if self._native is not None:
                self._native.advance()
        else:
            self._refuse_waiting()
            self._input.end()

    def _take(self, news: Input) -> None:
        match news:
            case CommandReceived() | CommandRefused():
                self._arrive(news)
            case Detected():
                self._input.detected(news)
                self._catch_up()
            case TurnChecked():
                self._input.turn_checked(news)
            case StageOutput():
                self._model_said(news)
            case ModelOpened():
                self._model_goes_on()
                if self._steps is not None:
                    self._steps.resume_clock()
            case ModelHeld(held):
                self._hold_model(held)
            case ModelOpenFailed(message):
                self._closing.fail(message, ErrorCode.SESSION_OPEN_FAILED)
            case ModelRaised():
                self._model_raised(news)
            case ResponseDrained():
                pass  # the step itself writes ``response.done``
            case Attached():
                self._state.attached = True
                self._input.resume_clock()
                self._idle.resume_clock()
                if self._steps is not None:
                    self._steps.resume_clock()
            case Detached():
                self._state.attached = False
                self._buffer.forget()
            case Played():
                self._buffer.played(news)
            case CloseRequested(reason):
                self._closing.close(reason)
            case CleanedUp():
                pass  # cleanup is only asked for by a session that closes
            case DeadlineReached():
                self._expire()
            case _:
                assert_never(news)

    def _take_late(self, news: Input) -> None:
        """The session is closing or over: commands are answered, the rest has no effect."""
        match news:
            case CommandReceived(command):
                self._out.refuse(_closed(), command)
            case CommandRefused(error, client_event_seq):
                self._out.error(error, client_event_seq)
            case CleanedUp():
                self._closing.cleaned_up()
            case _:
                pass

    # ------------------------------------------------------------------ commands

    def _arrive(self, news: Waiting) -> None:
        """Now, or behind the audio that is with the detector."""
        early = isinstance(news, CommandReceived) and self._cancels_early(news.command)
        if early or self._line.must_wait(news, audio_pending=self._input.waiting):
            self._line.put(news)
        else:
            self._run(news)

    def _cancels_early(self, command: Command) -> bool:
        """A cancel acts at once. What it was meant for may still wait in line: then it acts in its place."""
        if isinstance(command, CancelInput):
            self._commands.cancel_active()
        meant_for_active = isinstance(command, CancelResponse) and command.response_id is None
        return meant_for_active and self._responses.active is None and bool(self._line)

    def _catch_up(self) -> None:
        while (news := self._line.take(audio_pending=self._input.waiting)) is not None:
            self._run(news)

    def _run(self, news: Waiting) -> None:
        if isinstance(news, CommandRefused):
            self._out.error(news.error, news.client_event_seq)
            if loses_input(news):
                self._input.lose()
            return
        if isinstance(news.command, CloseSession):
            self._closing.close("client_closed")
            return
        try:
            self._commands.apply(news.command, extended=news.extended)
        except ProtocolError as refusal:
            self._out.refuse(refusal, news.command)

    # ------------------------------------------------------------------ the model

    def _model_said(self, output: StageOutput) -> None:
        event = output.event
        match event:
            case UserTranscript() | UserTranscriptFailed():
                self._transcripts.take(event)
                self._judging.hear(event)
            case Failure(scope=Scope.SESSION):
                self._rebuild.lose(output.fence, event)
            case AudioDelta() | TextDelta() | ItemEnd() | ToolCall() | TurnEnd() | Listen() | Failure():
                if self._native is not None:
                    self._native.take(output.fence, event)
                elif (response := self._responses.fresh(output.fence)) is not None:
                    self._responses.take(response, event)
            case StepDone():
                self._stepped(event)
            case SpeechBoundary() | StageMetrics():
                pass  # the session's detector tells of speech; and for metrics
            case _:
                assert_never(event)

    def _stepped(self, receipt: StepDone) -> None:
        if self._steps is not None and self._native is not None:
            self._steps.stepped(receipt)
            self._native.stepped(receipt)

    def _model_raised(self, raised: ModelRaised) -> None:
        """Work on one answer fails that answer; without input or configuration the session cannot go on."""
        match raised.operation:
            case "respond":
                response = self._responses.fresh(raised.fence)
                if response is not None:
                    self._responses.fail(response, FailureCode.MODEL_FAILED)
            case "push" | "update":
                self._closing.fail("the model failed")
            case _:
                pass  # prepare is a guess; cancel, abort, forget and truncate are fenced by now

    def _model_goes_on(self) -> None:
        self._state.model = ModelSide.OPEN
        self._responses.resume_clocks()

    def _hold_model(self, held: bool) -> None:
        if held and self._state.model is ModelSide.OPEN:
            self._state.model = ModelSide.HELD
            self._responses.pause_clocks()
        elif not held and self._state.model is ModelSide.HELD:
            self._model_goes_on()

    # ------------------------------------------------------------------ the end

    def _refuse_waiting(self) -> None:
        """What waited for the detector when the session closed never had an effect (case C-11)."""
        for news in self._line.clear():
            if isinstance(news, CommandReceived):
                self._out.refuse(_closed(), news.command)
            else:
                self._out.error(news.error, news.client_event_seq)


def _closed() -> ProtocolError:
    return ProtocolError(ErrorCode.SESSION_CLOSED, "the session is closing")
