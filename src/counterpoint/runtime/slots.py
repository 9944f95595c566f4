"""How many sessions there are, and whether one more may come.

Owns: counting admitting, open and closing sessions against ``limits.max_sessions``; whether the steps of a
native model leave time for another.
Does not own: how a session is opened or cleaned up (``runtime.manager``).
Here because: a slot is taken before anything is awaited and given back after the model side really let go;
a counter that is not tied to an id is wrong after the first race.
"""

from __future__ import annotations

from typing import Final

from counterpoint.errors import AdmissionRefused
from counterpoint.plugins.contract import Capabilities, PluginLoad

#: A model whose steps take a larger part of their time has none left for one more session.
_MOST_OF_A_STEP: Final = 0.7

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


def check_step_time(load: PluginLoad, capabilities: Capabilities) -> None:
    """Raises ``AdmissionRefused`` where a native model is almost too slow for the sessions that it has."""
    if load.p95_step_ms is None or not capabilities.step_samples:
        return
    period_ms = capabilities.step_samples * 1000 / capabilities.input_rate
    if load.p95_step_ms > _MOST_OF_A_STEP * period_ms:
        message = f"a step takes {load.p95_step_ms:.0f} ms of {period_ms:.0f} ms"
        raise AdmissionRefused(message, RETRY_AFTER_MS)
