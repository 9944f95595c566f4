"""Runs of the simulator from a seed, and again from a list of operations.

Owns: one run from its beginning to its report; replaying; the shortest failing list within a budget.
Does not own: what a run does (``simulation``), how it is printed (``cli.simulate``).
Here because: a run needs a loop, a setting and somebody who listens for what nobody handles.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .invariants.violation import Violation
from .operations import Operation, draw
from .setting import draw_setting
from .shrink import shrink
from .simulation import Simulation
from .unhandled import watched
from .virtual_time import VirtualLoop

#: Sessions that live at the same time, unless the caller says otherwise.
CLIENTS = 4

_EVERYTHING = 1 << 62


@dataclass(slots=True)
class Run:
    """``operations`` were carried out, the last of them not to its end if there is a ``violation``."""

    seed: int
    clients: int
    operations: list[Operation] = field(default_factory=list)
    story: list[str] = field(default_factory=list)  #: what each operation came to
    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)  #: events, sessions, resumes, gaps
    faults: Counter[str] = field(default_factory=Counter)  #: by kind
    digest: str = ""  #: of all frames that the server wrote
    violation: Violation | None = None

    @property
    def trace(self) -> list[str]:
        """The operations, and what they came to, to be read."""
        told = zip(self.operations, self.story, strict=True)
        return [f"{operation}:{came_to}" if came_to else str(operation) for operation, came_to in told]


def simulate(
    seed: int, steps: int, *, clients: int = CLIENTS, progress: Callable[[int], object] = lambda steps: None
) -> Run:
    """Make ``steps`` steps as the seed has it. ``progress`` is called with the steps made, now and then."""
    return _run(Run(seed, clients), draw(seed, clients), steps, progress)


def replay(seed: int, operations: Iterable[Operation], *, clients: int = CLIENTS) -> Run:
    """Carry out ``operations`` on the server that the seed makes."""
    return _run(Run(seed, clients), operations, _EVERYTHING, lambda steps: None)


def shortest(run: Run, budget_s: float) -> Run:
    """Of a run that ended in a violation, the shortest found that ends in the same one."""
    assert run.violation is not None
    kind, deadline = run.violation.kind, time.monotonic() + budget_s

    def fails(operations: Sequence[Operation]) -> bool:
        violation = replay(run.seed, operations, clients=run.clients).violation
        return violation is not None and violation.kind == kind

    operations = shrink(run.operations, fails, lambda: time.monotonic() < deadline)
    return replay(run.seed, operations, clients=run.clients)


def _run(run: Run, operations: Iterable[Operation], steps: int, progress: Callable[[int], object]) -> Run:
    async def main() -> None:
        with watched(asyncio.get_running_loop()) as unhandled:
            simulation = Simulation(run.seed, run.clients, draw_setting(run.seed, run.clients), unhandled)
            try:
                await simulation.run(operations, steps, run.operations, progress)
            except Violation as violation:
                run.violation = violation
            run.steps, run.digest = simulation.steps, simulation.digest
            run.story = simulation.story
            run.counts, run.faults = simulation.counts, +simulation.faults

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    return run
