"""Runs one session: feeds its machine one input at a time and carries out what it asks for.

Owns: the mailbox, the order of effects, the session's timer, the session's model chain and its cleanup.
Does not own: any decision (``session``), what is retained (``delivery``), slots (``runtime.manager``).
Here because: one writer per session. Whoever has news posts an input; only this object calls ``receive``.

The mailbox is drained where it is filled: ``post`` steps the machine at once unless a step is under way,
in which case the input waits for it. No task wakes per input, and inputs keep their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, assert_never

import structlog

from counterpoint.plugins.contract import Fence, ModelEvent, ModelSession
from counterpoint.protocol.codes import CloseCode
from counterpoint.session.effects import (
    AbortResponse,
    CancelModel,
    CheckTurn,
    CloseModel,
    Detect,
    Discard,
    Effect,
    Emit,
    EndSession,
    Forget,
    Prepare,
    Push,
    ReopenModel,
    Reply,
    Respond,
    Tag,
    TruncateModel,
    UpdateModel,
    UseDetector,
)
from counterpoint.session.inputs import (
    CleanedUp,
    CloseRequested,
    DeadlineReached,
    Input,
    ModelHeld,
    ModelOpened,
    ModelOpenFailed,
    ModelRaised,
    ResponseDrained,
    StageOutput,
)
from counterpoint.session.machine import SessionMachine

from .chain import ModelChain
from .detection import DetectionService
from .tasks import Tasks

log = structlog.get_logger(__name__)

#: Pauses before a model that did not stop an answer is asked again.
STOP_RETRIES_S = (0.05, 0.2, 1.0)


class Outbox(Protocol):
    """Where a session's events go; implemented over ``delivery`` by ``runtime.live``."""

    def emit(self, effect: Emit) -> None: ...

    def reply(self, effect: Reply) -> None: ...

    def discard(self, effect: Discard) -> None: ...

    def pending_bytes(self) -> int: ...

    def produced(self, event: ModelEvent) -> None:
        """The model said something, whatever becomes of it."""
        ...


