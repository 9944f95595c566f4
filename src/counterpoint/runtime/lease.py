"""How long a session lives without activity, and without a connection.

Owns: lease generations, idle and grace expiry, that a session ends once.
Does not own: looking at the clock (``now`` is an argument), who is attached (``delivery.attachment``).
Here because: the reaper, a disconnect and a resume race for the same session, and one value must decide.

A session is idle while it is attached and nothing happens; the disconnect grace runs while it is not
attached. Never both: a client that left has the whole grace to come back (wire contract, sections 2 and 3).
"""

from __future__ import annotations

import enum

from counterpoint.errors import ResumeRefused
from counterpoint.limits import LeaseLimits
from counterpoint.protocol.codes import ErrorCode


class _State(enum.Enum):
    ATTACHED = enum.auto()
    DETACHED = enum.auto()
    ENDED = enum.auto()


class Lease:
    """A new lease is attached, as of ``now`` (seconds of a clock that never goes back)."""

    def __init__(self, limits: LeaseLimits, now: float, *, generation: int = 1) -> None:
        self._grace_s = limits.disconnect_grace_s
        self._server_idle_s = limits.idle_ttl_s
        #: 0: no idle expiry.
        self._idle_s = limits.idle_ttl_s
        self._state = _State.ATTACHED
        self._operations = 0
        #: When the running expiry began: the last activity, or the disconnect.
        self._since = now
        #: Bumped by every resume; a report that names an older one comes too late.
        self.generation = generation

    @property
    def attached(self) -> bool:
        return self._state is _State.ATTACHED

    @property
    def resumable(self) -> bool:
        """Whether a session outlives its connections at all: ``lease.disconnect_grace_s`` is not 0."""
        return self._grace_s > 0

    # ------------------------------------------------------------------ activity

    def touch(self, now: float) -> None:
        """A command was accepted, or output was made."""
        if self._state is _State.ATTACHED:
            self._since = now

    def begin(self) -> None:
        """An operation is in flight: no idle expiry until as many ended as began."""
        self._operations += 1

    def end(self, now: float) -> None:
        """An operation is over, which counts as activity."""
        self._operations -= 1
        self.touch(now)

    def limit_idle(self, seconds: float | None) -> None:
        """``idle_timeout_s`` of the session: it can only shorten the server's. None: the server's."""
        self._idle_s = min((limit for limit in (seconds, self._server_idle_s) if limit), default=0.0)

    # ------------------------------------------------------------------ connections

    def detach(self, generation: int, now: float) -> bool:
        """The connection that serves ``generation`` is gone. False for a late or second report: no effect."""
        if self._state is not _State.ATTACHED or generation != self.generation:
            return False
        self._state = _State.DETACHED
        self._since = now
        return True

    def resume(self, expected: int, now: float) -> int:
        """Swap generation ``expected`` for the next one, which is returned, and be attached.

        Raises ``ResumeRefused``: ``session_resume_expired``, ``unsupported_session_resume`` or, if another
        resume was first, ``session_resume_conflict``.
        """
        if self._state is _State.ENDED:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_EXPIRED, "the session ended")
        if not self.resumable:
            raise ResumeRefused(ErrorCode.UNSUPPORTED_SESSION_RESUME, "this server does not keep sessions")
        if expected != self.generation:
            raise ResumeRefused(
                ErrorCode.SESSION_RESUME_CONFLICT, "another connection resumed the session first"
            )
        self.generation += 1
        self._state = _State.ATTACHED
        self._since = now
        return self.generation

    # ------------------------------------------------------------------ the end

    def deadline(self) -> float | None:
        """When the session expires if nothing happens; None while it cannot."""
        match self._state:
            case _State.ATTACHED:
                return self._since + self._idle_s if self._idle_s and not self._operations else None
            case _State.DETACHED:
                return self._since + self._grace_s
            case _State.ENDED:
                return None

    def expired(self, now: float) -> str | None:
        """The reason of ``session.expired`` (wire contract, section 2), once its time has come."""
        deadline = self.deadline()
        if deadline is None or now < deadline:
            return None
        return "idle_ttl_expired" if self.attached else "disconnect_grace_expired"

    def finish(self) -> bool:
        """The session ends. True for the first who says so, who then ends it; False for everyone after."""
        first = self._state is not _State.ENDED
        self._state = _State.ENDED
        return first
