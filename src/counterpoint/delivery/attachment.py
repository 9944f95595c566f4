"""Who is attached to a session, and which lease generation each connection serves.

Owns: attachment generations, the swap at a resume, lease generations that lost their connection.
Does not own: the lease (``runtime.lease``, or a store behind ``LeasePort``), sockets, the log, tokens.
Here because: every report about a connection may come late, and a generation says whether it still counts.

A lease that is in this process is swapped in one step with the attachment, and nothing can come between.
Where the swap itself suspends, connections come and go meanwhile: a resume *claims* before it asks, and a
lease generation that loses its connection while a claim is open waits for the next activation instead of
going into the disconnect grace. See "Attachments and leases" in the design page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from counterpoint.errors import ResumeRefused
from counterpoint.protocol.codes import ErrorCode


class Held(NamedTuple):
    """A connection and the lease generation that it serves, read at one moment."""

    generation: int
    lease: int


class Takeover(NamedTuple):
    """A resume that succeeded: who is attached now, and who was attached until now."""

    current: Held
    replaced: Held | None


class LeasePort(Protocol):
    """A lease whose swap may suspend: in a store, on another node."""

    def resume(self, expected: int) -> Coroutine[Any, Any, int]:
        """The next lease generation, if ``expected`` is the current one; else raises ``ResumeRefused``.

        Runs in a task of its own and is never cancelled, since a swap under way cannot be taken back: it
        bounds itself in time.
        """
        ...


class Attachments:
    """The attachments of one session, of which at most one is current.

    ``give_back(lease)`` is called, synchronously, with a lease generation that nobody serves any more: the
    caller puts it into the disconnect grace. It must not raise. ``generation`` and ``lease`` are the newest
    ones of a session that is restored; lease generations are positive.
    """

    def __init__(self, give_back: Callable[[int], None], *, generation: int = 0, lease: int = 0) -> None:
        self._give_back = give_back
        #: Newest attachment generation; 0 before the first connection.
        self.generation = generation
        #: Who is attached now.
        self.attached: Held | None = None
        #: Newest lease generation heard of, whoever serves it: what the next swap expects to find.
        self._newest_lease = lease
        #: Resumes that asked for the lease and are neither activated nor failed.
        self._claims = 0
        #: Newest lease generation that lost its connection and waits for a claim; 0 if none does.
        self._orphan = 0
        self._ended = False

    def is_current(self, generation: int) -> bool:
        return self.attached is not None and self.attached.generation == generation

    # ------------------------------------------------------------------ coming

    def attach(self, lease: int) -> Held:
        """The connection that opened the session."""
        return self._activate(lease).current

    def resume(self, validate: Callable[[], None], swap: Callable[[int], int]) -> Takeover:
        """Validate, swap the lease, swap the attachment: one step, and nothing happened if one of these
        raises.

        ``swap`` gets the lease generation that is expected and returns the next one. Raises
        ``ResumeRefused``, and what ``validate`` and ``swap`` raise.
        """
        self._refuse_if_ended()
        validate()
        return self._activate(swap(self._newest_lease))

    async def resume_through(self, port: LeasePort, validate: Callable[[], None]) -> Takeover:
        """The same where the swap may suspend: ``validate`` is asked before it, and again after it."""
        self._refuse_if_ended()
        validate()
        self._claims += 1
        swap = asyncio.ensure_future(port.resume(self._newest_lease))
        try:
            lease = await asyncio.shield(swap)
        except asyncio.CancelledError:
            # The caller left; the swap does not stop for that, and what it brings must find an owner.
            swap.add_done_callback(self._abandon)
            raise
        except BaseException:
            self._release()
            raise
        try:
            self._refuse_if_ended()
            validate()
        except BaseException:
            self._release(lease)
            raise
        takeover = self._activate(lease)
        self._release()
        return takeover

    # ------------------------------------------------------------------ going

    def detach(self, generation: int | None = None) -> Held | None:
        """Connection ``generation`` (None: whoever is attached) is gone. Returns what was dropped.

        None means that the report came late or a second time, and changed nothing.
        """
        dropped = self.attached
        if dropped is None or generation not in (None, dropped.generation):
            return None
        self.attached = None
        self._orphan = max(self._orphan, dropped.lease)
        self._settle()
        return dropped

    def close(self) -> Held | None:
        """The session ended: whoever is attached is dropped, and nothing is given back from now on."""
        dropped, self.attached = self.attached, None
        self._ended = True
        self._orphan = 0
        self._give_back = _nobody_asks  # it was bound to the session that holds these: a cycle (C-14)
        return dropped

    # ------------------------------------------------------------------ parts

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_EXPIRED, "the session ended")

    def _activate(self, lease: int) -> Takeover:
        replaced = self.attached
        newest = max(lease, self._orphan, replaced.lease if replaced else 0)
        self._orphan = 0
        self._newest_lease = max(self._newest_lease, newest)
        self.generation += 1
        self.attached = Held(self.generation, newest)
        return Takeover(self.attached, replaced)

    def _abandon(self, swap: asyncio.Future[int]) -> None:
        failed = swap.cancelled() or swap.exception() is not None
        self._release(0 if failed else swap.result())

    def _release(self, lease: int = 0) -> None:
        """A claim is over. ``lease`` is the generation that it got and did not activate."""
        self._claims -= 1
        self._newest_lease = max(self._newest_lease, lease)
        if not self._ended:
            self._orphan = max(self._orphan, lease)
            self._settle()

    def _settle(self) -> None:
        """An orphan that no claim can take goes to whoever is attached, else back to the caller."""
        if self._claims or not self._orphan:
            return
        orphan, self._orphan = self._orphan, 0
        if self.attached is not None:
            self.attached = self.attached._replace(lease=max(self.attached.lease, orphan))
        else:
            self._give_back(orphan)


def _nobody_asks(_: int) -> None:
    """The lease of a session that ended is given back to nobody."""
