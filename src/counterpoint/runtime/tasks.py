"""Background tasks of one owner: named, tracked, and never lost.

Owns: ``TaskGroup``-like tracking without its nesting: spawn, count, cancel all and wait.
Does not own: what a task does when it fails (the owner's ``on_error`` hears of it).
Here because: a task that nobody holds can vanish in mid-await, and one that nobody awaits fails in silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Tasks:
    """The live tasks of one owner, in the order in which they were started."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        #: A dict and not a set: cancellation in a fixed order keeps simulated runs identical.
        self._live: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        return len(self._live)

    def spawn(
        self,
        name: str,
        work: Coroutine[Any, Any, None],
        *,
        on_error: Callable[[Exception], None] | None = None,
    ) -> asyncio.Task[None]:
        """Start ``work``. An exception goes to ``on_error``, else to the log; a cancellation goes nowhere."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}:{name}")
        self._live[task] = None
        task.add_done_callback(lambda done: self._finished(done, on_error))
        return task

    def _finished(self, task: asyncio.Task[None], on_error: Callable[[Exception], None] | None) -> None:
        self._live.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if isinstance(error, Exception) and on_error is not None:
            on_error(error)
        else:
            log.error("task failed", task=task.get_name(), exc_info=error)

    async def join(self) -> None:
        """Return when nothing runs any more."""
        while pending := [task for task in self._live if task is not asyncio.current_task()]:
            await asyncio.wait(pending)

    async def cancel(self, *, timeout: float) -> bool:
        """Cancel what runs and wait at most ``timeout`` seconds; False if something outlived it."""
        pending = [task for task in self._live if task is not asyncio.current_task()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=timeout)
        return all(task.done() for task in pending)
