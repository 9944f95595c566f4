"""Blocking engines, awaited from the event loop.

Owns: the threads of one engine, and telling a call that nobody waits for its result any more.
Does not own: the engines, nor what they do when told (they ask at every token, chunk or sentence).
Here because: an engine must neither block the loop nor go on for a caller that was cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from counterpoint.models.voice.cancellation import Cancelled

T = TypeVar("T")


class Worker:
    """The threads of one engine; calls beyond their number wait in the order in which they came."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, call: Callable[[Cancelled], T]) -> T:
        """The result of ``call``. If cancelled, a call that waits is dropped, and one that runs is told."""
        given_up = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call, given_up.is_set)
        finally:
            given_up.set()

    async def stream(self, call: Callable[[Cancelled], Iterator[T]]) -> AsyncGenerator[T]:
        """What ``call`` yields, as it comes; raises what it raises. Closing the generator stops it."""
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[T | _End] = asyncio.Queue()

        def work(cancelled: Cancelled) -> None:
            for item in call(cancelled):
                loop.call_soon_threadsafe(items.put_nowait, item)

        def ended(task: asyncio.Task[None]) -> None:
            items.put_nowait(_End(None if task.cancelled() else task.exception()))

        running = asyncio.create_task(self.run(work))
        running.add_done_callback(ended)
        try:
            while not isinstance(item := await items.get(), _End):
                yield item
            if item.failure is not None:
                raise item.failure
        finally:
            running.cancel()

    def stop(self) -> None:
        """No more calls; waits for the one that is running."""
        self._pool.shutdown(cancel_futures=True)


class _End:
    """After the last item: why there are no more."""

    def __init__(self, failure: BaseException | None) -> None:
        self.failure = failure
