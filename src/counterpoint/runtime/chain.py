"""The work of one session for its model, in the order of the conversation.

Owns: one queue and one task per session that carries out ``Push``, ``Prepare``, ``Respond``, ``Forget``,
``UpdateModel`` and ``TruncateModel`` one after the other, once the model is open; how much audio waits in it.
Does not own: cancelling at the model (the runner calls it directly: a cancel never waits behind an append),
nor what a failure means (it goes back to the machine as ``ModelRaised``).
Here because: a slow step may delay the steps behind it and nothing else, at the cost of no task per frame.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import assert_never

import structlog

from counterpoint.plugins.contract import Fence, ModelSession, ResponseRequest, StepInput
from counterpoint.session.effects import Forget, Prepare, Push, Respond, TruncateModel, UpdateModel

from .tasks import Tasks

log = structlog.get_logger(__name__)

ChainWork = Push | Prepare | Respond | Forget | UpdateModel | TruncateModel


class ModelChain:
    """``raised(fence, operation)`` is called with the fence of work whose call into the model raised.

    ``put`` never blocks. Nothing is submitted before ``start``, and nothing after ``stop``.
    """

    def __init__(
        self, session_id: str, model: ModelSession, tasks: Tasks, raised: Callable[[Fence, str], None]
    ) -> None:
        self._input_fence = Fence(session_id, 0)
        self._model = model
        self._tasks = tasks
        self._raised = raised
        self._queue: deque[ChainWork] = deque()
        self._current: ChainWork | None = None
        #: Audio that the model has not accepted yet, by utterance.
        self._backlog: dict[int, int] = {}
        self._pump: asyncio.Task[None] | None = None
        #: Which pump works. A number: one that knew its own task would keep itself alive once cancelled.
        self._pumps = 0
        #: What the pump waits on while the queue is empty: one future a pause, no task a frame.
        self._wake: asyncio.Future[None] | None = None
        self._stopped = False

    def start(self) -> None:
        """The model is open: carry out what was queued, and what comes."""
        if not self._stopped:
            self._pumps += 1
            self._pump = self._tasks.spawn("chain", self._run(self._pumps))

    def stop(self) -> None:
        """Nothing further is submitted; what is under way is cancelled."""
        self._stopped = True
        self._queue.clear()
        self._backlog.clear()
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None  # what a cancelled task remembers leads back here: a cycle (case C-14)

    def put(self, work: ChainWork) -> None:
        if self._stopped:
            return
        if isinstance(work, Push):
            self._count(work.step, len(work.step.audio))
        elif isinstance(work, Forget):
            self._drop_input(work.input)
        self._queue.append(work)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def drop_answers(self, is_stale: Callable[[ResponseRequest], bool]) -> None:
        """Forget queued answers that are stale, and give up on one whose submission is under way."""
        if self._queue:
            self._queue = deque(work for work in self._queue if not _stale_answer(work, is_stale))
        if self._current is not None and _stale_answer(self._current, is_stale) and self._pump is not None:
            self._pump.cancel()
            self._current = None
            self.start()

    def backlog_bytes(self, *, but: int | None) -> int:
        """Audio that waits for the model to accept it, that of utterance ``but`` aside."""
        return sum(size for utterance, size in self._backlog.items() if utterance != but)

    def _count(self, step: StepInput, change: int) -> None:
        """The audio of ``step`` came, or went; what is left of a dropped utterance counts no more."""
        left = self._backlog.get(step.input, 0) + change
        if left > 0:
            self._backlog[step.input] = left
        else:
            self._backlog.pop(step.input, None)

    def _drop_input(self, utterance: int) -> None:
        """Nobody will ask for this utterance: what the model does not have of it yet, it need not get."""
        self._backlog.pop(utterance, None)
        self._queue = deque(
            work for work in self._queue if not (isinstance(work, Push) and work.step.input == utterance)
        )

    async def _run(self, pump: int) -> None:
        while self._pumps == pump:
            while not self._queue:
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
            self._current = work = self._queue.popleft()
            try:
                await self._submit(work)
            except Exception as error:
                log.warning("model raised", operation=type(work).__name__, exc_info=error)
                self._raised(self._fence_of(work), type(work).__name__.lower())
            if isinstance(work, Push):
                self._count(work.step, -len(work.step.audio))
            if self._pumps == pump:
                self._current = None

    async def _submit(self, work: ChainWork) -> None:
        match work:
            case Push():
                await self._model.push(work.step)
            case Prepare():
                await self._model.prepare(work.request)
            case Respond():
                await self._model.respond(work.request)
            case Forget():
                await self._model.forget(work.input)
            case UpdateModel():
                await self._model.update(work.config)
            case TruncateModel():
                await self._model.truncate(work.fence, work.chars, work.samples)
            case _:
                assert_never(work)

    def _fence_of(self, work: ChainWork) -> Fence:
        match work:
            case Push():
                return work.step.fence
            case Prepare() | Respond():
                return work.request.fence
            case TruncateModel():
                return work.fence
            case Forget() | UpdateModel():
                return self._input_fence


def _stale_answer(work: ChainWork, is_stale: Callable[[ResponseRequest], bool]) -> bool:
    """Only answers go stale by epoch: input stays input whatever was interrupted."""
    return isinstance(work, Prepare | Respond) and is_stale(work.request)
