"""Who is attached to a session, and which lease generation each connection serves.

Owns: attachment generations, the swap at a resume, and lease generations that lost their connection.
Does not own: the lease itself (``runtime.lease`` or a store, behind ``LeasePort``), sockets, the log.
Here because: every report about a connection may come late; a generation says whether it still counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol


class Held(NamedTuple):
    """A connection and the lease generation that it serves, read at one moment."""

    generation: int
    lease: int


class Takeover(NamedTuple):
    """A resume that succeeded: who is attached now, and who was until now."""

    current: Held
    replaced: Held | None


class LeasePort(Protocol):
    """A lease whose swap may suspend (a store, another node)."""

    def resume(self, expected: int) -> Awaitable[int]:
        """The next lease generation, if ``expected`` is the current one; else raises ``ResumeRefused``."""
        ...


class Attachments:
    """``give_back(lease)`` is called, synchronously, when nobody serves a lease generation any more: the caller
    puts it into the disconnect grace. It must not raise."""

    def __init__(self, give_back: Callable[[int], None], *, generation: int = 0, lease: int = 0) -> None:
        raise NotImplementedError

    @property
    def attached(self) -> Held | None:
        raise NotImplementedError

    @property
    def generation(self) -> int:
        """The newest attachment generation; 0 before the first connection."""
        raise NotImplementedError

    def is_current(self, generation: int) -> bool:
        raise NotImplementedError

    def attach(self, lease: int) -> Held:
        """The connection that opened the session."""
        raise NotImplementedError

    def resume(self, validate: Callable[[], None], swap: Callable[[int], int]) -> Takeover:
        """Validate, swap the lease, swap the attachment: one step, nothing changed if either raises."""
        raise NotImplementedError

    async def resume_through(self, port: LeasePort, validate: Callable[[], None]) -> Takeover:
        """The same over a lease that may suspend; ``validate`` is called before the swap and again at activation."""
        raise NotImplementedError

    def detach(self, generation: int | None = None) -> Held | None:
        """Drop connection ``generation`` (None: whoever is attached); returns what was dropped, None if nothing."""
        raise NotImplementedError

    def close(self) -> Held | None:
        """The session ended: drop who is attached; nothing is owed from now on."""
        raise NotImplementedError
