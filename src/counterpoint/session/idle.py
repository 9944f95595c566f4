"""Silence after an answer that lasts too long.

Owns: ``turn_detection.idle_timeout_ms``: since when nobody speaks, and when that is answered.
Does not own: the turn that follows (``turns``), how far playback is (``playback``).
Here because: the silence begins where the client stops hearing the answer, which is no event of its own.
"""

from __future__ import annotations

from counterpoint.protocol.turn_detection import ServerVad

from .input import InputLine
from .playback import PlaybackLedger
from .response import RunningResponse
from .responses import Responses
from .state import RunState
from .turns import Turns


class Idle:
    def __init__(
        self,
        state: RunState,
        ledger: PlaybackLedger,
        input: InputLine,
        turns: Turns,
        responses: Responses,
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._input = input
        self._turns = turns
        self._responses = responses
        #: The answer whose silence is measured; only an answer starts the clock.
        self._after: RunningResponse | None = None
        self._quiet_since: float | None = None

    def watch(self) -> None:
        """After every step: follow the end of the newest answer; speech and new answers stop the clock."""
        if self._input.is_spoken or self._responses.active is not None:
            self._quiet_since = None
            return
        ends_at = self._playback_end()
        if ends_at is not None:
            self._quiet_since = ends_at
        elif self._after is not self._responses.newest:
            self._quiet_since = self._state.now
        self._after = self._responses.newest

    def resume_clock(self) -> None:
        """A client that was away was not silent."""
        if self._quiet_since is not None:
            self._quiet_since = max(self._quiet_since, self._state.now)

    def deadline(self) -> float | None:
        timeout_ms = self._timeout_ms()
        if timeout_ms is None or self._quiet_since is None or not self._state.attached:
            return None
        return self._quiet_since + timeout_ms / 1000

    def expire(self) -> None:
        deadline, timeout_ms = self.deadline(), self._timeout_ms()
        if deadline is None or timeout_ms is None or deadline > self._state.now:
            return
        self._quiet_since = None
        end_ms = self._input.clock_ms
        self._turns.time_out(max(0, end_ms - timeout_ms), end_ms)

    def _timeout_ms(self) -> int | None:
        detection = self._state.config.audio.input.turn_detection
        if not isinstance(detection, ServerVad) or not self._turns.answers_speech():
            return None
        return detection.idle_timeout_ms

    def _playback_end(self) -> float | None:
        """When the client will have heard what it was sent of the newest answer, if it has not yet."""
        now, newest = self._state.now, self._responses.newest
        if newest is None or not self._ledger.is_playing(now):
            return None
        positions = self._ledger.positions(newest.id, now)
        return now + (positions.sent_ms - positions.played_ms) / 1000
