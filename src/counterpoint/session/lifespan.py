"""The longest life of a session, announced before it is over.

Owns: ``limits.max_session_s`` and ``session.expiring``.
Does not own: idle expiry and the disconnect grace (the lease, in ``runtime``).
Here because: a client must be able to resume elsewhere before the end, not after it (case A-15).
"""

from __future__ import annotations

from counterpoint.limits import Limits
from counterpoint.protocol.events import SessionExpiring

from .close import Closing
from .out import Out
from .state import RunState

#: Notice before the end, unless a tenth of the whole is less (wire contract, section 2).
_NOTICE_S = 30.0


class Lifespan:
    def __init__(self, state: RunState, out: Out, limits: Limits, closing: Closing) -> None:
        self._state = state
        self._out = out
        self._closing = closing
        most = limits.max_session_s
        #: None: the session may live for ever.
        self._ends_at = state.now + most if most else None
        self._notice_at = state.now + most - min(_NOTICE_S, most / 10) if most else None

    def deadline(self) -> float | None:
        return self._ends_at if self._notice_at is None else self._notice_at

    def expire(self) -> None:
        now, ends_at = self._state.now, self._ends_at
        if ends_at is None:
            return
        if self._notice_at is not None and self._notice_at <= now < ends_at:
            self._notice_at = None
            in_ms = round((ends_at - now) * 1000)
            self._out.emit(SessionExpiring(in_ms=in_ms, reason="max_duration"))
        elif ends_at <= now:
            self._closing.close("max_duration")
