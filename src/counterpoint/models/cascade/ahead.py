"""Producing while somebody else is consuming: a stage that runs ahead of the next one.

Owns: the task that fills, the bound that holds it back, and how its end or its failure reaches the reader.
Does not own: what is produced.
Here because: an answer is made before anybody asks for it, and a sentence is spoken while another is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _End:
    failure: Exception | None


class Ahead(Generic[T]):
    """Iterates over ``source``, which runs in a task of its own, at most ``limit`` items ahead of its reader.

    Starts at once. Raises in the reader what ``source`` raised. One reader. ``upstream`` is what
    ``source`` reads from; it ends with it.
    """

    def __init__(
        self, source: AsyncGenerator[T], limit: int, name: str, upstream: Ahead[Any] | None = None
    ) -> None:
        self._items: asyncio.Queue[T | _End] = asyncio.Queue(limit)
        self._upstream = upstream
        self._task = asyncio.create_task(self._fill(source), name=name)

    def __aiter__(self) -> Ahead[T]:
        return self

    async def __anext__(self) -> T:
        item = await self._items.get()
        if not isinstance(item, _End):
            return item
        if item.failure is not None:
            raise item.failure
        raise StopAsyncIteration

    def cancel(self) -> None:
        """Stop producing. A reader that is waiting must be cancelled as well: nothing more comes."""
        self._task.cancel()
        if self._upstream is not None:
            self._upstream.cancel()

    async def aclose(self) -> None:
        """Stop producing, and return when everything has stopped."""
        self.cancel()
        await asyncio.wait([self._task])
        if self._upstream is not None:
            await self._upstream.aclose()

    async def _fill(self, source: AsyncGenerator[T]) -> None:
        failure = None
        try:
            async with aclosing(source):
                async for item in source:
                    await self._items.put(item)
        except Exception as error:  # noqa: BLE001  # the reader raises it
            failure = error
        finally:
            if self._upstream is not None:
                self._upstream.cancel()
        await self._items.put(_End(failure))
