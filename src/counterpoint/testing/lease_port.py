"""A lease whose swap takes its time, as one in a store does.

Owns: ``SlowLease``: delays before and after the swap, and a store that is away.
Does not own: the lease (``runtime.lease``), who asks (``delivery.attachment``).
Here because: only where the swap suspends do claims and orphaned generations exist, and they must be tried.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from counterpoint.runtime.live import LiveSession


@dataclass(frozen=True, slots=True)
class SwapPlan:
    """How one swap goes: seconds until it takes effect, seconds until the answer is there."""

    before_s: float = 0.0
    after_s: float = 0.0
    #: The store is away: the swap has no effect and raises ``OSError``.
    fails: bool = False


class SlowLease:
    """``delivery.attachment.LeasePort`` over the session's own lease. ``done`` is called when it is over."""

    def __init__(self, live: LiveSession, plan: SwapPlan, pending: dict[str, int]) -> None:
        self._live = live
        self._plan = plan
        #: Swaps under way, by session: while there are any, a lease may have no owner.
        self._pending = pending

    async def resume(self, expected: int) -> int:
        loop = asyncio.get_running_loop()
        session_id = self._live.id
        self._pending[session_id] = self._pending.get(session_id, 0) + 1
        try:
            await asyncio.sleep(self._plan.before_s)
            if self._plan.fails:
                raise OSError("the store is away")
            generation = self._live.lease.resume(expected, loop.time())
            await asyncio.sleep(self._plan.after_s)
            return generation
        finally:
            self._pending[session_id] -= 1
