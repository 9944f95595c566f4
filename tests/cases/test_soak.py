"""Fifty clients whose connections die all the time: each hears everything, and the server stays as it was.

Owns: the soak: waves of sessions over real sockets to a server in a process of its own, cut at points that a
seed decides. ``make soak`` runs it; ``SECONDS`` and ``SEED`` decide how long and what happens.
Does not own: schedules that sockets cannot bring about (``counterpoint simulate``), one cut at a time
(``test_cut_lines``).
Here because: what leaks a little, or goes wrong once in a thousand cuts, is seen only by going on for long.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass

import pytest

from counterpoint.testing.proxy import FaultProxy, Faults

from .client import Caller
from .wire import Event
from .world import ServerProcess, World, until

SECONDS = float(os.environ.get("SECONDS", "600"))
SEED = int(os.environ.get("SEED", "1"))

SESSIONS = 50
ANSWERS = 2
CUTS = 4  #: of every answer, at least: a resume that is cut as well comes on top
AUDIO_MS = 1600
SCRIPT: Event = {"audio_ms": AUDIO_MS, "chunk_ms": 40, "words": 30, "pace": "realtime"}
SETTINGS: dict[str, object] = {"limits.max_sessions": SESSIONS, "lease.disconnect_grace_s": 15}

#: Waves before anything is measured: allocators and caches fill up.
WARM_UP = 2
#: More than this for every session that ended is memory that was lost (case C-14).
MAX_GROWTH_KIB = 20.0

#: By answer: its audio and its transcript.
Heard = list[tuple[bytes, str]]


@dataclass(frozen=True)
class Footprint:
    """What an empty server must hold: no more, however many sessions it had."""

    used: int
    closing: int
    tasks: int
    threads: int
    descriptors: int


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
async def test_fifty_clients_that_are_killed_again_and_again_lose_nothing(world: World) -> None:
    """CASE-INV-2, -3 and -9; what was heard equals an uncut run."""
    server = await world.spawn(SETTINGS)
    try:
        await _soak(world, server, random.Random(SEED))
    except BaseException as failure:
        failure.add_note(
            f"soak with SEED={SEED}: {SESSIONS} sessions, cut {CUTS} times in an answer or oftener"
        )
        raise


async def _soak(world: World, server: ServerProcess, chance: random.Random) -> None:
    uncut = await _uncut(world)
    started = time.monotonic()
    footprints: list[Footprint] = []
    sizes: list[int] = []
    proxies = [await world.proxy() for _ in range(SESSIONS)]
    while time.monotonic() < started + SECONDS or len(sizes) < WARM_UP + 5:
        seeds = [chance.getrandbits(32) for _ in proxies]
        async with asyncio.TaskGroup() as group:
            for seed, proxy in zip(seeds, proxies, strict=True):
                group.create_task(_session(world, proxy, random.Random(seed), uncut))
        await until(lambda: _is_empty(world), what="an empty server")
        footprints.append(await _footprint(world, server))
        sizes.append(server.status("VmRSS"))
        cuts = sum(len(proxy.connections) for proxy in proxies)
        sys.stdout.write(
            f"{time.monotonic() - started:5.0f} s: {len(sizes) * SESSIONS} sessions over {cuts} connections, "
            f"{sizes[-1]} KiB, {footprints[-1]}\n"
        )
        sys.stdout.flush()
    assert footprints[WARM_UP:] == [footprints[WARM_UP]] * len(footprints[WARM_UP:])
    growth = _growth_kib(sizes[WARM_UP:])
    assert growth < MAX_GROWTH_KIB, f"{growth:.1f} KiB for each session: {sizes}"


def _growth_kib(sizes: list[int]) -> float:
    """By how much memory grows with each session.

    A leak grows with every wave; the highest mark of an allocator with one here and there, when more sessions
    than ever before hold the most at once.
    """
    return statistics.median(after - before for before, after in itertools.pairwise(sizes)) / SESSIONS


# ---------------------------------------------------------------------- one session


async def _uncut(world: World) -> Heard:
    caller = await world.call(SCRIPT)
    answers = [(await caller.answer())["id"] for _ in range(ANSWERS)]
    heard = _heard(caller, answers)
    assert all(len(audio) == AUDIO_MS * 48 and words for audio, words in heard)
    await caller.hang_up()
    return heard


async def _session(world: World, proxy: FaultProxy, chance: random.Random, uncut: Heard) -> None:
    """A conversation that is cut in every answer. Its end is a goodbye, or the last of the cuts."""
    proxy.to_client = Faults()
    caller = await world.call(SCRIPT, via=proxy.through(world.url))
    answers = [await _cut_answer(world, caller, proxy, chance) for _ in range(ANSWERS)]
    assert _heard(caller, answers) == uncut, f"session {caller.id} heard something else"
    assert sorted(caller.record.events) == list(range(1, caller.cursor + 1))
    await caller.hang_up()
    _forget(world, caller)


async def _cut_answer(world: World, caller: Caller, proxy: FaultProxy, chance: random.Random) -> str:
    response_id = await caller.ask()
    for _ in range(CUTS):
        await _hear_for(caller, chance.uniform(0.0, 0.4))
        stale = proxy.newest
        match chance.choice(("reset", "half-open", "closed")):
            case "reset":
                caller.reset()
            case "half-open":
                stale.blackhole()
            case _:
                caller.connection.socket.drop()
        await _come_back(world, caller, proxy, chance)
        stale.reset()  # a half-open connection stays so until another has taken over
    if not caller.has_ended(response_id):
        await caller.done(response_id)
    return response_id


async def _hear_for(caller: Caller, seconds: float) -> None:
    """Listen for so long, or until the connection breaks or the answer ends."""
    try:
        async with asyncio.timeout(seconds):
            await caller.connection.happens("response.done")
    except TimeoutError:
        pass


async def _come_back(world: World, caller: Caller, proxy: FaultProxy, chance: random.Random) -> None:
    """Resume; every second connection on the way there breaks, in the middle of whatever comes."""
    via = proxy.through(world.url)
    while chance.random() < 0.5:
        proxy.to_client = Faults(reset_at=chance.randrange(100, 24_000))
        if await caller.resume_unless_cut(via=via):
            await _hear_for(caller, chance.uniform(0.0, 0.2))
    proxy.to_client = Faults()
    await caller.resume(via=via)


def _heard(caller: Caller, answers: list[str]) -> Heard:
    return [(caller.audio(answer), caller.transcript(answer)) for answer in answers]


def _forget(world: World, caller: Caller) -> None:
    """Hold the record against the rules now, and keep it no longer: a soak has many."""
    caller.record.check()
    del world.records[caller.id]
    for connection in caller.record.connections:
        world.connections.remove(connection)


# ---------------------------------------------------------------------- what is left


async def _is_empty(world: World) -> bool:
    state = await world.state()
    return state["slots"]["used"] == 0 and not state["sessions"]


async def _footprint(world: World, server: ServerProcess) -> Footprint:
    """What is left once the last connection is gone; it may take its closing time."""
    tasks = -1
    while (state := await world.state())["tasks"] != tasks:
        tasks = state["tasks"]
        await asyncio.sleep(1)
    slots = state["slots"]
    return Footprint(slots["used"], slots["closing"], tasks, server.status("Threads"), server.descriptors)
