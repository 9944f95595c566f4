"""The real server without its sockets: manager, sessions, delivery, the scripted model, links in memory.

Owns: building it from a seed, accepting connections, the lease whose swap takes time.
Does not own: what runs on it (``simulation``), the checks (``invariants``).
Here because: entropy and limits come from the seed, so that everything that it does can be done again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.protocol.commands import ResumeSession
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Dialect, LiveSession
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.runtime.metrics import Metrics

from .connection import Connection
from .lease_port import SlowLease, SwapPlan
from .link import MemoryLink
from .setting import Setting


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What the request for a connection says, in its query."""

    autostart: bool = False
    duplex: bool = False
    resume: ResumeSession | None = None


class SimulatedServer:
    """Made on a running loop."""

    def __init__(self, seed: int, setting: Setting) -> None:
        self._loop = asyncio.get_running_loop()
        self._setting = setting
        entropy = random.Random(f"{seed}/entropy")
        self._ids = IdSource(entropy.randbytes(6).hex())
        #: Swaps of leases that are under way, by session.
        self.swaps: dict[str, int] = {}
        #: How the swap goes that is asked for now.
        self._swap = SwapPlan()
        self.plugin = ScriptedPlugin({})
        self.manager = SessionManager(
            self.plugin,
            setting.bounds,
            entropy=entropy.randbytes,
            metrics=Metrics(),
            lease_port=self._lease_port if setting.slow_lease else None,
        )
        self._connections: dict[MemoryLink, tuple[Connection, asyncio.Task[None]]] = {}

    def accept(
        self,
        upgrade: Upgrade,
        swap: SwapPlan,
        stamp: Callable[[], int],
        wrote: Callable[[bytes, int], object],
    ) -> MemoryLink:
        """A new connection; ``swap`` is how the lease's swap goes if it resumes."""
        transport = self._setting.bounds.transport
        link = MemoryLink(
            stamp=stamp,
            wrote=wrote,
            path_bytes=self._setting.path_bytes,
            close_timeout_s=transport.close_timeout_s,
        )
        connection = Connection(self.manager, link, transport, self._ids, lambda: self._plan(swap))
        request = OpenRequest(Dialect(extended=upgrade.duplex), duplex=upgrade.duplex)
        run = connection.run(request, autostart=upgrade.autostart, resume=upgrade.resume)
        task = self._loop.create_task(run, name="connection")
        self._connections[link] = connection, task
        task.add_done_callback(lambda _: self._connections.pop(link))
        return link

    def cancel(self, link: MemoryLink) -> bool:
        """Cancel the task of a connection, wherever it is; False if it is over."""
        served = self._connections.get(link)
        return served is not None and served[1].cancel()

    def is_stale(self, link: MemoryLink) -> bool:
        """What arrives here now is listened to by nobody: the connection was replaced, or is gone."""
        served = self._connections.get(link)
        if served is None:
            return True
        attachment = served[0].attachment
        return attachment is not None and attachment.held.generation < attachment.live.attachments.generation

    def is_well(self, link: MemoryLink, live: LiveSession) -> bool:
        """It is the newest connection of the session, is read, and takes what is sent."""
        served = self._connections.get(link)
        if served is None or served[0].attachment is None or link.closing or link.buffered():
            return False
        return served[0].attachment.held.generation == live.attachments.generation

    # ------------------------------------------------------------------ the lease

    def _plan(self, swap: SwapPlan) -> None:
        self._swap = swap

    def _lease_port(self, live: LiveSession) -> SlowLease:
        return SlowLease(live, self._swap, self.swaps)
