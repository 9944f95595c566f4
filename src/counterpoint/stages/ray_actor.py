"""A stage in a Ray actor: on any node of a cluster that has the resources.

Owns: the actor, the way to it, noticing that it or its node is gone.
Does not own: the cluster, where in it an actor goes (Ray), the next start (``executor``).
Here because: replicas of a model on several machines are a solved problem. Needs the extra ``ray``.

Calls of an asynchronous actor may overtake each other, so messages to it are numbered. What it says comes
back as one stream, whose end is the actor's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import ray

from .host import StageHost
from .link import Peer
from .messages import FromStage, Stop, ToStage
from .stage import StageSpec

#: A stage that does not stop within this long is killed.
STOP_TIMEOUT_S: Final = 5.0


class RayPlace:
    """``address`` of a cluster; None starts one on this machine, or uses the one that this process is in."""

    def __init__(self, address: str | None = None, *, cpus: float = 1.0, gpus: float = 0.0) -> None:
        self._address = address
        self._cpus = cpus
        self._gpus = gpus

    async def launch(self, spec: StageSpec, peer: Peer) -> RayLink:
        if not ray.is_initialized():
            await asyncio.to_thread(
                ray.init, self._address, include_dashboard=False, log_to_driver=False, configure_logging=False
            )
        made = ray.remote(_Actor).options(
            num_cpus=self._cpus, num_gpus=self._gpus, max_restarts=0, max_concurrency=1000
        )
        return RayLink(made.remote(spec), peer)


class RayLink:
    def __init__(self, actor: Any, peer: Peer) -> None:
        self.actor = actor
        self._peer = peer
        self._sent = 0
        self._reader = asyncio.create_task(self._read())

    def send(self, message: ToStage) -> None:
        """What becomes of it shows in the stream alone."""
        self.actor.receive.remote(self._sent, message)
        self._sent += 1

    async def close(self) -> None:
        self.send(Stop())
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await asyncio.shield(self._reader)
        ray.kill(self.actor)
        await self._reader

    async def _read(self) -> None:
        try:
            async for said in self.actor.serve.options(num_returns="streaming").remote():
                self._peer.received(await said)
        except ray.exceptions.RayError:
            pass  # the actor or its node is gone, and the stage with it
        finally:
            self._peer.lost()


class _Actor:
    """Runs in the cluster."""

    def __init__(self, spec: StageSpec) -> None:
        self._said: asyncio.Queue[FromStage | None] = asyncio.Queue()
        self._host = StageHost(spec, self._said.put_nowait)
        self._early: dict[int, ToStage] = {}
        self._next = 0

    async def receive(self, number: int, message: ToStage) -> None:
        self._early[number] = message
        while self._next in self._early:
            self._host.received(self._early.pop(self._next))
            self._next += 1

    async def serve(self) -> Any:
        running = asyncio.create_task(self._host.run())
        running.add_done_callback(lambda _: self._said.put_nowait(None))
        while (message := await self._said.get()) is not None:
            yield message
        await running
