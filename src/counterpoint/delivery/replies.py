"""The connection-scoped events that wait for their connection.

Owns: their order and the bound on them (wire contract, section 11).
Does not own: session events, which wait in the log; who stops reading when there is no room (``serving``).
Here because: a client can cause replies faster than it reads them, and nothing else would bound them.
"""

from __future__ import annotations

#: Full at either; the reply that reaches the bound is still taken.
MAX_BYTES = 64 * 1024
MAX_EVENTS = 8


class Replies:
    """First in, first out. A reply that is not counted takes its place in the order and no room."""

    __slots__ = ("_bytes", "_events", "_frames")

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._events = 0
        self._bytes = 0

    @property
    def full(self) -> bool:
        return self._events >= MAX_EVENTS or self._bytes >= MAX_BYTES

    def put(self, frame: bytes, *, counted: bool) -> None:
        self._frames.append(frame)
        if counted:
            self._events += 1
            self._bytes += len(frame)

    def take_all(self) -> list[bytes]:
        if not self._frames:
            return []
        frames, self._frames = self._frames, []
        self._events = self._bytes = 0
        return frames
