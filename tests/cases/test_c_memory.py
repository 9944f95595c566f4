"""Group C of the known cases: memory, threads and processor time, looked at from outside of the server."""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Iterator

import pytest

from counterpoint.delivery.log import EventLog
from counterpoint.delivery.writer import Writer
from counterpoint.runtime.live import LiveSession
from counterpoint.runtime.runner import Runner
from counterpoint.session.machine import SessionMachine

from .client import BYTES_PER_MS, MANUAL, Caller, append, tone
from .wire import Event
from .world import ServerProcess, World, objects_of, until

SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]

MIB = 2**20
ROOMY: dict[str, object] = {
    "limits.max_sessions": 2000,
    "limits.max_pending_input_bytes": MIB,
    "lease.disconnect_grace_s": 0.3,
}


async def one_conversation(world: World) -> None:
    """Five seconds of audio, an answer, and the client is gone without a word."""
    caller = await world.call({"audio_ms": 1000, "pace": "burst"}, session=MANUAL)
    for _ in range(10):
        await caller.send(append(bytes(500 * BYTES_PER_MS)))
    await caller.send({"type": "input_audio_buffer.commit", "response_create": True})
    await caller.done()
    caller.reset()
    world.connections.remove(caller.connection)  # what the test itself keeps must not grow either
    del world.records[caller.id]


async def conversations(world: World, number: int) -> None:
    for _ in range(number):
        await one_conversation(world)
    await until(lambda: _nobody_is_left(world), what="an empty server")


async def _nobody_is_left(world: World) -> bool:
    state = await world.state()
    return state["slots"]["used"] == 0 and not state["sessions"]


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_c14_no_object_of_a_session_outlives_it(world: World) -> None:
    """Case C-14. Whatever belongs to sessions is gone with them, without a collector of cycles: a server runs
    that seldom."""
    await world.serve(ROOMY)
    await conversations(world, 20)
    await until(world.is_empty)
    for kind in (LiveSession, Runner, SessionMachine, EventLog, Writer):
        assert objects_of(kind) == [], kind


@pytest.mark.parametrize(("warm_up", "number"), [(20, 60), pytest.param(50, 300, marks=SLOW)])
async def test_c14_memory_threads_and_descriptors_come_back(world: World, warm_up: int, number: int) -> None:
    """Case C-14. The memory that stays is no part of any session: it does not grow by their number."""
    server = await world.spawn(ROOMY)
    await conversations(world, warm_up)
    threads, descriptors = server.status("Threads"), server.descriptors
    tasks = (await world.state())["tasks"]
    sizes = []
    for _ in range(6):
        await conversations(world, number // 6)
        sizes.append(server.status("VmRSS"))
    assert (server.status("Threads"), server.descriptors) == (threads, descriptors)
    assert (await world.state())["tasks"] == tasks
    growth_kib = (statistics.mean(sizes[-2:]) - statistics.mean(sizes[:2])) / (number * 4 / 6)
    assert growth_kib < 20, sizes


def _speech_and_silence(minutes: int) -> Iterator[list[Event]]:
    """Appends of 20 ms, a second at a time: two seconds of speech, three of silence, again and again."""
    spoken, silent = append(tone(20, 0.5)), append(tone(20, 0.0))
    for second in range(60 * minutes):
        yield [spoken if second % 5 < 2 else silent] * 50


async def _hear(caller: Caller, seconds: list[Event]) -> None:
    await caller.send(*seconds, {"type": "session.heartbeat"})
    await caller.expect("session.heartbeat_ack")


@pytest.mark.parametrize("minutes", [4, pytest.param(60, marks=SLOW)])
async def test_c15_a_long_session_costs_no_more_by_the_minute(world: World, minutes: int) -> None:
    """Case C-15. Audio as fast as it is taken: bytes stay within what is configured, and so does time."""
    server = await world.spawn(
        {
            "limits.max_pending_input_bytes": MIB,
            "limits.max_history_audio_bytes": MIB,
            "journal.max_bytes": MIB,
        }
    )
    detection = {"type": "server_vad", "detector": "amp", "create_response": False}
    caller = await world.call(session={"audio": {"input": {"turn_detection": detection}}})
    costs, sizes = [], []
    minute = list(_speech_and_silence(1))
    for _ in range(minutes):
        before = server.cpu_s
        for second in minute:
            await _hear(caller, second)
        costs.append(server.cpu_s - before)
        sizes.append(server.status("VmRSS"))
        state = await world.session_state(caller.id)
        assert state is not None
        assert state["input_bytes"] <= MIB
        assert state["journal_bytes"] + state["pending_bytes"] <= MIB
    assert len(caller.events("input_audio_buffer.committed")) == minutes * 12
    assert costs[-1] <= 1.5 * costs[0] + 0.1, costs
    assert sizes[-1] - sizes[0] < 6 * 1024, sizes


@pytest.mark.parametrize("number", [150, pytest.param(1000, marks=SLOW)])
async def test_c16_an_idle_connection_costs_little_memory(world: World, number: int) -> None:
    """Case C-16. Attached and silent: less than 100 KiB each, and nothing is compressed unless asked for."""
    server = await world.spawn(ROOMY)
    await asyncio.gather(*(world.call() for _ in range(20)))
    before = server.status("VmRSS")
    callers = await asyncio.gather(*(world.call() for _ in range(number)))
    assert _grown(server, before) / number < 100
    assert len((await world.state())["sessions"]) == number + 20
    for caller in callers[:: number // 10]:
        await caller.send({"type": "session.heartbeat"})
        await caller.expect("session.heartbeat_ack")


def _grown(server: ServerProcess, before: int) -> int:
    """By how many KiB the server's memory has grown."""
    return server.status("VmRSS") - before
