"""The end of a run: no more faults, and everything must come to rest.

Owns: picking up every session once more, reading it to its end, closing it, and what must be true then.
Does not own: delivering (``simulation``), the checks after every step (``invariants``).
Here because: a session that cannot be picked up, an answer that never ends and a slot that never comes back
show only when the faults are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.live import LiveSession
from counterpoint.runtime.manager import SessionManager

from . import vocabulary
from .invariants.violation import Violation
from .simulated_client import LOCKED_OUT, SimulatedClient

#: Longer than any answer, with its timeout.
_QUIET_S = 40.0

_PUMP_S = 0.2

#: A resume may lose the lease to one whose connection is gone already; then it is tried again. All attempts
#: together are shorter than the shortest grace.
_ATTEMPTS = 5
_PAUSE_S = 0.3


class Stage(Protocol):
    """What runs a simulation, as its end needs it."""

    @property
    def clients(self) -> Sequence[SimulatedClient | None]: ...

    @property
    def manager(self) -> SessionManager: ...

    async def pump(self) -> None:
        """Deliver everything, both ways, until nothing is left to deliver."""
        ...

    async def settle(self) -> None:
        """Let the loop run until nothing is ready."""
        ...


class Ending:
    """``drains``: the server is drained; otherwise the clients close their sessions."""

    def __init__(self, stage: Stage, bounds: Bounds, *, drains: bool) -> None:
        self._stage = stage
        self._bounds = bounds
        self._drains = drains
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Returns when no session is left. Raises ``Violation``."""
        await self._pick_up()
        await self._until(self._all_quiet, _QUIET_S)
        for client, live in self._there():
            _check_complete(client, live)
        self._close()
        lease, limits = self._bounds.lease, self._bounds.limits
        await self._until(lambda: not self._stage.manager.sessions, 2 * limits.cleanup_timeout_s)
        await self._stage.pump()
        await asyncio.sleep(lease.disconnect_grace_s + lease.reaper_interval_s + 4 * limits.cleanup_timeout_s)
        await self._stage.settle()

    async def stop(self) -> None:
        """Stop the server; no task may be left."""
        await self._stage.manager.close()
        await self._stage.settle()
        left = sorted(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())
        if left:
            raise Violation("CASE-INV-9", f"tasks are left: {left}")

    # ------------------------------------------------------------------ parts

    def _there(self) -> list[tuple[SimulatedClient, LiveSession]]:
        """The clients whose session lives, and who know of it."""
        found = []
        for client in self._stage.clients:
            live = None if client is None else self._stage.manager.find(client.session_id or "")
            if client is not None and live is not None and live.machine.is_open:
                found.append((client, live))
        return found

    async def _pick_up(self) -> None:
        """Every client loses its connections and resumes, with each token that may be good."""
        for client, _ in self._there():
            for line in client.lines:
                line.link.vanished = False
                line.link.reset()
        await self._stage.pump()
        for _ in range(_ATTEMPTS):
            for client, _ in self._there():
                if client.line is None and client.tokens:
                    client.resume("full")
            await self._stage.pump()
            await asyncio.sleep(_PAUSE_S)

    def _all_quiet(self) -> bool:
        return not any(client.witness.responses.running or client.unused for client, _ in self._there())

    def _close(self) -> None:
        if self._drains:
            self._stage.manager.stop_admitting()
            self._stage.manager.announce_drain(0)
            self._stage.manager.end_all("drained")
            return
        for client, _ in self._there():
            client.finish()

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = self._loop.time() + seconds
        while not condition() and self._loop.time() < deadline:
            await asyncio.sleep(_PUMP_S)
            for client, _ in self._there():
                client.say_again()
                vocabulary.hear_out(client)
            await self._stage.pump()


def _check_complete(client: SimulatedClient, live: LiveSession) -> None:
    """A client that read everything knows what the server knows."""
    witness = client.witness
    if client.line is None:
        raise Violation(LOCKED_OUT, f"{client.name} cannot resume {live.id}")
    listed = [item.id for item in live.machine.snapshot(0)[0].conversation.items]
    if listed != witness.items.order:
        raise Violation("CASE-INV-10", f"the server has {listed}, the client {witness.items.order}")
    if witness.torn:
        return
    if witness.responses.running:
        raise Violation("CASE-INV-2", f"{witness.responses.running} never ended")
    missing = client.outcomes.missing(live.last_client_event_seq)
    if missing is not None:
        raise Violation("CASE-INV-7", f"{missing.type} {missing.event_id} led to nothing")
