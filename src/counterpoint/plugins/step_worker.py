"""Where a stepped model is called.

Owns: ``ThreadWorker`` for service, ``InlineWorker`` for tests in virtual time.
Does not own: what is called and when (``slots``).
Here because: torch wants one thread and always the same; a test wants no thread at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class StepWorker(Protocol):
    async def run(self, job: Callable[[], T]) -> T:
        """Call ``job`` and return or raise what it does. A cancelled wait does not stop the job."""
        ...

    def close(self) -> None: ...


class ThreadWorker:
    """All jobs on one thread of their own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="stepper")

    async def run(self, job: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, job)

    def close(self) -> None:
        """Returns when the job under way has ended."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class InlineWorker:
    """Jobs run on the loop and each takes ``job_s`` of its time."""

    def __init__(self, job_s: float = 0.0) -> None:
        self._job_s = job_s

    async def run(self, job: Callable[[], T]) -> T:
        await asyncio.sleep(self._job_s)
        return job()

    def close(self) -> None:
        """There is nothing to give back."""
