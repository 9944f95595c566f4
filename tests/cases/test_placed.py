"""A model in a worker process that is killed in the middle of an answer (invariant 79)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from counterpoint.stages.placement import load_placed

from .client import Caller, user_says
from .client import respond as ask
from .world import World

ANSWER = {"audio_ms": 3000, "chunk_ms": 40}


def workers() -> list[int]:
    """Worker processes of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    command = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    return [pid for pid, line in command.items() if b"counterpoint.stages.worker" in line]


async def start_answer(caller: Caller) -> None:
    await caller.send(user_says("hello"), ask())
    await caller.expect("response.output_audio.delta")


async def test_a_killed_worker_fails_its_answer_and_no_other(world: World) -> None:
    await world.serve(plugin=load_placed("scripted", {"executor": "process"}))
    caller = await world.call(ANSWER)
    [pid] = workers()
    await world.serve(plugin=load_placed("scripted", {"executor": "thread"}))
    neighbour = await world.call(ANSWER)
    await asyncio.gather(start_answer(caller), start_answer(neighbour))

    gaps = asyncio.create_task(longest_gap(neighbour, 1.5))
    os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    response = await caller.done()
    assert time.monotonic() - began < 1.0
    assert response["status"] == "failed"
    assert await gaps < 0.1

    await start_answer(caller)
    assert (await caller.done())["status"] == "completed"
    assert workers() != [pid]


async def longest_gap(caller: Caller, seconds: float) -> float:
    end, longest = time.monotonic() + seconds, 0.0
    while (began := time.monotonic()) < end:
        await caller.expect("response.output_audio.delta")
        longest = max(longest, time.monotonic() - began)
    return longest
