"""Replicas of one stage, kept alive.

Owns: starting them, another start after a loss, with back-off; which replica gets a new request.
Does not own: where they run (``Place``), what a lost request means to its session (``placed_plugin``).
Here because: a crash is the end of the requests that were there, and of nothing else.

A request stays with its replica: what the stage knows of it is nowhere else. A new one goes to the replica
with the fewest.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from counterpoint.errors import PluginError
from counterpoint.plugins.contract import PluginLoad

from .link import Place
from .remote import RemoteStage
from .stage import StageSpec

log = structlog.get_logger(__name__)

#: Pauses before a lost place is started again, the last one repeated.
RESTART_BACKOFF_S: Final = (0.1, 0.5, 2.0, 5.0, 15.0)
#: A place that lived so long begins again with the shortest pause.
STABLE_S: Final = 60.0


class Executor:
    """``start`` returns when every replica is warm, and raises what the first of them to fail raised."""

    def __init__(self, place: Place, spec: StageSpec, replicas: int = 1) -> None:
        self._place = place
        self._spec = spec
        self._replicas = replicas
        #: The living ones, by the number of the replica.
        self._stages: dict[int, RemoteStage] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._stopped = False

    async def start(self) -> None:
        try:
            for number in range(self._replicas):
                await self._start(number)
        except BaseException:
            await self.stop()
            raise
        self._keepers = [asyncio.create_task(self._keep(number)) for number in range(self._replicas)]

    async def stop(self) -> None:
        self._stopped = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        async with self._changed:
            self._changed.notify_all()
        stages, self._stages = list(self._stages.values()), {}
        for stage in stages:
            await stage.stop()

    async def choose(self) -> RemoteStage:
        """The replica for a new request; waits while there is none. Raises ``PluginError`` when stopped."""
        async with self._changed:
            while not self._living():
                if self._stopped:
                    raise PluginError("the executor was stopped")
                await self._changed.wait()
            return min(self._living(), key=lambda stage: stage.requests)

    def load(self) -> PluginLoad:
        """Of all replicas together; the fastest step counts, for that is where there is room."""
        loads = [stage.load for stage in self._living()]
        slots = [load.slots for load in loads if load.slots is not None]
        steps = [load.p95_step_ms for load in loads if load.p95_step_ms is not None]
        return PluginLoad(
            sum(load.sessions for load in loads),
            sum(slots) if slots else None,
            min(steps, default=None),
            any(load.healthy for load in loads),
        )

    def _living(self) -> list[RemoteStage]:
        return [stage for stage in self._stages.values() if not stage.gone.is_set()]

    async def _start(self, number: int) -> None:
        stage = RemoteStage()
        await stage.start(self._place, self._spec)
        async with self._changed:
            self._stages[number] = stage
            self._changed.notify_all()

    async def _keep(self, number: int) -> None:
        """Wait for the loss of the replica, and start it again, for as long as the executor runs."""
        losses = 0
        while True:
            began = asyncio.get_running_loop().time()
            await self._stages[number].gone.wait()
            if asyncio.get_running_loop().time() - began > STABLE_S:
                losses = 0
            losses = await self._restart(number, losses)

    async def _restart(self, number: int, losses: int) -> int:
        """Try until it is there; how many losses and failures there were by then."""
        while True:
            pause_s = RESTART_BACKOFF_S[min(losses, len(RESTART_BACKOFF_S) - 1)]
            losses += 1
            log.warning(
                "stage lost, starting it again", replica=number, stage=self._spec.target, in_s=pause_s
            )
            await asyncio.sleep(pause_s)
            try:
                await self._start(number)
            except Exception as error:
                log.warning("stage did not start", replica=number, exc_info=error)
            else:
                return losses
