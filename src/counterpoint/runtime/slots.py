"""How many sessions there are, and whether one more may come.

Owns: counting admitting, open and closing sessions against ``limits.max_sessions``.
Does not own: how a session is opened or cleaned up (``runtime.manager``).
Here because: a slot is taken before anything is awaited and given back after the model side really let go;
a counter that is not tied to an id is wrong after the first race.
"""

from __future__ import annotations

from counterpoint.errors import AdmissionRefused

#: What a refused client is told to wait: about the time in which a cleanup frees a slot.
RETRY_AFTER_MS = 1000


class Slots:
    """Slots by session id. ``max_sessions`` 0 admits without a limit."""

    def __init__(self, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self._taken: dict[str, None] = {}
        #: Those of ``_taken`` whose session is over and whose model side has not let go yet.
        self._closing: dict[str, None] = {}

    @property
    def used(self) -> int:
        return len(self._taken)

    @property
    def closing(self) -> int:
        return len(self._closing)

    def take(self, session_id: str) -> None:
        """Raises ``AdmissionRefused``; an id that holds a slot is refused without touching its slot."""
        if session_id in self._taken:
            raise AdmissionRefused("the session exists", RETRY_AFTER_MS)
        if self.max_sessions and len(self._taken) >= self.max_sessions:
            raise AdmissionRefused(f"all {self.max_sessions} sessions are taken", RETRY_AFTER_MS)
        self._taken[session_id] = None

    def close(self, session_id: str) -> None:
        """The session is over; its slot stays taken until it is freed."""
        if session_id in self._taken:
            self._closing[session_id] = None

    def free(self, session_id: str) -> None:
        self._taken.pop(session_id, None)
        self._closing.pop(session_id, None)
