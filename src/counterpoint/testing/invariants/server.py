"""What must be true of the server after every step, looked at from inside.

Owns: one owner, generations that only move forward, no lease without an owner beyond its grace, slots that
match sessions, bounds on what is held.
Does not own: what clients are shown (the other checks).
Here because: a leak or a lost owner shows at the client much later, or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from counterpoint.plugins.contract import ModelPlugin
from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.live import LiveSession
from counterpoint.runtime.manager import SessionManager

from .violation import Violation

FORWARD = "generations only move forward"
OWNER = "one owner, and the lease has it"
GRACE = "no session without a connection outlives its grace"
CLOSING = "a session that ends is gone in bounded time"
SLOTS = "slots are the sessions that are live or not cleaned up"
BOUNDED = "what is held is bounded and never negative"
EMPTY = "CASE-INV-9"

#: What the loop may need beyond the exact time.
_SLACK_S = 0.05


@dataclass(slots=True)
class _Watched:
    generation: int = 0
    lease: int = 0
    number: int = 0
    epoch: int = 0
    detached_at: float | None = None
    closing_at: float | None = None


class ServerChecks:
    """``swapping``: swaps of leases that are under way, by session."""

    def __init__(
        self, manager: SessionManager, plugin: ModelPlugin, bounds: Bounds, swapping: Mapping[str, int]
    ) -> None:
        self._manager = manager
        self._plugin = plugin
        self._bounds = bounds
        self._swapping = swapping
        self._watched: dict[str, _Watched] = {}

    def after_step(self, now: float, *, settled: bool, session_id: str | None = None) -> None:
        """``settled``: nothing is ready to run, so nothing is half done.

        ``session_id``: that session alone was touched; None: any may have been.
        """
        if session_id is None:
            for live in self._manager.sessions:
                self._check(live, now, settled)
        elif (touched := self._manager.find(session_id)) is not None:
            self._check(touched, now, settled)
        if settled:
            self._check_slots()

    def at_the_end(self, *, wedged: int) -> None:
        """Every session ended; at most ``wedged`` of them have a model side that never lets go."""
        slots = self._manager.slots
        left = [live.id for live in self._manager.sessions]
        if left or slots.used > wedged:
            raise Violation(EMPTY, f"sessions {left} are left, {slots.used} slots are taken, {wedged} wedged")
        if self._manager.log_bytes:
            raise Violation(EMPTY, f"{self._manager.log_bytes} bytes of event logs are left")

    # ------------------------------------------------------------------ one session

    def _check(self, live: LiveSession, now: float, settled: bool) -> None:
        watched = self._watched.get(live.id)
        if watched is None:
            watched = self._watched[live.id] = _Watched()
        self._check_forward(live, watched)
        self._check_bounds(live)
        if settled:
            self._check_owner(live)
            self._check_time(live, watched, now)

    def _check_forward(self, live: LiveSession, watched: _Watched) -> None:
        generation, lease = live.attachments.generation, live.lease.generation
        if generation > watched.generation:
            watched.detached_at = None  # somebody was here, however briefly
        number, epoch = live.last_client_event_seq, live.machine.epoch
        if (
            generation < watched.generation
            or lease < watched.lease
            or number < watched.number
            or epoch < watched.epoch
        ):
            raise Violation(FORWARD, f"{live.id}: {watched}, now {generation}, {lease}, {number}, {epoch}")
        watched.generation, watched.lease = generation, lease
        watched.number, watched.epoch = number, epoch

    def _check_bounds(self, live: LiveSession) -> None:
        input_bytes, limits = live.machine.held_input_bytes, self._bounds.limits
        journal_bytes, most = live.log.journal_bytes, self._bounds.journal.max_bytes
        if not 0 <= input_bytes <= limits.max_pending_input_bytes:
            raise Violation(BOUNDED, f"{live.id} holds {input_bytes} bytes of input")
        if live.log.pending_bytes < 0 or not 0 <= journal_bytes <= most:
            raise Violation(BOUNDED, f"{live.id} retains {journal_bytes} bytes of output")

    def _check_owner(self, live: LiveSession) -> None:
        owner, lease = live.attachments.attached, live.lease
        if (owner is not None) != live.attached:
            raise Violation(
                OWNER, f"{live.id}: attached is {owner}, a connection is current: {live.attached}"
            )
        if self._swapping.get(live.id) or not live.machine.is_open:
            return
        if (owner is not None) != lease.attached or (owner is not None and owner.lease != lease.generation):
            state = "held" if lease.attached else "in its grace"
            raise Violation(OWNER, f"{live.id}: {owner} is attached, lease {lease.generation} is {state}")

    def _check_time(self, live: LiveSession, watched: _Watched, now: float) -> None:
        lease, limits = self._bounds.lease, self._bounds.limits
        if not live.machine.is_open:
            watched.closing_at = now if watched.closing_at is None else watched.closing_at
            if now > watched.closing_at + limits.cleanup_timeout_s + _SLACK_S:
                raise Violation(CLOSING, f"{live.id} is closing since {watched.closing_at:.3f}")
        elif live.attached or self._swapping.get(live.id):
            watched.detached_at = None
        elif watched.detached_at is None:
            watched.detached_at = now
        elif now > watched.detached_at + lease.disconnect_grace_s + lease.reaper_interval_s + _SLACK_S:
            raise Violation(GRACE, f"{live.id} is without a connection since {watched.detached_at:.3f}")

    # ------------------------------------------------------------------ all sessions

    def _check_slots(self) -> None:
        slots, live = self._manager.slots, len(self._manager.sessions)
        if slots.used != live + slots.closing:
            raise Violation(SLOTS, f"{slots.used} taken: {live} live, {slots.closing} closing")
        held = self._plugin.load().sessions
        if held > slots.used:
            raise Violation(SLOTS, f"the model serves {held} sessions, {slots.used} slots are taken")
