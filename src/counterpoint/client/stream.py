"""A bounded queue between the client, which never waits, and a program that may not be reading.

Owns: the bound, dropping the oldest, waking the reader, the end.
Does not own: what the program is told of what was dropped (``session``, ``response``).
Here because: a client that stops reading its socket because one queue is full stops acknowledging, and the
server gives up on it (case K-03).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Stream(Generic[T]):
    """``async for item in stream``, by one reader at a time; what came before it started is not lost.

    Holds items of at most ``limit`` in all, as ``size`` counts them. Where some gave way, the reader gets
    ``marker(how many)`` in their place, if there is a ``marker``.
    """

    def __init__(
        self, limit: int, size: Callable[[T], int], marker: Callable[[int], T] | None = None
    ) -> None:
        self._limit = limit
        self._size = size
        self._marker = marker
        self._items: deque[T] = deque()
        self._held = 0
        self._missing = 0
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._being_read = False

    def put(self, item: T) -> int:
        """Never waits; returns how much gave way. Without effect after the end."""
        if self._ended:
            return 0
        self._items.append(item)
        self._held += self._size(item)
        dropped = 0
        while self._held > self._limit and len(self._items) > 1:
            dropped += self._size(self._pop())
            self._missing += 1
        self._changed.set()
        return dropped

    def clear(self) -> None:
        """Forget what was not read."""
        self._items.clear()
        self._held = 0

    def end(self, error: Exception | None = None) -> None:
        """Once the rest is read the iteration ends, or raises ``error``."""
        self._ended = True
        self._error = error
        self._changed.set()

    def _pop(self) -> T:
        item = self._items.popleft()
        self._held -= self._size(item)
        return item

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        if self._being_read:
            raise RuntimeError("two tasks read one stream: each item would reach only one of them")
        self._being_read = True
        try:
            while not self._items:
                if self._ended:
                    raise self._error or StopAsyncIteration
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._being_read = False
        if self._missing and self._marker is not None:
            missing, self._missing = self._missing, 0
            return self._marker(missing)
        return self._pop()
