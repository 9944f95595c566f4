"""How long a session lives without activity, and without a connection.

Owns: lease generations, idle and grace expiry, the one terminal.
Does not own: looking at the clock (``now`` is an argument), who is attached (``delivery.attachment``).
Here because: the reaper, a disconnect and a resume race for the same session, and one value must decide.
"""

from __future__ import annotations

from counterpoint.limits import LeaseLimits


class Lease:
    """Generations run from ``generation``; a new lease is attached. ``limits`` 0: no idle expiry, no resume."""

    def __init__(self, limits: LeaseLimits, now: float, *, generation: int = 1) -> None:
        raise NotImplementedError

    @property
    def generation(self) -> int:
        raise NotImplementedError

    @property
    def attached(self) -> bool:
        raise NotImplementedError

    @property
    def resumable(self) -> bool:
        """Whether a session outlives its connections at all (``lease.disconnect_grace_s`` is not 0)."""
        raise NotImplementedError

    def touch(self, now: float) -> None:
        """A command was accepted or output was made."""
        raise NotImplementedError

    def shorten_idle(self, idle_timeout_s: float | None) -> None:
        """The session's own ``idle_timeout_s``: may shorten the server's, not lengthen it; None is the server's."""
        raise NotImplementedError

    def detach(self, generation: int, now: float) -> bool:
        """The connection serving ``generation`` is gone; False (and no effect) if it is not the current one."""
        raise NotImplementedError

    def resume(self, expected: int, now: float) -> int:
        """Swap ``expected`` for the next generation, which is returned; the lease is attached again.

        Raises ``ResumeRefused``: ``session_resume_conflict``, ``session_resume_expired``, ``unsupported_session_resume``.
        """
        raise NotImplementedError

    def begin(self) -> None:
        """An operation is in flight: no idle expiry before it ends."""
        raise NotImplementedError

    def end(self, now: float) -> None:
        """An operation ended; renews the lease."""
        raise NotImplementedError

    def deadline(self) -> float | None:
        """When ``expired`` may first say so; None while nothing can expire."""
        raise NotImplementedError

    def expired(self, now: float) -> str | None:
        """The reason of ``session.expired``, once its time has come."""
        raise NotImplementedError

    def finish(self) -> bool:
        """The session ends: True the first time, False ever after."""
        raise NotImplementedError
