"""A session of a stepped model: ``ModelSession`` over one slot.

Owns: what each method of a session means to a model that only steps.
Does not own: the slot and its steps (``slots``, ``slot_lease``), when a step is pushed (``session.native``).
Here because: the session server drives every model in the same way, and a stepped one has no turns to start.
"""

from __future__ import annotations

from counterpoint.errors import PluginError
from counterpoint.protocol.config import SessionConfig

from .contract import Fence, Outlet, ResponseRequest, StepInput, StepKind
from .slot_lease import SlotLease
from .slots import SlotScheduler


class SlotSession:
    """Output is fenced by the session's epoch, and by an answer's turn where the client asked for it."""

    def __init__(self, session_id: str, scheduler: SlotScheduler) -> None:
        self._session_id = session_id
        self._scheduler = scheduler
        self._held: SlotLease | None = None

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        # Held before the first await: ``close`` finds it, wherever this stops.
        self._held = self._scheduler.reserve(self._session_id, outlet)
        await self._scheduler.prepare(self._held, config)

    async def push(self, step: StepInput) -> None:
        """Never refused: what is too much is dropped, and its receipt says so."""
        if step.kind is StepKind.PREFILL:
            await self._scheduler.prefill(self._lease, step.text)
            self._lease.has_read(step)
        else:
            self._lease.push(step)

    async def prepare(self, request: ResponseRequest) -> None:
        """A model that decides for itself needs no guess."""

    async def respond(self, request: ResponseRequest) -> None:
        """The next step carries the newest text of the user, else the instructions."""
        self._lease.ask(request, _text_of(request))

    async def cancel(self, old: Fence, new: Fence) -> None:
        if self._held is not None:
            self._held.interrupt(new.epoch)

    async def abort(self, fence: Fence) -> None:
        """A stream has one answer at a time, so this is it."""
        if self._held is not None:
            self._held.hush()

    async def forget(self, input: int) -> None:
        """What was heard was heard."""

    async def truncate(self, fence: Fence, heard_chars: int, heard_samples: int) -> None:
        """The model heard the interruption itself; it is not told in samples what was lost by it."""

    async def update(self, config: SessionConfig) -> None:
        await self._scheduler.update(self._lease, config)

    async def close(self) -> None:
        if self._held is not None:
            await self._scheduler.release(self._held)

    @property
    def _lease(self) -> SlotLease:
        if self._held is None:
            raise PluginError("the session is not open")
        return self._held


def _text_of(request: ResponseRequest) -> str:
    said = [item.text for item in request.history if item.role == "user" and item.text]
    return said[-1] if said else request.instructions
