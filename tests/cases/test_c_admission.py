"""Group C of the known cases: who gets a slot, and that it comes back."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from counterpoint.serving.link import BUFFER_BYTES, WebSocketLink

from .client import Caller, Connection, scripted
from .plugins import InterceptedPlugin, RaisesAtFirst
from .wire import TEXT, Event, frame, http_get, text
from .world import CLOSE_TIMEOUT_S, GRACE_S, World, objects_of, until

BURST: Event = {"audio_ms": 200, "pace": "burst"}


async def slots(world: World) -> tuple[int, int]:
    """Slots that are used, and those of them whose session is over."""
    shown = (await world.state())["slots"]
    return shown["used"], shown["closing"]


async def slots_become(world: World, used: int, closing: int = 0) -> None:
    async def matches() -> bool:
        return await slots(world) == (used, closing)

    await until(matches, what=f"{used} slots used and {closing} closing")


async def is_refused(world: World, *, within: float = 1.0) -> bool:
    """Whether a new session is refused for lack of a slot."""
    connection = await world.connect()
    event = await connection.until(lambda _: True, within=within)
    if event["type"] == "session.created":
        await connection.socket.close()
        return False
    assert event["error"]["code"] == "resource_exhausted"
    assert event["error"]["retry_after_ms"] > 0
    assert (await connection.ended()).code == 1013
    return True


async def test_c02_a_session_that_cannot_be_set_up_leaves_no_slot_behind(world: World) -> None:
    """Case C-02. Ten that fail, told so each; then one that works."""
    await world.serve({"limits.max_sessions": 1})
    for _ in range(10):
        connection = await world.connect(query={"autostart": "0", "duplex": "1"})
        await connection.send(scripted({"fail_open": True}))
        await connection.error("session_open_failed")
        assert (await connection.ended()).code == 1011
        await slots_become(world, 0)
    caller = await world.call(BURST)
    assert (await caller.answer())["status"] == "completed"


async def test_c05_a_slot_is_free_when_the_model_has_let_go(world: World) -> None:
    """Case C-05. Until then a new session is refused, with a hint; afterwards it is admitted."""
    await world.serve({"limits.max_sessions": 1})
    caller = await world.call({"cleanup_delay_ms": 500})
    await caller.send({"type": "session.close"})
    await until(lambda: not caller.connection.alive or _is_closing(world, caller))
    assert await is_refused(world)
    await caller.expect("session.closed")
    await slots_become(world, 0)
    assert not await is_refused(world)


async def _is_closing(world: World, caller: Caller) -> bool:
    return bool(await world.calls(caller.id, "close"))


async def test_c05_a_cancel_that_fails_is_tried_again(world: World) -> None:
    """Case C-05. The same request is stopped at the second attempt; its output was stale from the first."""
    cancel = RaisesAtFirst()
    await world.serve(plugin=InterceptedPlugin({"cancel": cancel}))
    caller = await world.call({"audio_ms": 5000, "chunk_ms": 20})
    response_id = await caller.ask()
    await caller.expect("response.output_audio.delta")
    await caller.send({"type": "response.cancel"})
    done = await caller.expect("response.done")
    assert (done["response"]["status"], done["duplex"]["epoch"]) == ("cancelled", 1)
    await until(lambda: cancel.calls == 2)
    (generated,) = await world.calls(caller.id, "generate")
    await until(lambda: world.calls(caller.id, "abort"))
    (aborted,) = await world.calls(caller.id, "abort")
    assert aborted["request_id"] == generated["request_id"]
    assert caller.has_ended(response_id)
    await caller.hang_up()


@pytest.mark.parametrize("failures", [1, 3])
async def test_c05_a_cleanup_that_fails_is_tried_again_and_holds_its_slot(
    world: World, failures: int
) -> None:
    """Case C-05. The client is told at once that its session is over; the slot is free once that is true."""
    close = RaisesAtFirst(failures)
    await world.serve(
        {"limits.max_sessions": 1, "lease.reaper_interval_s": 0.2}, plugin=InterceptedPlugin({"close": close})
    )
    caller = await world.call()
    await caller.hang_up()
    assert await slots(world) == (1, 1)
    assert await is_refused(world)
    await slots_become(world, 0)
    assert close.calls == failures + 1
    assert await world.metric("counterpoint_cleanups_failed_total") == failures
    assert not await is_refused(world)


@pytest.mark.parametrize("ending", ["client", "grace", "admin"])
async def test_c06_a_wedged_model_costs_its_own_slot_and_nothing_else(world: World, ending: str) -> None:
    """Case C-06, invariant 144. The end comes within its bound, and the slot is shown as it is."""
    await world.serve({"limits.cleanup_timeout_s": 0.3})
    world.wedged = 1
    caller = await world.call({"hang_on_close": True})
    if ending == "client":
        await caller.send({"type": "session.close"})
        await caller.connection.expect("session.closed", within=0.3 + 2)
        await caller.connection.ended()
    elif ending == "grace":
        caller.reset()
    else:
        world.server.manager.end_all("admin")
        assert (await caller.connection.ended(within=0.3 + 2)).code == 1008
    await slots_become(world, 1, closing=1)
    assert await world.metric("counterpoint_slots_closing") == 1
    other = await world.call(BURST)
    assert (await other.answer())["status"] == "completed"
    assert await is_refused(world), "the wedged slot was given away"
    await until(lambda: _failed_often(world, 3), what="another attempt")


async def _failed_often(world: World, times: int) -> bool:
    return await world.metric("counterpoint_cleanups_failed_total") >= times


@pytest.mark.parametrize("rush", [3, 50])
async def test_c07_exactly_as_many_are_admitted_as_there_is_room_for(world: World, rush: int) -> None:
    """Case C-07. All at once: two get in, the others are told within a second, and the two notice nothing."""
    await world.serve({"limits.max_sessions": 2})

    async def knock() -> Event:
        connection = await world.connect(query={"duplex": "1"})
        return await connection.until(lambda _: True, within=1 + 0.02 * rush)

    answers = await asyncio.gather(*(knock() for _ in range(rush)))
    admitted = [event for event in answers if event["type"] == "session.created"]
    refused = [event["error"] for event in answers if event["type"] == "error"]
    assert len(admitted) == 2
    assert {error["code"] for error in refused} == {"resource_exhausted"}
    assert all(error["retry_after_ms"] > 0 for error in refused)
    assert {event["session"]["capabilities"]["max_sessions"] for event in admitted} == {2}

    owners = [connection for connection in world.connections if connection.record is not None]
    for owner in owners:
        await owner.send({"type": "session.heartbeat"})
        await owner.expect("session.heartbeat_ack")
    await owners[0].socket.close()
    await slots_become(world, 1)
    await world.call()


async def test_c08_handshakes_that_say_nothing_hold_no_slot(world: World) -> None:
    """Case C-08. Hundreds that never finish their first event, and a real client among them."""
    await world.serve({"transport.handshake_timeout_s": 1})
    query = {"autostart": "0"}
    silent = await asyncio.gather(*(world.connect(query=query) for _ in range(200)))
    slow = await asyncio.gather(*(world.connect(query=query) for _ in range(20)))
    dripping = [asyncio.create_task(_drip(connection)) for connection in slow]
    assert await slots(world) == (0, 0)
    caller = await world.call(BURST)
    assert (await caller.answer())["status"] == "completed"
    for connection in (*silent, *slow):
        assert (await connection.ended()).code == 4408
        await connection.error("config_timeout")
    await asyncio.gather(*dripping)
    assert await slots(world) == (1, 0)


async def _drip(connection: Connection) -> None:
    """A valid first event, a byte at a time."""
    with contextlib.suppress(ConnectionError):
        for byte in text({"type": "session.update", "session": {"type": "realtime"}}):
            await connection.socket.send(bytes((byte,)))
            await asyncio.sleep(0.1)


async def test_c08_a_frame_that_is_too_large_ends_the_connection_before_it_is_read(world: World) -> None:
    """Case C-08. 1009 for its size alone: what is in it was not even JSON."""
    await world.serve({"limits.max_frame_bytes": 10_000})
    connection = await world.connect(query={"autostart": "0"})
    await connection.socket.send(frame(TEXT, b"x" * 10_001))
    assert (await connection.ended()).code == 1009
    assert connection.events == []


async def test_c08_refusals_are_made_no_faster_than_they_are_read(world: World) -> None:
    """Case C-08. One who sends nonsense and reads nothing before the first event fills no memory."""
    await world.serve({"transport.handshake_timeout_s": 1})
    connection = await world.connect(query={"autostart": "0"}, receive_buffer=4096)
    connection.socket.reading.clear()
    nonsense = text({"type": "nonsense"}) * 100
    most = 0
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(0.8):
            while True:
                await connection.socket.send(nonsense)
                await asyncio.sleep(0)
                most = max(most, *(link.buffered() for link in objects_of(WebSocketLink)))
    assert 0 < most < 2 * BUFFER_BYTES


@pytest.mark.parametrize("stalled", [False, True])
async def test_c09_a_peer_that_does_not_answer_the_close_is_gone_in_time(world: World, stalled: bool) -> None:
    """Case C-09. One ignores the close frame; another has stopped reading, with every buffer full."""
    await world.serve()
    caller = await world.call({"audio_ms": 60_000, "pace": "burst"}, receive_buffer=4096)
    caller.connection.socket.answers_close = False
    caller.connection.socket.pongs = False
    if stalled:
        await caller.ask()
        caller.connection.socket.reading.clear()
        await until(lambda: _is_full(world, caller.id))
    assert len((await world.state())["sessions"]) == 1
    world.server.manager.end_all("admin")
    await until(world.is_empty, within=CLOSE_TIMEOUT_S + 0.5 + 1, what="an empty server")
    caller.connection.socket.reading.set()
    ending = await caller.connection.ended()
    assert ending.code in ((None,) if stalled else (1008,))


async def _is_full(world: World, session_id: str) -> bool:
    state = await world.session_state(session_id)
    return state is not None and state["pending_bytes"] >= 256 * 1024


async def test_c07_health_is_answered_while_all_slots_are_taken(world: World) -> None:
    """Case C-07. Being full is neither ill nor unready: sessions that live here can be resumed."""
    await world.serve({"limits.max_sessions": 1})
    caller = await world.call()
    assert await is_refused(world)
    assert (await http_get(world.url, "/health"))[0] == 200
    assert (await http_get(world.url, "/ready"))[0] == 200
    caller.reset()
    async with asyncio.timeout(GRACE_S):
        await caller.resume()
