"""What one connection is sent, in order, as fast as it takes it.

Owns: one task per attachment: batches from the log, the connection-scoped queue, back-pressure, the last frames.
Does not own: framing and buffers (``serving`` behind ``Link``), what is in the log, who is attached.
Here because: one writer per connection is what makes wire order and numbers agree (case I-13).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from counterpoint.limits import TransportLimits

from .cursor import Cursor


class Link(Protocol):
    """One connection's sending side. Messages go out whole and in order."""

    def write(self, frames: Sequence[bytes]) -> None:
        """Hand messages to the transport; never blocks, does nothing once the link is closing or lost."""
        ...

    async def drain(self) -> None:
        """Return when the transport takes more. Raises ``ConnectionError`` when it is lost, also by ``abort``."""
        ...

    def buffered(self) -> int:
        """Bytes that the transport still holds."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Closing handshake; returns when the connection is gone, at the latest when ``abort`` was called."""
        ...

    def abort(self) -> None:
        """End the connection now (RST)."""
        ...


class Loss(enum.Enum):
    """Why a writer gave up."""

    STALLED = "stalled"  #: no byte moved for ``send_timeout_s``
    BROKEN = "broken"  #: the connection is lost


class Writer:
    """``lost`` is called at most once, synchronously, when the connection stalls or breaks: the caller detaches it.
    A stalled connection is closed (1013) by the writer itself.

    ``snapshot(as_of)`` gives the connection-scoped messages that stand for entries that are gone.
    """

    def __init__(
        self,
        link: Link,
        cursor: Cursor,
        limits: TransportLimits,
        *,
        extended: bool,
        beta: bool = False,
        lost: Callable[[Loss], None],
        snapshot: Callable[[int], Sequence[bytes]],
    ) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        """The writer's task: until the connection is closed or lost."""
        raise NotImplementedError

    def send(self, frame: bytes, *, counted: bool = True) -> None:
        """Queue a connection-scoped message: it goes out before the next log entry.

        ``counted=False`` for replies of the handshake, which may not be held against the client.
        """
        raise NotImplementedError

    @property
    def has_room(self) -> bool:
        """Whether the connection may be read: the connection-scoped queue is not full."""
        raise NotImplementedError

    async def room(self) -> None:
        """Return when ``has_room``, or when the writer has ended."""
        raise NotImplementedError

    def wake(self) -> None:
        """Something changed: entries, playback position."""
        raise NotImplementedError

    def close(self, code: int, reason: str = "", *, flush_log: bool = False) -> None:
        """Send what is queued (``flush_log``: and all that the log holds), then close with ``code``.

        Takes effect at once: without ``flush_log`` no entry is taken after this call. Bounded by
        ``close_timeout_s``, then reset.
        """
        raise NotImplementedError
