"""The client that comes with the product and the real server, on one line in memory and in virtual time.

Owns: ``serving``: a session manager, and sessions of the client with it over lines that take their time.
Does not own: the line itself (``counterpoint.testing.link``), what is said on it.
Here because: what a listener heard at some moment can be compared to the sample only where time is exact.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

from counterpoint.client.connect import Connecting
from counterpoint.client.options import Options
from counterpoint.client.session import Session
from counterpoint.client.transport import BROKEN, Closed
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.live import Dialect
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.runtime.metrics import Metrics
from counterpoint.testing import link as memory
from counterpoint.testing.connection import Connection

#: From one end to the other, either way.
DELAY_S = 0.02

Dial = Callable[[dict[str, Any]], Connecting]


class Line:
    """The client's end: a ``client.transport.Transport``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: asyncio.Queue[str] = asyncio.Queue()
        self.link = memory.MemoryLink(wrote=lambda frame, stamp: self._loop.call_later(DELAY_S, self._read))

    async def send(self, frame: bytes) -> None:
        if self.link.lost:
            raise Closed(BROKEN)
        self._loop.call_later(DELAY_S, self._arrive, frame.decode())

    async def receive(self) -> str:
        return await self._frames.get()

    async def close(self, code: int) -> None:
        self.link.reset()

    def _arrive(self, frame: str) -> None:
        self.link.send(frame)
        self.link.arrive()

    def _read(self) -> None:
        sent = self.link.read()
        if isinstance(sent, memory.Sent):
            self._frames.put_nowait(sent.payload.decode())


@contextlib.asynccontextmanager
async def serving(plugin: ModelPlugin) -> AsyncIterator[Dial]:
    """Opens sessions with a server of ``plugin``: ``async with dial(config) as session``."""
    entropy = random.Random(1)
    bounds = Bounds()
    manager = SessionManager(plugin, bounds, entropy=entropy.randbytes, metrics=Metrics())
    tasks: list[asyncio.Task[None]] = []

    async def connect() -> Line:
        line = Line()
        served = Connection(manager, line.link, bounds.transport, IdSource("1e"), lambda: None)
        run = served.run(OpenRequest(Dialect()), autostart=False, resume=None)
        tasks.append(asyncio.create_task(run, name="connection"))
        return line

    try:
        yield lambda config: Connecting(lambda: Session(connect, Options(), extended=True), config, None)
    finally:
        await manager.close()
        await asyncio.gather(*tasks)
