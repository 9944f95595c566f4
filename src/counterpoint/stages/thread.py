"""A stage on a thread of this process, with an event loop of its own.

Owns: the thread and the way to it.
Does not own: the stage (``host``).
Here because: a model that blocks without holding the interpreter needs no process, and no pickling.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .host import StageHost
from .link import Peer
from .messages import FromStage, Stop, ToStage
from .stage import StageSpec


class ThreadPlace:
    async def launch(self, spec: StageSpec, peer: Peer) -> ThreadLink:
        link = ThreadLink(spec, peer)
        link.begin()
        return link


class ThreadLink:
    def __init__(self, spec: StageSpec, peer: Peer) -> None:
        self._spec = spec
        self._peer = peer
        self._here = asyncio.get_running_loop()
        self._there = asyncio.new_event_loop()
        self._host: StageHost | None = None
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="stage", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def send(self, message: ToStage) -> None:
        _post(self._there, lambda: self._deliver(message))

    async def close(self) -> None:
        """A thread cannot be killed: returns when the stage has stopped by itself."""
        self.send(Stop())
        await self._ended.wait()

    def _deliver(self, message: ToStage) -> None:
        if self._host is not None:
            self._host.received(message)

    def _run(self) -> None:
        try:
            with suppress(SystemExit):  # the stage ended its place
                self._there.run_until_complete(self._serve())
        finally:
            _end(self._there)
            _post(self._here, self._lost)

    async def _serve(self) -> None:
        self._host = StageHost(self._spec, self._send)
        await self._host.run()

    def _send(self, message: FromStage) -> None:
        _post(self._here, lambda: self._peer.received(message))

    def _lost(self) -> None:
        self._ended.set()
        self._peer.lost()


def _post(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
        loop.call_soon_threadsafe(call)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(_cancel(asyncio.all_tasks(loop)))
    loop.close()


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