class Runner:
    """One session at work. ``new_model()`` makes its model side, and another where the first is lost;
    ``ended(effect)`` is called once, when the machine is done with everything."""

    def __init__(
        self,
        machine: SessionMachine,
        new_model: Callable[[], ModelSession],
        outbox: Outbox,
        detection: DetectionService,
        *,
        max_pending_output_bytes: int,
        cleanup_timeout_s: float,
        ended: Callable[[EndSession], None],
    ) -> None:
        self.machine = machine
        self._session_id = machine.session_id
        self.tasks = Tasks(machine.session_id)
        self._new_model = new_model
        self._model = new_model()
        #: Model sides that were lost and have not let go yet.
        self._lost: deque[ModelSession] = deque()
        self._outbox = outbox
        self._ended = ended
        self._max_pending = max_pending_output_bytes
        self._cleanup_timeout_s = cleanup_timeout_s
        self._loop = asyncio.get_running_loop()
        self._mailbox: deque[Input] = deque()
        self._stepping = False
        self._broken = False
        self._timer: asyncio.TimerHandle | None = None
        self._detection = detection.session(self.post)
        self._chain = self._new_chain()
        self._opening: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None
        #: False until the model side gave everything back; the manager keeps the slot taken meanwhile.
        self.cleaned = False
        #: What still comes is of no use to anyone.
        self._released = False

    @property
    def input_bytes(self) -> int:
        """Input that was accepted and not consumed: what the machine holds, and what waits for the model."""
        held = self.machine.held_input_bytes
        return held + self._chain.backlog_bytes(but=self.machine.open_utterance)

    # ------------------------------------------------------------------ inputs

    def post(self, news: Input) -> None:
        """Give the machine ``news`` and carry out what follows, now or right after the step under way."""
        if self._released:
            return
        self._mailbox.append(news)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._mailbox:
                self._step(self._mailbox.popleft())
        finally:
            self._stepping = False
        self._arm_timer()

    def accepted(self, tag: Tag) -> None:
        """Delivery handed an entry to a transport. Synchronous, and must not raise."""
        if self._released:
            return
        drained = self.machine.accepted(tag, self._loop.time())
        if drained is not None:
            # Posted from the loop: delivery is in the middle of taking entries.
            self._loop.call_soon(self.post, ResponseDrained(drained))

    def room_changed(self) -> None:
        """Entries left the log; a model that waits for room may go on."""
        if self._room is not None and self._outbox.pending_bytes() < self._max_pending:
            if not self._room.done():
                self._room.set_result(None)
            self._room = None
            self._loop.call_soon(self.post, ModelHeld(False))

    def _step(self, news: Input) -> None:
        try:
            for effect in self.machine.receive(news, self._loop.time()):
                self._perform(effect)
        except Exception as error:
            log.error("session step failed", session=self._session_id, exc_info=error)
            self._give_up()

    def _give_up(self) -> None:
        """A fault in the machine ends its session; one that cannot even close is ended without it."""
        self._mailbox.clear()
        if self._broken:
            self._ended(EndSession("failed", CloseCode.INTERNAL))
            return
        self._broken = True
        self._mailbox.append(CloseRequested("failed"))

    def _arm_timer(self) -> None:
        deadline = self.machine.next_deadline()
        if deadline is None:
            return
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return  # fires early at worst, and arms itself again: most deadlines only move back
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._deadline)

    def _deadline(self) -> None:
        self._timer = None
        deadline = self.machine.next_deadline()
        if deadline is not None and deadline <= self._loop.time():
            self.post(DeadlineReached())
        else:
            self._arm_timer()

    # ------------------------------------------------------------------ effects

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Emit():
                self._outbox.emit(effect)
            case Reply():
                self._outbox.reply(effect)
            case Discard():
                self._outbox.discard(effect)
                self.room_changed()
            case Detect():
                self._detection.detect(effect.chunk, effect.pcm)
            case UseDetector():
                self._detection.use(effect.name)
            case CheckTurn():
                self._detection.check_turn(effect.check, effect.pcm)
            case Push() | Prepare() | Respond() | Forget() | UpdateModel() | TruncateModel():
                self._chain.put(effect)
            case CancelModel():
                old = effect.old.epoch
                self._chain.drop_answers(
                    lambda request: request.fence.epoch <= old and not request.out_of_band
                )
                cancel = self._model.cancel
                self._stop_answers("cancel", lambda: cancel(effect.old, effect.new))
            case AbortResponse():
                turn = effect.fence.turn
                self._chain.drop_answers(lambda request: request.fence.turn == turn)
                abort = self._model.abort
                self._stop_answers("abort", lambda: abort(effect.fence))
            case ReopenModel():
                self._replace_model()
            case CloseModel():
                self._stop_work()
                self.tasks.spawn("cleanup", self._cleanup())
            case EndSession():
                self._ended(effect)
            case _:
                assert_never(effect)

    # ------------------------------------------------------------------ the model side

    def open_model(self) -> None:
        """Open the model side; what the machine asks of it meanwhile waits in the chain."""
        self._opening = self.tasks.spawn("open", self._open())

    async def _open(self) -> None:
        try:
            await self._model.open(self.machine.config, self)
        except Exception as error:
            log.warning("model did not open", session=self._session_id, exc_info=error)
            self.post(ModelOpenFailed("the model could not be opened"))
            return
        self._chain.start()
        self.post(ModelOpened())

    def _replace_model(self) -> None:
        """From here on everything is for the new model side, which opens when the old one let go."""
        self._chain.stop()
        self._lost.append(self._model)
        self._model = self._new_model()
        self._chain = self._new_chain()
        self._opening = self.tasks.spawn("reopen", self._reopen())

    async def _reopen(self) -> None:
        try:
            await self._close_lost()
        except Exception as error:  # the cleanup tries again
            log.warning("a lost model did not close", session=self._session_id, exc_info=error)
        await self._open()

    async def _close_lost(self) -> None:
        async with asyncio.timeout(self._cleanup_timeout_s or None):
            while self._lost:
                await self._lost[0].close()
                self._lost.popleft()

    def _new_chain(self) -> ModelChain:
        return ModelChain(self.machine.session_id, self._model, self.tasks, self._model_raised)

    def emit(self, fence: Fence, event: ModelEvent) -> None:
        """``plugins.contract.Outlet``: output of the model."""
        if self._released:
            return
        self._outbox.produced(event)
        self.post(StageOutput(fence, event))

    async def writable(self) -> None:
        """``plugins.contract.Outlet``: wait while too much output is pending."""
        while not self._released and self._outbox.pending_bytes() >= self._max_pending:
            if self._room is None:
                self._room = self._loop.create_future()
                self.post(ModelHeld(True))
            await asyncio.shield(self._room)

    def _model_raised(self, fence: Fence, operation: str) -> None:
        self.post(ModelRaised(fence, operation))

    def _stop_answers(self, name: str, stop: Callable[[], Awaitable[None]]) -> None:
        self.tasks.spawn(name, self._insist(name, stop))

    async def _insist(self, name: str, stop: Callable[[], Awaitable[None]]) -> None:
        """Call an answer off, again if that fails (invariant 80). What does not stop is stale all the same,
        and is ended by the cleanup at last."""
        for retry_after_s in (*STOP_RETRIES_S, None):
            try:
                await stop()
                return
            except Exception as error:
                log.warning("model raised", operation=name, session=self._session_id, exc_info=error)
            if retry_after_s is not None:
                await asyncio.sleep(retry_after_s)

    def _stop_work(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        self._chain.stop()
        self._detection.close()

    async def _cleanup(self) -> None:
        ok = await self.try_cleanup()
        self.post(CleanedUp(ok))

    async def try_cleanup(self) -> bool:
        """One bounded attempt to give the model side back; the reaper repeats it until it succeeds."""
        if not self.cleaned:
            try:
                await self._close_lost()
                async with asyncio.timeout(self._cleanup_timeout_s or None):
                    await self._model.close()
                self.cleaned = True
                self._let_model_go()
            except Exception as error:
                log.warning("cleanup failed", session=self._session_id, exc_info=error)
        return self.cleaned

    async def stop(self) -> None:
        """End the timer and whatever still runs. Idempotent; after ``release`` nothing runs."""
        if self._released:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._stop_work()
        if self._room is not None:
            self._room.cancel()
        await self.tasks.cancel(timeout=self._cleanup_timeout_s or 5.0)

    def release(self) -> None:
        """After ``stop``: nothing points back to whoever holds this, nor to itself from below.

        An ended session is large, and its parts know each other. Without cycles it is freed at once, not when
        the collector comes by (case C-14). A model side that is not cleaned up yet is kept until it is.
        """
        self._released = True
        del self._outbox, self._ended, self._chain, self._detection
        self._let_model_go()

    def _let_model_go(self) -> None:
        if self.cleaned and self._released:
            del self._model, self._new_model
