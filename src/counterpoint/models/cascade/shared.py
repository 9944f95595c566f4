"""A result that several wait for.

Owns: that who stops waiting takes nothing from the others; that a failure nobody waits for is no news.
Does not own: what is computed.
Here because: words serve a transcript, an answer and later ones, and each of these may be cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Computes ``work`` from now on."""

    def __init__(self, work: Coroutine[Any, Any, T], name: str) -> None:
        self._task = asyncio.create_task(work, name=name)
        self._task.add_done_callback(_look_at)

    @property
    def done(self) -> bool:
        return self._task.done()

    async def result(self) -> T:
        """What ``work`` returns; raises what it raises."""
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._task.cancel()

    async def aclose(self) -> None:
        """Stop, and return when it has stopped."""
        self.cancel()
        await asyncio.wait([self._task])


def _look_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
