"""Many fuzzed sessions from one seed, until one fails; then the shortest part of it that still fails.

Owns: drawing cases, one server for all of them, watching the log, shortening.
Does not own: a session (``session``), what is wrong (``oracle``).
Here because: a failure is worth as much as the few lines that bring it back.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from counterpoint.limits import MIB, JournalLimits, LeaseLimits, Limits
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.manager import SessionManager
from counterpoint.runtime.metrics import Metrics
from counterpoint.testing import virtual_time

from .frames import Frames
from .mutation import Frame, garbage, mutated
from .oracle import complaints
from .session import FuzzedSession, Opening, Record, Step

#: Answers end soon, whatever a script says: time costs nothing here, but every sample does.
_BOUNDS = Bounds(
    limits=Limits(max_sessions=4, max_response_s=3.0, response_timeout_s=5.0, cleanup_timeout_s=1.0),
    lease=LeaseLimits(idle_ttl_s=0.0, disconnect_grace_s=5.0),
    journal=JournalLimits(max_bytes=64 * MIB, ttl_s=0.0, max_events=0),
)

#: Frames of one session; and the time after them in which everything comes to its end.
_MOST_FRAMES = 60
_AFTERWARDS_MS = 10_000


@dataclass(frozen=True, slots=True)
class Case:
    """One session, complete in itself. ``ids`` are those that the server made, in order: frames name them."""

    seed: str
    opening: Opening
    steps: tuple[Step, ...]
    ids: tuple[str, ...] = ()

    @property
    def frames(self) -> list[Frame]:
        return [frame for step in self.steps for frame in step.frames]


@dataclass(slots=True)
class Report:
    """``case`` failed with ``complaint``; ``shortest`` still does. Without a complaint nothing failed."""

    frames: int = 0
    sessions: int = 0
    complaint: str = ""
    case: Case | None = None
    shortest: Case | None = None
    events: int = 0
    errors: dict[str, int] = field(default_factory=dict)  #: by code


def fuzz(
    seed: int,
    frames: int,
    *,
    plugin: Callable[[], ModelPlugin] = lambda: ScriptedPlugin({}),
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Send so many frames. ``plugin`` makes the model; what is drawn suits the scripted one."""
    report = Report()
    while report.frames < frames and not report.complaint:
        name = f"{seed}/{report.sessions}"
        case, record, found = virtual_time.run(_draw(name, plugin()))
        _count(report, case, record)
        if found:
            report.complaint, report.case = found[0], case
            report.shortest = shorten(case, found[0], plugin)
        progress(report)
    return report


def replay(case: Case, plugin: Callable[[], ModelPlugin] = lambda: ScriptedPlugin({})) -> list[str]:
    """Play a case again; everything that is wrong with it."""
    return virtual_time.run(_replay(case, plugin()))


def shorten(case: Case, complaint: str, plugin: Callable[[], ModelPlugin]) -> Case:
    """The case with every frame left out that is not needed to break the same rule."""
    broken = complaint.partition(":")[0]

    def fails(steps: Sequence[Step]) -> bool:
        shorter = dataclasses.replace(case, steps=tuple(steps))
        return any(found.partition(":")[0] == broken for found in replay(shorter, plugin))

    steps = [
        Step((frame,), step.wait_ms if last else 0) for step in case.steps for frame, last in _marked(step)
    ]
    if not fails(steps):
        return case
    size = len(steps) // 2
    while size:
        before = len(steps)
        for at in range(len(steps) - size, -size, -size):
            shorter = steps[: max(0, at)] + steps[at + size :]
            steps = shorter if fails(shorter) else steps
        if size > 1 or len(steps) == before:
            size //= 2
    return dataclasses.replace(case, steps=tuple(steps))


def _marked(step: Step) -> Iterator[tuple[Frame, bool]]:
    """Each frame, and whether it is the last of its step."""
    for index, frame in enumerate(step.frames, 1):
        yield frame, index == len(step.frames)


def _count(report: Report, case: Case, record: Record) -> None:
    report.sessions += 1
    report.frames += len(case.frames)
    report.events += len(record.received)
    for event in record.received:
        if event["type"] == "error":
            code = event["error"]["code"]
            report.errors[code] = report.errors.get(code, 0) + 1


