"""Memory that two processes see, for what is large.

Owns: a ring of bytes in an unlinked file, and its accounting.
Does not own: the messages that name a piece of it (``pipe``).
Here because: a pipe takes 64 KiB at a time, and each piece costs both sides a wake-up.

The writer keeps the accounts. The reader copies a piece as soon as it hears of it and says so, in order, so
that what is free is always one stretch.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections import deque


class Ring:
    """``descriptor`` is that of a file of ``size`` bytes; both ends map the same."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._memory = mmap.mmap(descriptor, size)
        self._size = size
        self._head = 0
        #: Pieces that were written and not read yet: where each ends, the oldest first.
        self._taken: deque[tuple[int, int]] = deque()

    def write(self, data: bytes) -> int | None:
        """Where ``data`` lies now; None where there is no room for it."""
        start = self._room(len(data))
        if start is None:
            return None
        self._memory[start : start + len(data)] = data
        self._head = start + len(data)
        self._taken.append((start, self._head))
        return start

    def read(self, start: int, length: int) -> bytes:
        return self._memory[start : start + length]

    def freed(self) -> None:
        """The oldest piece was read."""
        self._taken.popleft()

    def close(self) -> None:
        self._memory.close()

    def _room(self, length: int) -> int | None:
        if not self._taken:
            return 0 if length <= self._size else None
        tail = self._taken[0][0]
        if self._head > tail:
            if self._head + length <= self._size:
                return self._head
            return 0 if length < tail else None
        return self._head if self._head + length < tail else None


def make_file(size: int) -> int:
    """The descriptor of a file that has no name and lies in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("counterpoint")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
