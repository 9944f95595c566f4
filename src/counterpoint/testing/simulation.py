"""A server and its clients in one event loop without time of its own, driven by a list of operations.

Owns: carrying out operations one by one, checking after each.
Does not own: which operations (``operations``), the server (``simulated_server``), the checks
(``invariants``, ``witness``), the end of a run (``ending``), shortening a failure (``shrink``).
Here because: everything that can go wrong between a server and its clients is a matter of order, and here
the order is data.

The server is the real one from ``runtime`` downwards. A step is one input delivered: a frame to the server, a
frame to a client, a stretch of time to the clock.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from counterpoint.protocol.commands import ReplayPolicy
from counterpoint.runtime.live import LiveSession

from . import vocabulary
from .ending import Ending
from .invariants.server import OWNER, ServerChecks
from .invariants.violation import Violation
from .lease_port import SwapPlan
from .link import MemoryLink
from .operations import SETTLE, Dice, Kind, Operation
from .setting import Setting, draw_swap
from .simulated_client import LOCKED_OUT, Line, SimulatedClient
from .simulated_server import SimulatedServer, Upgrade
from .virtual_time import VirtualLoop
from .witness import Witness

UNHANDLED = "CASE-INV-9, no unhandled error"

#: Turns of the loop after which something that never rests is left to itself.
MOST_TURNS = 2000


#: Slots that the model side keeps for ever: enough to be counted, too few to end the run.
MOST_WEDGED = 2

#: Characters of a frame that a trace shows.
MOST_TOLD = 400

_EVERYTHING = 1 << 30

#: Operations between two reports of progress.
REPORTED = 1000


class Simulation:
    """Made on a running ``VirtualLoop``. ``unhandled`` grows by a line when an error is seen by nobody."""

    def __init__(self, seed: int, clients: int, setting: Setting, unhandled: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self._unhandled = unhandled
        self._bounds = setting.bounds
        self._slow_lease = setting.slow_lease
        self._drains = setting.drains
        self._server = SimulatedServer(seed, setting)
        self.manager = self._server.manager
        self._checks = ServerChecks(self.manager, self._server.plugin, setting.bounds, self._server.swaps)
        self.clients: list[SimulatedClient | None] = [None] * clients
        #: How the swap of the lease goes that the next connection asks for.
        self._swap_of_next = SwapPlan()
        self._digest = hashlib.blake2b(digest_size=16)
        #: Sessions whose model side never lets go.
        self._wedged = 0
        self.steps = 0
        #: A line for every operation: what it came to.
        self.story: list[str] = []
        self._telling = True
        #: What happened that was meant to happen, and what was not, by kind.
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    @property
    def digest(self) -> str:
        """Of every frame that the server wrote, in order."""
        return self._digest.hexdigest()

    # ------------------------------------------------------------------ the run

    async def run(
        self,
        operations: Iterable[Operation],
        steps: int,
        done: list[Operation],
        progress: Callable[[int], object],
    ) -> None:
        """Carry out ``operations`` until ``steps`` steps were made, noting each in ``done`` before it.

        Raises ``Violation``.
        """
        for operation in operations:
            if self.steps >= steps:
                break
            done.append(operation)
            before = self.steps
            self.story.append("")
            self._perform(operation)
            if self.steps != before or not self._loop.idle:
                await self._let_run(operation)
            if not len(done) % REPORTED:
                progress(self.steps)
        self._telling = False
        ending = Ending(self, self._bounds, drains=self._drains)
        await ending.run()
        self._checks.at_the_end(wedged=self._wedged)
        await ending.stop()

    async def _let_run(self, operation: Operation) -> None:
        touched = [self.clients[operation.client]]
        if operation.kind is Kind.WAIT:
            touched = self.clients
            await asyncio.sleep(operation.amount / 1000)
        elif operation.kind is Kind.JUMP:
            touched = self.clients
            await asyncio.sleep(0)  # the loop looks at the clock again
        await self._turn(MOST_TURNS if operation.turns == SETTLE else operation.turns, touched)

    async def _turn(self, turns: int, touched: Sequence[SimulatedClient | None]) -> None:
        """Give the loop so many turns, or fewer if nothing is ready any more; then check what was touched."""
        while turns and not self._loop.idle:
            turns -= 1
            await asyncio.sleep(0)
        self._check(touched)

    def _check(self, touched: Sequence[SimulatedClient | None]) -> None:
        now, settled = self._loop.time(), self._loop.idle
        for client in touched:
            live = None if client is None else self.manager.find(client.session_id or "")
            if client is not None and live is not None:
                client.witness.fence.advance(live.machine.epoch, self.steps)
                if settled:
                    self._check_attached(client, live)
        if len(touched) == 1 and touched[0] is not None:
            self._checks.after_step(now, settled=settled, session_id=touched[0].session_id)
        else:
            self._checks.after_step(now, settled=settled)
        if self._unhandled:
            raise Violation(UNHANDLED, self._unhandled[0])

    def _check_attached(self, client: SimulatedClient, live: LiveSession) -> None:
        """The newest connection is attached as long as nothing is wrong with it."""
        if live.attached or not live.machine.is_open:
            return
        for line in client.lines:
            if self._server.is_well(line.link, live):
                raise Violation(OWNER, f"{live.id}: its newest connection is well, and nobody is attached")

    # ------------------------------------------------------------------ operations

    def _perform(self, operation: Operation) -> None:
        match operation.kind:
            case Kind.WAIT:
                self.steps += 1
            case Kind.JUMP:
                self.steps += 1
                self.faults["clock jump"] += 1
                self._loop.advance(operation.amount / 1000)
            case Kind.OPEN:
                self._open(operation)
            case _:
                client = self.clients[operation.client]
                if client is not None:
                    self._perform_for(client, operation)

    def _tell(self, what: str) -> None:
        """Add to what is told of the operation under way."""
        if self._telling:
            self.story[-1] += f" {what[:MOST_TOLD]}"

    def _perform_for(self, client: SimulatedClient, operation: Operation) -> None:
        line = client.lines[-1 - operation.line] if operation.line < len(client.lines) else None
        dice = Dice(operation.choice)
        match operation.kind:
            case Kind.SAY:
                vocabulary.say(client, dice)
                self._tell(client.said)
            case Kind.SAY_AGAIN:
                client.say_again()
            case Kind.RESUME:
                self._resume(client, dice)
            case Kind.CLOSE:
                live = self.manager.find(client.session_id or "")
                if live is not None:
                    live.close("admin")
            case _ if line is not None:
                self._perform_on(client, line, operation, dice)
            case _:
                pass

    def _perform_on(self, client: SimulatedClient, line: Line, operation: Operation, dice: Dice) -> None:
        match operation.kind:
            case Kind.ARRIVE:
                self._arrive(client, line, operation.amount)
            case Kind.READ:
                self._read(client, line, operation.amount)
            case Kind.SAY_STALE if line.place is not None and line is not client.line:
                self.faults["command on a replaced connection"] += 1
                vocabulary.say(client, dice, line=line)
                self._tell(client.said)
            case Kind.END:
                self._end(line, dice)
            case Kind.CANCEL:
                self.faults["task of a connection cancelled"] += self._server.cancel(line.link)
            case _:
                pass

    def _open(self, operation: Operation) -> None:
        client = self.clients[operation.client]
        dice = Dice(operation.choice)
        if client is not None:
            gives_up = client.lines[-1].link.lost and dice.roll(12) == 0
            if client.ended is None and client.session_id is not None and not gives_up:
                return
            for line in client.lines:
                line.link.reset()
        traits = vocabulary.traits(dice, may_hang=self._wedged < MOST_WEDGED)
        self._wedged += vocabulary.hangs(traits)
        client = SimulatedClient(f"c{operation.client}", traits, self._connect)
        self.clients[operation.client] = client
        client.open(vocabulary.first_update(traits), autostart=dice.roll(2) == 0)
        self._tell(client.said)
        self.counts["session"] += 1
        self.faults.update(vocabulary.faults_of(traits))

    def _resume(self, client: SimulatedClient, dice: Dice) -> None:
        if client.session_id is None or not client.tokens or client.ended is not None:
            return
        if client.line is not None and dice.roll(3):
            return
        back = (0, 0, 0, 3, 20, 200)[dice.roll(6)]
        policy = list(ReplayPolicy)[dice.roll(3)].value if dice.roll(2) else "full"
        self._swap_of_next = draw_swap(dice)
        self.counts["resume"] += 1
        self.faults["takeover"] += client.line is not None
        self.faults["state lost by a client"] += back > 0
        self.faults["lease store away"] += self._slow_lease and self._swap_of_next.fails
        client.resume(policy, back=back)
        self._tell(client.said)

    def _end(self, line: Line, dice: Dice) -> None:
        if line.link.lost or line.link.vanished:
            return
        how = ("reset", "half-open", "closed with 1001", "closed with 1000", "closed with 1005")[dice.roll(5)]
        self._tell(how)
        self.faults[f"connection {how}"] += 1
        self.faults["reply to a resume lost"] += line.resumes is not None and line.place is None
        match how:
            case "reset":
                line.link.reset()
            case "half-open":
                line.link.vanish()
            case code:
                line.link.send_close(int(code.split()[-1]))

    # ------------------------------------------------------------------ deliveries

    def _arrive(self, client: SimulatedClient, line: Line, count: int) -> None:
        for _ in range(count):
            stale = self._server.is_stale(line.link)
            frame = line.link.arrive()
            if frame is None:
                return
            self.steps += 1
            if stale and isinstance(frame, str):
                event_id = vocabulary.is_void(frame)
                if event_id is not None:
                    client.outcomes.void(event_id)

    def _read(self, client: SimulatedClient, line: Line, count: int) -> None:
        for _ in range(count):
            if not client.read(line):
                return
            self.steps += 1
            self._tell("the end" if line.closed is not None else line.last["type"])
            self.counts["event"] += line.closed is None
            self.counts["gap"] += line.last.get("type") == "session.snapshot"
            self.faults["slow consumer"] += line.closed is not None and line.closed.reason == "slow consumer"
        if not client.tokens and client.session_id is not None:
            live = self.manager.find(client.session_id)
            if live is not None and live.machine.is_open:
                raise Violation(LOCKED_OUT, f"{client.name} has no token of {live.id} that is good")

    # ------------------------------------------------------------------ for clients, and for the end

    def _connect(self, upgrade: Upgrade, witness: Witness) -> MemoryLink:
        def wrote(frame: bytes, step: int) -> None:
            self._digest.update(frame)
            witness.fence.wrote(frame, step)

        swap, self._swap_of_next = self._swap_of_next, SwapPlan()
        return self._server.accept(upgrade, swap, lambda: self.steps, wrote)

    async def pump(self) -> None:
        """Deliver everything, both ways, until nothing is left to deliver."""
        moved = -1
        while moved != self.steps:
            moved = self.steps
            for client in filter(None, self.clients):
                for line in client.lines:
                    self._arrive(client, line, _EVERYTHING)
                    await self.settle()
                    self._read(client, line, _EVERYTHING)
            await self.settle()

    async def settle(self) -> None:
        """Let the loop run until nothing is ready."""
        await self._turn(MOST_TURNS, self.clients)
