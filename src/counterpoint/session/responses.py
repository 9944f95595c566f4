"""The life of every response: from ``response.created`` to its one ``response.done``.

Owns: which responses run, the epoch, interruption, the end by completion, failure, cancel or time limit.
Does not own: what is asked of the model (``plan``), events about items (``output``), when a response is due
(``turns``), what a model said of input (``transcripts``).
Here because: whatever happens at once, a response has exactly one end, and it must say what was handed over.

Output of a response is stale unless it carries the fence of a response that still generates; ``fresh`` is
the one place where stale output dies.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, assert_never

from counterpoint.limits import Limits
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    ItemEnd,
    Listen,
    TextDelta,
    ToolCall,
    TurnEnd,
)
from counterpoint.protocol.codes import FailureCode
from counterpoint.protocol.events import Event, ResponseCreated, ResponseDone, ResponseListen
from counterpoint.protocol.ids import IdSource

from .conversation import Conversation
from .effects import AbortResponse, CancelModel, Discard, Progress, Respond, Tag, TruncateModel
from .out import Out
from .output import OutputWriter
from .plan import Plan
from .playback import Cut, PlaybackLedger
from .response import Outcome, RunningResponse, Unheard
from .state import ModelSide, RunState
from .tools import ToolLedger

ResponseOutput = AudioDelta | TextDelta | ItemEnd | ToolCall | TurnEnd | Listen | Failure

#: Items whose response is remembered after its end, for a truncation that comes late.
_REMEMBERED = 256


class Responses:
    def __init__(
        self,
        state: RunState,
        out: Out,
        ids: IdSource,
        limits: Limits,
        conversation: Conversation,
        ledger: PlaybackLedger,
        tools: ToolLedger,
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._limits = limits
        self._conversation = conversation
        self._ledger = ledger
        self._tools = tools
        self._writer = OutputWriter(state, out, ids, conversation, ledger, tools)
        self._conversation_id = ids.conversation()
        #: The response that started last, also after its end.
        self.newest: RunningResponse | None = None
        #: By the number that their fences carry.
        self._running: dict[int, RunningResponse] = {}
        self._started = 0
        #: The newest ``extra_body`` under which the model was asked, and how often it was.
        self._knobs: dict[str, Any] = {}
        self._asked = 0
        self._fences: OrderedDict[str, Fence] = OrderedDict()
        #: Since when the model cannot be expected to answer.
        self._paused_at: float = state.now

    # ------------------------------------------------------------------ reading

    @property
    def active(self) -> RunningResponse | None:
        """The response of the conversation; there is at most one."""
        return next((response for response in self._running.values() if not response.out_of_band), None)

    @property
    def next_turn(self) -> int:
        """The number that the next response will have."""
        return self._started + 1

    def find(self, response_id: str) -> RunningResponse | None:
        return next((response for response in self._running.values() if response.id == response_id), None)

    def writing(self, item_id: str) -> RunningResponse | None:
        """The running response that ``item_id`` belongs to."""
        responses = self._running.values()
        return next(
            (response for response in responses if any(i.id == item_id for i in response.items)), None
        )

    def pin(self, item_id: str | None) -> None:
        """A later item is announced as coming after this one: from now on it must not vanish."""
        for response in self._running.values():
            for item in response.items:
                item.pinned |= item.id == item_id

    # ------------------------------------------------------------------ beginning

    def start(self, plan: Plan) -> None:
        """Ask the model for an answer."""
        response = self._begin(plan)
        if plan.config.extra_body != self._knobs:
            self._knobs, self._asked = plan.config.extra_body, 0
        self._asked += 1
        self._out.do(Respond(plan.request(response.fence, self._asked)))

    def open(self, plan: Plan) -> RunningResponse:
        """The model speaks by itself."""
        return self._begin(plan)

    def repeat(self, unheard: Unheard) -> None:
        """Say again what was not heard of an answer; the model is not asked."""
        plan = Plan(unheard.config, (), 0, continues=unheard.response_id)
        response = self._begin(plan)
        for text, audio in unheard.parts:
            self._writer.write_again(response, text, audio)
        self._end(response, Outcome.completed())

    def _begin(self, plan: Plan) -> RunningResponse:
        self._started += 1
        response = RunningResponse(
            id=plan.response_id or self._ids.response(),
            fence=self._state.fence(self._started),
            config=plan.config,
            conversation_id=None if plan.out_of_band else self._conversation_id,
            metadata=plan.metadata,
            started_at=self._state.now,
            last_output_at=self._state.now,
        )
        self._running[self._started] = response
        self.newest = response
        if not plan.out_of_band:
            self._conversation.reserve(response.id)
        for cut in self._ledger.begin(response.id, plan.config.audio.output.format.rate, self._state.now):
            self._limit(cut)
        self._out.emit(
            ResponseCreated(response=response.render()), Tag(response.id), continues=plan.continues
        )
        response.pending += 1
        return response

    # ------------------------------------------------------------------ output

    def fresh(self, fence: Fence) -> RunningResponse | None:
        """The response that output under ``fence`` belongs to; None: stale (invariants 52, 53, 90)."""
        response = self._running.get(fence.turn)
        if response is None or response.fence != fence or response.outcome is not None:
            return None
        return response

    def take(self, response: RunningResponse, output: ResponseOutput) -> None:
        """What the model says in a response that still generates."""
        response.last_output_at = self._state.now
        match output:
            case AudioDelta() | TextDelta() | ItemEnd() | ToolCall():
                self._writer.write(response, output)
                self._stop_too_long(response)
            case TurnEnd(status, usage):
                response.usage = usage or response.usage
                self._end(response, Outcome.of_turn(status))
            case Listen():
                if output.end_of_turn:
                    self._out.emit(ResponseListen(response_id=response.id, reason=output.reason))
                    self._end(response, Outcome.completed())
            case Failure(code):
                self._end(response, Outcome.failed(code))
            case _:
                assert_never(output)

    def accepted(self, tag: Tag) -> str | None:
        """An entry was handed to a transport; returns a response that only waits for ``response.done``."""
        response = None if tag.response_id is None else self.find(tag.response_id)
        if response is None:
            return None
        item = response.accept(tag)
        if item is not None and tag.progress is Progress.DELTA and response.speaks:
            self._ledger.sent(item.id, item.handed_samples, item.handed_chars, self._state.now)
        if item is not None and tag.progress is Progress.ARGUMENTS_DONE and not response.out_of_band:
            self._tools.complete(item.call_id)
        return response.id if response.drained else None

    # ------------------------------------------------------------------ ends

    def settle(self) -> None:
        """Write ``response.done`` of the responses that were handed over to the last entry."""
        for response in list(self._running.values()):
            if response.drained:
                self._done(response)

    def interrupt(self, reason: str, announce: Event | None = None) -> None:
        """End the active response and its epoch. ``announce`` goes before its terminals (wire, section 6)."""
        response = self.active
        assert response is not None
        self.advance_epoch(response.fence)
        self._cut(response, Outcome.cancelled(reason), announce)

    def cancel_out_of_band(self, response: RunningResponse, announce: Event | None = None) -> None:
        self._out.do(AbortResponse(response.fence))
        self._cut(response, Outcome.cancelled("client_cancelled"), announce)

    def advance_epoch(self, old: Fence) -> None:
        """From here on nothing of ``old`` or older is taken from the model."""
        self._state.epoch += 1
        self._out.do(CancelModel(old, self._state.fence()))

    def fail(self, response: RunningResponse, code: str) -> None:
        """The model failed it: what was said until then is still handed over."""
        self._out.do(AbortResponse(response.fence))
        self._end(response, Outcome.failed(code))

    def end_all(self, outcome: Outcome) -> None:
        """The session ends or its model side is lost: no response outlives that."""
        active = self.active
        if active is not None:
            self.advance_epoch(active.fence)
        for response in list(self._running.values()):
            if response.out_of_band:
                self._out.do(AbortResponse(response.fence))
            self._cut(response, outcome)

    def _end(self, response: RunningResponse, outcome: Outcome) -> None:
        """Generation is over; ``response.done`` follows when all of it was handed over."""
        self._writer.end_items(response, outcome.item_status)
        response.outcome = outcome

    def _cut(self, response: RunningResponse, outcome: Outcome, announce: Event | None = None) -> None:
        """End a response with what was handed over of it, now."""
        self._out.do(Discard(response.id, frozenset(item.id for item in response.vanishing())))
        if announce is not None:
            self._out.emit(announce)
        self._writer.cut_items(response)
        for cut in self._ledger.interrupt(response.id, self._state.now):
            self._out.do(TruncateModel(response.fence, self._limit(cut), cut.model_samples))
        response.outcome = outcome
        self._done(response)

    def _done(self, response: RunningResponse) -> None:
        assert response.outcome is not None
        del self._running[response.fence.turn]
        self._remember(response)
        if not response.out_of_band:
            self._conversation.release(response.id)
        if response.outcome.status != "cancelled":
            self._ledger.done(response.id)
            self._state.turn_id += 1
        self._out.emit(ResponseDone(response=response.render()))

    # ------------------------------------------------------------------ time limits

    def pause_clocks(self) -> None:
        """The model is held back: that is not its time."""
        self._paused_at = self._state.now

    def resume_clocks(self) -> None:
        for response in self._running.values():
            paused = self._state.now - max(self._paused_at, response.started_at)
            response.started_at += paused
            response.last_output_at += paused

    def deadline(self) -> float | None:
        earliest: float | None = None
        for response in self._running.values():
            at = self._deadline(response)
            if at is not None and (earliest is None or at < earliest):
                earliest = at
        return earliest

    def expire(self) -> None:
        """End the responses whose model is silent, or speaks, for too long."""
        for response in list(self._running.values()):
            deadline = self._deadline(response)
            if deadline is None or deadline > self._state.now:
                continue
            if self._state.now >= response.started_at + self._limits.max_response_s > response.started_at:
                self._stop(response)
            else:
                self.fail(response, FailureCode.MODEL_TIMEOUT)

    def _deadline(self, response: RunningResponse) -> float | None:
        """When the model has been silent for too long, or has spoken for too long."""
        if response.outcome is not None or self._state.model is not ModelSide.OPEN:
            return None
        silent_s, speaking_s = self._limits.response_timeout_s, self._limits.max_response_s
        if not speaking_s:
            return response.last_output_at + silent_s if silent_s else None
        ends_at = response.started_at + speaking_s
        return min(ends_at, response.last_output_at + silent_s) if silent_s else ends_at

    def _stop_too_long(self, response: RunningResponse) -> None:
        most = self._limits.max_response_s * response.config.audio.output.format.rate
        if response.outcome is None and 0 < most < response.samples:
            self._stop(response)

    def _stop(self, response: RunningResponse) -> None:
        self._out.do(AbortResponse(response.fence))
        self._end(response, Outcome.incomplete("max_output_tokens"))

    # ------------------------------------------------------------------ parts

    def _limit(self, cut: Cut) -> int:
        """What was heard of an item is all that models will see of it; returns the characters."""
        if cut.item_id not in self._conversation:
            return cut.chars  # out of band
        return self._conversation.limit(cut.item_id, cut.chars)

    def _remember(self, response: RunningResponse) -> None:
        for item in response.items:
            self._fences[item.id] = response.fence
        while len(self._fences) > _REMEMBERED:
            self._fences.popitem(last=False)

    def fence_of(self, item_id: str) -> Fence | None:
        """Of the response that said ``item_id``, if that is not long ago."""
        return self._fences.get(item_id)
