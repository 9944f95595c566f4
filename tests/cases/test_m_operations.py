"""Group M of the known cases, as far as one server goes: shutdown, drain, keepalive, counted endings."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Awaitable, Callable

import pytest

from counterpoint.serving.settings import TransportSettings

from .client import Caller
from .wire import http_get
from .world import CLOSE_TIMEOUT_S, GRACE_S, World, until

#: On top of what the contract allows: the start and end of a process on a busy machine.
PROCESS_S = 2.0

ENDLESS = {"audio_ms": 60_000, "pace": "burst"}

Ending = Callable[[World, Caller], Awaitable[None]]


async def test_m02_shutdown_waits_for_no_idle_socket(world: World) -> None:
    """Case M-02. Idle sessions, a reader that stalls, a peer that is not there any more."""
    drain_s = 0.5
    server = await world.spawn({"limits.max_sessions": 10, "drain.timeout_s": drain_s})
    idle = [await world.call() for _ in range(5)]
    stalled = await world.call(ENDLESS, receive_buffer=4096)
    await stalled.ask()
    stalled.connection.socket.reading.clear()
    proxy = await world.proxy()
    await world.call(via=proxy.through(world.url))
    proxy.newest.blackhole()

    asked_at = time.monotonic()
    server.signal(signal.SIGTERM)
    for caller in idle:
        await caller.expect("session.go_away", reason="drain")
        assert (await caller.expect("session.closed"))["reason"] == "drained"
        assert (await caller.connection.ended()).code == 1012
    assert await server.exited() == 0
    assert time.monotonic() - asked_at < drain_s + CLOSE_TIMEOUT_S + 1 + PROCESS_S
    assert "Traceback" not in server.errors


async def test_m02_a_second_signal_stops_at_once(world: World) -> None:
    """Case M-02."""
    server = await world.spawn({"drain.timeout_s": 60})
    caller = await world.call()
    server.signal(signal.SIGTERM)
    await caller.expect("session.go_away")
    server.signal(signal.SIGTERM)
    assert await server.exited() == 0
    assert "Traceback" not in server.errors


async def test_m03_a_draining_server_serves_its_own_and_admits_nobody(world: World) -> None:
    """Case M-03. Whoever comes back during the drain is told of it too."""
    server = await world.serve({"limits.max_sessions": 10, "lease.disconnect_grace_s": 20})
    attached, detached = await world.call(), await world.call()
    detached.reset()
    await until(lambda: world.metric("counterpoint_connections_ended_total", cause="lost"))
    late = await world.connect(query={"autostart": "0"})
    assert (await http_get(world.url, "/ready"))[0] == 200

    drain = asyncio.create_task(server.drain())
    told = await attached.expect("session.go_away", reason="drain")
    assert (await http_get(world.url, "/ready"))[0] == 503
    await late.send({"type": "session.update", "session": {"type": "realtime"}})
    assert (await late.error("resource_exhausted"))["retry_after_ms"] > 0
    await asyncio.sleep(0.05)
    await detached.resume()
    again = await detached.expect("session.go_away", reason="drain")
    assert 0 < again["deadline_ms"] < told["deadline_ms"]
    await attached.hang_up()
    assert not drain.done()
    await detached.hang_up()
    await drain


async def test_m03_a_connection_that_learns_the_extensions_during_a_drain_is_told(world: World) -> None:
    """Case M-03. Before that it had no word for it."""
    server = await world.serve()
    caller = await world.call(stock=True)
    drain = asyncio.create_task(server.drain())
    await until(lambda: not server.manager.admits)
    for _ in range(2):
        await caller.send({"type": "session.update", "extensions": True, "session": {"type": "realtime"}})
        await caller.expect("session.updated")
    assert len(caller.connection.named("session.go_away")) == 1
    await caller.hang_up()
    await drain


async def test_m04_a_quiet_connection_is_not_cut_on_its_way(world: World) -> None:
    """Case M-04. Nothing to say on either side, or an answer that takes its time."""
    await world.serve({"transport.ping_interval_s": 0.3})
    proxy = await world.proxy(idle_kill_s=1.0)
    silent = await world.call(via=proxy.through(world.url))
    patient = await world.call({"audio_ms": 100, "stall_first_ms": 3000}, via=proxy.through(world.url))
    response_id = await patient.ask()
    assert (await patient.done(response_id))["status"] == "completed"
    assert silent.connection.alive
    assert TransportSettings().ping_interval_s <= 25


async def test_m05_another_server_knows_no_session_of_this_one(world: World) -> None:
    """Case M-05 without a shared store: a typed refusal, never a fresh session under the old id."""
    here = await world.serve()
    caller = await world.call()
    caller.reset()
    elsewhere = await world.serve()
    stray = await caller.try_resume(via=elsewhere.url)
    await stray.error("invalid_resume_token")
    assert (await stray.ended()).code == 1008
    assert not elsewhere.manager.sessions
    resumed = await caller.resume(via=here.url)
    assert resumed["session_id"] == caller.id
    await caller.hang_up()


async def client_closes(world: World, caller: Caller) -> None:
    await caller.hang_up()


async def socket_closes(world: World, caller: Caller) -> None:
    await caller.connection.socket.close(1000)


async def line_breaks(world: World, caller: Caller) -> None:
    caller.reset()


async def nothing_is_said(world: World, caller: Caller) -> None:
    await caller.expect("session.expired", reason="idle_ttl_expired")


async def another_replaces_it(world: World, caller: Caller) -> None:
    await caller.resume()
    await caller.hang_up()


async def server_drains(world: World, caller: Caller) -> None:
    await world.server.drain()


async def model_is_lost(world: World, caller: Caller) -> None:
    await caller.expect("session.closed", reason="failed")


@pytest.mark.parametrize(
    ("ending", "settings", "session", "causes"),
    [
        (client_closes, {}, "client_closed", ["client_closed"]),
        (socket_closes, {}, "client_closed", ["client_closed"]),
        (line_breaks, {}, "disconnect_grace_expired", ["lost"]),
        (nothing_is_said, {"lease.idle_ttl_s": 0.5}, "idle_ttl_expired", ["idle_ttl_expired"]),
        (another_replaces_it, {}, "client_closed", ["client_closed", "replaced"]),
        (server_drains, {"drain.timeout_s": 0.2}, "drained", ["drained"]),
        (model_is_lost, {"model.fail_open": True}, "failed", ["failed"]),
    ],
)
async def test_m07_every_end_is_counted_for_what_it_was(
    world: World, ending: Ending, settings: dict[str, object], session: str, causes: list[str]
) -> None:
    """Case M-07. Each session once, each of its connections once, and nothing under another reason."""
    await world.serve(settings)
    caller = await world.call()
    await ending(world, caller)
    await until(
        lambda: world.metric("counterpoint_sessions_ended_total", reason=session),
        within=GRACE_S + 10,
        what=f"the end as {session}",
    )
    assert await counted(world, "counterpoint_sessions_ended_total") == {session: 1}
    assert await counted(world, "counterpoint_connections_ended_total") == dict.fromkeys(causes, 1)


async def counted(world: World, name: str) -> dict[str, float]:
    """A metric's values by its one label."""
    _, body = await http_get(world.url, "/metrics")
    lines = [line for line in body.decode().splitlines() if line.startswith(f"{name}{{")]
    return {json.loads(line.split("=")[1].split("}")[0]): float(line.split()[-1]) for line in lines}
