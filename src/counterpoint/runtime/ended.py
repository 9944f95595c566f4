"""Sessions that are over, remembered for a while.

Owns: ids and token digests of ended sessions (wire contract, section 2: 600 s, at most 10,000).
Does not own: anything else of them; it is gone.
Here because: a client that comes back late deserves ``session_resume_expired``, if its token was right.
"""

from __future__ import annotations

from typing import NamedTuple

from counterpoint.delivery.credential import ResumeCredential

KEEP_S = 600.0
KEEP_MOST = 10_000


class _Ended(NamedTuple):
    credential: ResumeCredential
    principal: str
    forget_at: float


class EndedSessions:
    """Insertion order is expiry order, so the oldest are always first."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Ended] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def remember(self, session_id: str, credential: ResumeCredential, principal: str, now: float) -> None:
        self.prune(now)
        self._sessions[session_id] = _Ended(credential, principal, now + KEEP_S)
        if len(self._sessions) > KEEP_MOST:
            del self._sessions[next(iter(self._sessions))]

    def knows(self, session_id: str, token: str, principal: str, now: float) -> bool:
        """Whether this session ended lately and the token was its own."""
        self.prune(now)
        ended = self._sessions.get(session_id)
        return ended is not None and ended.principal == principal and ended.credential.verify(token)

    def prune(self, now: float) -> None:
        while self._sessions:
            oldest = next(iter(self._sessions))
            if self._sessions[oldest].forget_at > now:
                return
            del self._sessions[oldest]
