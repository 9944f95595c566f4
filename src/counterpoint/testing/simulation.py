"""A server and its clients in one event loop without time of its own, driven by a list of operations.

Owns: building them, carrying out operations one by one, checking after each, the end of a run.
Does not own: which operations (``operations``), the checks (``invariants``, ``witness``), shortening a
failure (``shrink``).
Here because: everything that can go wrong between a server and its clients is a matter of order, and here
the order is data.

The server is the real one from ``runtime`` downwards. A step is one input delivered: a frame to the server, a
frame to a client, a stretch of time to the clock.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.protocol.commands import ReplayPolicy, ResumeSession
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Dialect, LiveSession
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.runtime.metrics import Metrics

from . import vocabulary
from .connection import Connection
from .invariants.server import ServerChecks
from .invariants.violation import Violation
from .lease_port import SlowLease, SwapPlan
from .link import MemoryLink
from .operations import SETTLE, Dice, Kind, Operation
from .setting import Setting, draw_swap
from .simulated_client import LOCKED_OUT, Line, SimulatedClient
from .virtual_time import VirtualLoop

#: Turns of the loop after which something that never rests is left to itself.
MOST_TURNS = 2000


class Simulation:
    """Made on a running ``VirtualLoop``."""

    def __init__(self, seed: int, clients: int, setting: Setting) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self._bounds = setting.bounds
        self._drains = setting.drains
        entropy = random.Random(f"{seed}/entropy")
        self._ids = IdSource(entropy.randbytes(6).hex())
        self._swaps: dict[str, int] = {}
        #: How the swap goes that the next connection, and the one that resumes now, asks for.
        self._swap_of_next = self._swap = SwapPlan()
        plugin = ScriptedPlugin({})
        self._manager = SessionManager(
            plugin,
            setting.bounds,
            entropy=entropy.randbytes,
            metrics=Metrics(),
            lease_port=self._lease_port if setting.slow_lease else None,
        )
        self._checks = ServerChecks(self._manager, plugin, setting.bounds, self._swaps)
        self._connections: dict[MemoryLink, tuple[Connection, asyncio.Task[None]]] = {}
        self._clients: list[SimulatedClient | None] = [None] * clients
        self._digest = hashlib.blake2b(digest_size=16)
        #: Sessions whose model side never lets go.
        self._wedged = 0
        self.steps = 0
        self.counts: Counter[str] = Counter()

    @property
    def digest(self) -> str:
        """Of every frame that the server wrote, in order."""
        return self._digest.hexdigest()

    # ------------------------------------------------------------------ the run

    async def run(self, operations: Iterable[Operation], steps: int, done: list[Operation]) -> None:
        """Carry out ``operations`` until ``steps`` steps were made, noting each in ``done`` before it.

        Raises ``Violation``.
        """
        for operation in operations:
            if self.steps >= steps:
                break
            done.append(operation)
            before = self.steps
            self._perform(operation)
            if self.steps != before or not self._loop.idle:
                await self._let_run(operation)
        await self._finish()

    async def _let_run(self, operation: Operation) -> None:
        client = self._clients[operation.client]
        touched = None if client is None else client.session_id
        if operation.kind is Kind.WAIT:
            touched = None
            await asyncio.sleep(operation.count / 1000)
        elif operation.kind is Kind.JUMP:
            touched = None
            await asyncio.sleep(0)  # the loop looks at the clock again
        await self._turn(MOST_TURNS if operation.turns == SETTLE else operation.turns, touched)

    async def _turn(self, turns: int, touched: str | None = None) -> None:
        """Give the loop so many turns, or fewer if nothing is ready any more; then check what was touched."""
        while turns and not self._loop.idle:
            turns -= 1
            await asyncio.sleep(0)
        self._checks.after_step(self._loop.time(), settled=self._loop.idle, session_id=touched)

    # ------------------------------------------------------------------ operations

    def _perform(self, operation: Operation) -> None:
        match operation.kind:
            case Kind.WAIT:
                self.steps += 1
            case Kind.JUMP:
                self.steps += 1
                self.counts["clock jump"] += 1
                self._loop.advance(operation.count / 1000)
            case Kind.OPEN:
                self._open(operation)
            case _:
                client = self._clients[operation.client]
                if client is not None:
                    self._perform_for(client, operation)

    def _perform_for(self, client: SimulatedClient, operation: Operation) -> None:
        line = client.lines[-1 - operation.line] if operation.line < len(client.lines) else None
        dice = Dice(operation.choice)
        match operation.kind:
            case Kind.SAY:
                self.counts[f"said {vocabulary.say(client, dice)}"] += 1
            case Kind.SAY_AGAIN:
                client.say_again()
            case Kind.RESUME:
                self._resume(client, dice)
            case Kind.CLOSE:
                live = self._manager.find(client.session_id or "")
                if live is not None:
                    live.close("admin")
            case _ if line is not None:
                self._perform_on(client, line, operation, dice)
            case _:
                pass

    def _perform_on(self, client: SimulatedClient, line: Line, operation: Operation, dice: Dice) -> None:
        match operation.kind:
            case Kind.ARRIVE:
                self._arrive(client, line, operation.count)
            case Kind.READ:
                self._read(client, line, operation.count)
            case Kind.SAY_STALE if line.place is not None and line is not client.line:
                self.counts["stale command"] += 1
                vocabulary.say(client, dice, line=line)
            case Kind.END:
                self._end(line, dice)
            case Kind.CANCEL:
                self.counts["cancelled task"] += 1
                if line.link in self._connections:
                    self._connections[line.link][1].cancel()
            case _:
                pass

    def _open(self, operation: Operation) -> None:
        client = self._clients[operation.client]
        dice = Dice(operation.choice)
        if client is not None:
            gives_up = client.lines[-1].link.lost and dice.roll(12) == 0
            if client.ended is None and client.session_id is not None and not gives_up:
                return
            for line in client.lines:
                line.link.reset()
        traits = vocabulary.traits(dice)
        self._wedged += vocabulary.hangs(traits)
        client = SimulatedClient(f"c{operation.client}", traits, self._connect)
        self._clients[operation.client] = client
        client.open(vocabulary.first_update(traits), autostart=dice.roll(2) == 0)
        self.counts["opened"] += 1

    def _resume(self, client: SimulatedClient, dice: Dice) -> None:
        if client.session_id is None or not client.tokens or client.ended is not None:
            return
        back = (0, 0, 0, 3, 20, 200)[dice.roll(6)]
        policy = list(ReplayPolicy)[dice.roll(3)].value if dice.roll(2) else "full"
        self._swap_of_next = draw_swap(dice)
        self.counts["resume"] += 1
        if client.line is not None:
            self.counts["takeover"] += 1
        client.resume(policy, back=back)

    def _end(self, line: Line, dice: Dice) -> None:
        if line.link.lost or line.link.vanished:
            return
        how = ("reset", "vanish", "reset", "vanish", 1001, 1000, 1005)[dice.roll(7)]
        self.counts[f"end {how}"] += 1
        match how:
            case "reset":
                line.link.reset()
            case "vanish":
                line.link.vanish()
            case code:
                line.link.send_close(int(code))

    # ------------------------------------------------------------------ deliveries

    def _arrive(self, client: SimulatedClient, line: Line, count: int) -> None:
        for _ in range(count):
            stale = self._is_stale(line)
            frame = line.link.arrive()
            if frame is None:
                return
            self.steps += 1
            if stale and isinstance(frame, str):
                event_id = vocabulary.is_void(frame)
                if event_id is not None:
                    client.outcomes.void(event_id)

    def _is_stale(self, line: Line) -> bool:
        if line.link not in self._connections:
            return True
        attachment = self._connections[line.link][0].attachment
        return attachment is not None and attachment.held.generation < attachment.live.attachments.generation

    def _read(self, client: SimulatedClient, line: Line, count: int) -> None:
        for _ in range(count):
            if not client.read(line):
                return
            self.steps += 1
        if not client.tokens and client.session_id is not None:
            live = self._manager.find(client.session_id)
            if live is not None and live.machine.is_open:
                raise Violation(LOCKED_OUT, f"{client.name} has no token of {live.id} that is good")

    # ------------------------------------------------------------------ the server

    def _connect(self, query: dict[str, Any]) -> MemoryLink:
        transport = self._bounds.transport
        link = MemoryLink(
            stamp=lambda: self.steps, wrote=self._digest.update, close_timeout_s=transport.close_timeout_s
        )
        swap, self._swap_of_next = self._swap_of_next, SwapPlan()
        connection = Connection(self._manager, link, transport, self._ids, lambda: self._use(swap))
        extended = query.get("duplex", False)
        resume = None
        if "resume" in query:
            resume = ResumeSession(
                session_id=query["resume"],
                resume_token=query["resume_token"],
                last_received_server_event_seq=query["after"],
            )
        run = connection.run(
            OpenRequest(Dialect(extended), duplex=extended),
            autostart=query.get("autostart", False),
            resume=resume,
        )
        task = self._loop.create_task(run)
        self._connections[link] = connection, task
        task.add_done_callback(lambda _: self._connections.pop(link))
        return link

    def _use(self, swap: SwapPlan) -> None:
        self._swap = swap

    def _lease_port(self, live: LiveSession) -> SlowLease:
        return SlowLease(live, self._swap, self._swaps)

    # ------------------------------------------------------------------ the end

    async def _finish(self) -> None:
        """The faults are over: every session is picked up once more, read to its end and closed."""
        for client in self._there:
            for line in client.lines:
                line.link.vanished = False
                line.link.reset()
        await self._pump()
        await self._pick_up()
        await self._until(self._all_quiet, 40.0)
        for client in self._there:
            self._check_complete(client)
        if self._drains:
            self._manager.stop_admitting()
            self._manager.announce_drain(0)
            self._manager.end_all("drained")
        else:
            for client in self._there:
                client.finish()
        lease, limits = self._bounds.lease, self._bounds.limits
        await self._until(lambda: not self._manager.sessions, 2 * limits.cleanup_timeout_s)
        await self._pump()
        await asyncio.sleep(lease.disconnect_grace_s + lease.reaper_interval_s + 4 * limits.cleanup_timeout_s)
        await self._settle()
        self._checks.at_the_end(wedged=self._wedged)
        await self._manager.close()
        await self._settle()
        tasks = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if tasks:
            raise Violation("CASE-INV-9", f"tasks are left: {sorted(tasks)}")

    @property
    def _there(self) -> list[SimulatedClient]:
        """The clients whose session lives."""
        return [
            client
            for client in self._clients
            if client is not None
            and client.session_id is not None
            and client.tokens
            and (live := self._manager.find(client.session_id)) is not None
            and live.machine.is_open
        ]

    async def _pick_up(self) -> None:
        """Resume with each token that may be good."""
        for _ in range(3):
            for client in self._there:
                if client.line is None:
                    client.resume("full")
            await self._pump()

    def _all_quiet(self) -> bool:
        return not any(
            client.witness.responses.running or client.unused
            for client in self._there
            if client.line is not None
        )

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = self._loop.time() + seconds
        while not condition() and self._loop.time() < deadline:
            await asyncio.sleep(0.2)
            for client in self._there:
                client.say_again()
                vocabulary.hear_out(client)
            await self._pump()

    async def _pump(self) -> None:
        """Deliver everything, both ways, until nothing is left to deliver."""
        moved = -1
        while moved != self.steps:
            moved = self.steps
            for client in self._clients:
                for line in client.lines if client is not None else ():
                    assert client is not None
                    self._arrive(client, line, 1000)
                    await self._settle()
                    self._read(client, line, 1000)
            await self._settle()

    async def _settle(self) -> None:
        await self._turn(MOST_TURNS)

    def _check_complete(self, client: SimulatedClient) -> None:
        """A client that read everything knows what the server knows."""
        live = self._manager.find(client.session_id or "")
        if live is None or client.line is None or not live.machine.is_open:
            return
        witness = client.witness
        running = witness.responses.running
        if running and not witness.torn:
            raise Violation("CASE-INV-2", f"{running} never ended")
        listed = [item.id for item in live.machine.snapshot(0)[0].conversation.items]
        if listed != witness.items.order:
            raise Violation("CASE-INV-10", f"the server has {listed}, the client {witness.items.order}")
        missing = client.outcomes.missing(live.last_client_event_seq)
        if missing is not None and not witness.torn:
            raise Violation("CASE-INV-7", f"{missing.type} {missing.event_id} led to nothing")