# --------------------------------------------------------------------------- one case


async def _draw(name: str, plugin: ModelPlugin) -> tuple[Case, Record, list[str]]:
    """A case that is made up while it is played, since frames name what the server made."""
    rng = random.Random(f"{name}/frames")
    opening = Opening(rng.random() < 0.7, beta=rng.random() < 0.1, autostart=rng.random() < 0.8)
    frames = Frames(rng)
    steps: list[Step] = []
    seen = 0

    def next_step(record: Record) -> Step | None:
        nonlocal seen
        for event in record.received[seen:]:
            frames.saw(event)
        seen = len(record.received)
        if len(record.sent) >= _MOST_FRAMES or record.closed is not None:
            return None
        steps.append(
            Step(
                tuple(_frame(frames, rng) for _ in range(rng.choice((1, 1, 1, 2, 5)))),
                rng.choice((0, 0, 0, 0, 1, 20, 300, 2000)),
            )
        )
        return steps[-1]

    record, found = await _play(name, opening, plugin, next_step)
    return Case(name, opening, tuple(steps), tuple(ids_of(record))), record, found


async def _replay(case: Case, plugin: ModelPlugin) -> list[str]:
    """With the ids of this run where the frames name those of the first: some may be left out."""
    steps = iter(case.steps)

    def next_step(record: Record) -> Step | None:
        step = next(steps, None)
        if step is None:
            return None
        renamed = list(zip(case.ids, ids_of(record), strict=False))
        return step._replace(frames=tuple(_renamed(frame, renamed) for frame in step.frames))

    return (await _play(case.seed, case.opening, plugin, next_step))[1]


def ids_of(record: Record) -> list[str]:
    """Of items, responses and calls, in the order in which they came up."""
    found: dict[str, None] = {}
    for event in record.received:
        for key in ("item", "response"):
            if isinstance(thing := event.get(key), dict):
                found |= dict.fromkeys(value for value in (thing.get("id"), thing.get("call_id")) if value)
    return list(found)


def _renamed(frame: Frame, names: Sequence[tuple[str, str]]) -> Frame:
    if isinstance(frame, bytes):
        return frame
    for before, now in names:
        frame = frame.replace(f'"{before}"', f'"{now}"')
    return frame


def _frame(frames: Frames, rng: random.Random) -> Frame:
    what = rng.random()
    if what < 0.45:
        return msgspec.json.encode(frames.valid()).decode()
    return mutated(frames.valid(), rng) if what < 0.93 else garbage(rng)


async def _play(
    name: str, opening: Opening, plugin: ModelPlugin, next_step: Callable[[Record], Step | None]
) -> tuple[Record, list[str]]:
    """One session on a server of its own; and what is wrong with it."""
    entropy = random.Random(f"{name}/entropy")
    manager = SessionManager(plugin, _BOUNDS, entropy=entropy.randbytes, metrics=Metrics())
    with _watched_log() as tracebacks:
        await plugin.start()
        session = FuzzedSession(manager, IdSource(entropy.randbytes(6).hex()), opening)
        await session.settle()
        while (step := next_step(session.record)) is not None:
            await session.play(step)
        await session.play(Step((), _AFTERWARDS_MS))
        found = complaints(session.record)
        await session.end()
        await asyncio.sleep(_BOUNDS.limits.cleanup_timeout_s * 4)
        found += _left(manager)
        await manager.close()
        await plugin.stop()
    return session.record, [*(f"traceback: {text}" for text in tracebacks), *found]


def _left(manager: SessionManager) -> Iterator[str]:
    if manager.slots.used or list(manager.sessions):
        yield f"left-behind: {manager.slots.used} slots, {len(list(manager.sessions))} sessions"
    if manager.log_bytes:
        yield f"left-behind: {manager.log_bytes} bytes of events"


class _Tracebacks(logging.Handler):
    def __init__(self, seen: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.name == "asyncio":
            self._seen.append(logging.Formatter().format(record))


@contextmanager
def _watched_log() -> Iterator[Sequence[str]]:
    """What is logged with a traceback, at the level of an error, meanwhile."""
    seen: list[str] = []
    handler = _Tracebacks(seen)
    logging.getLogger().addHandler(handler)
    try:
        yield seen
    finally:
        logging.getLogger().removeHandler(handler)
