"""The slots of a stepped model, and the batches in which they are stepped.

Owns: which slot is whose, reset before reuse, prefill and release, the one task that calls the model.
Does not own: one owner's steps (``slot_lease``), where calls run (``step_worker``), admission of sessions
(``runtime``).
Here because: sessions come and go on their own clocks, and the model knows one call at a time for them all.

Whoever has a step waiting is in the next batch. Nobody is waited for: under load steps gather while one is
under way, so batches form by themselves, and alone a session has no delay.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from counterpoint.errors import ModelOpenFailed, PluginError
from counterpoint.protocol.config import SessionConfig

from .contract import Outlet, PluginLoad
from .slot_lease import SlotLease
from .step_model import Prefilling, Row, StepEvent, StepModel, Updating
from .step_times import StepTimes
from .step_worker import StepWorker

log = structlog.get_logger(__name__)

_Outcome = Sequence[StepEvent] | Exception


@dataclass(frozen=True, slots=True)
class _Job:
    """A call into the model that is no step."""

    call: Callable[[], Any]
    result: asyncio.Future[Any]


class SlotScheduler:
    """``backlog``: steps of one slot that may wait (two seconds' worth is a good bound)."""

    def __init__(self, model: StepModel, worker: StepWorker, *, backlog: int) -> None:
        self._model = model
        self._worker = worker
        self._backlog = backlog
        self._free = deque(range(model.batch_size))
        self._leases: dict[int, SlotLease] = {}
        self._jobs: deque[_Job] = deque()
        self._times = StepTimes()
        self._wake: asyncio.Event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Warm up on the thread that will serve; slots can be taken when this returns."""
        self._task = asyncio.create_task(self._serve(), name="slot scheduler")
        await self._call(self._model.warm_up)

    async def stop(self) -> None:
        """Call the model no more. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for job in self._jobs:
            job.result.cancel()
        self._jobs.clear()
        self._worker.close()

    def load(self) -> PluginLoad:
        p95 = self._times.p95_ms(asyncio.get_running_loop().time())
        healthy = self._task is not None and not self._task.done()
        return PluginLoad(len(self._leases), self._model.batch_size, p95, healthy)

    # ------------------------------------------------------------------ slots

    def reserve(self, session_id: str, outlet: Outlet) -> SlotLease:
        """Take a slot; ``prepare`` it before its first step. Raises ``ModelOpenFailed``."""
        if not self._free:
            raise ModelOpenFailed(f"all {self._model.batch_size} slots of the model are taken")
        lease = SlotLease(self._free.popleft(), session_id, outlet, self._backlog, self._wake.set)
        self._leases[lease.slot] = lease
        return lease

    async def prepare(self, lease: SlotLease, config: SessionConfig) -> None:
        """Nothing of the slot's last owner is left when this returns, and the instructions were read."""
        await self._call(lambda: self._model.reset([lease.slot], [config]))
        await self.prefill(lease, config.instructions)

    async def prefill(self, lease: SlotLease, text: str) -> None:
        """Have ``text`` read, by a model that does that, between the steps of others."""
        if text and isinstance(self._model, Prefilling):
            pieces = self._model.prefill(lease.slot, text)
            while await self._call(lambda: not lease.is_over and _advance(pieces)):
                pass

    async def update(self, lease: SlotLease, config: SessionConfig) -> None:
        """The session's configuration changed."""
        model = self._model
        if isinstance(model, Updating) and not lease.is_over:
            await self._call(lambda: model.update(lease.slot, config))

    async def release(self, lease: SlotLease) -> None:
        """Give the slot back. Idempotent; one that raised keeps its slot and may be repeated."""
        lease.close()
        if self._task is not None and self._leases.get(lease.slot) is lease:
            await self._call(lambda: self._model.release([lease.slot]))
        if self._leases.get(lease.slot) is lease:
            del self._leases[lease.slot]
            self._free.append(lease.slot)

    # ------------------------------------------------------------------ calls into the model

    async def _call(self, call: Callable[[], Any]) -> Any:
        """Have ``call`` made between two steps."""
        if self._task is None:
            raise ModelOpenFailed("the model was stopped")
        job = _Job(call, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._wake.set()
        return await job.result

    async def _serve(self) -> None:
        """One call, then one batch, in turn: neither opening sessions nor steps can hold up the others."""
        while True:
            if self._jobs:
                await self._do(self._jobs.popleft())
            batch = [lease for lease in self._leases.values() if lease.is_ready]
            if batch:
                await self._step(batch)
            elif not self._jobs:
                self._wake.clear()
                await self._wake.wait()

    async def _do(self, job: _Job) -> None:
        try:
            result = await self._worker.run(job.call)
        except Exception as error:
            log.warning("call into the model raised", exc_info=error)
            if not job.result.done():
                job.result.set_exception(error)
        else:
            if not job.result.done():
                job.result.set_result(result)

    async def _step(self, batch: list[SlotLease]) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        rows = [lease.take() for lease in batch]
        outcomes = await self._worker.run(lambda: _run(self._model, rows))
        self._times.add(clock(), clock() - began)
        for lease, row, outcome in zip(batch, rows, outcomes, strict=True):
            lease.finish(row.input, outcome)


def _advance(pieces: Iterator[None]) -> bool:
    """Whether there was another piece."""
    return next(pieces, False) is None


def _run(model: StepModel, rows: list[Row]) -> list[_Outcome]:
    """Step all rows; if that raises, each alone and once, so that only the guilty one fails."""
    try:
        return list(_checked(model, rows))
    except Exception as error:
        log.warning("step failed, repeating row by row", rows=len(rows), exc_info=error)
        return [_run_alone(model, row) for row in rows]


def _run_alone(model: StepModel, row: Row) -> _Outcome:
    try:
        return _checked(model, [row])[0]
    except Exception as error:
        log.warning("step of one slot failed", session=row.input.fence.session, exc_info=error)
        return error


def _checked(model: StepModel, rows: list[Row]) -> Sequence[Sequence[StepEvent]]:
    said = model.step(rows)
    if len(said) != len(rows):
        raise PluginError(f"a step of {len(rows)} rows was answered for {len(said)}")
    return said
