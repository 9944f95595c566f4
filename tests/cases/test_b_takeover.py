"""Group B of the known cases: two sockets, one session."""

from __future__ import annotations

import asyncio
import contextlib

from .client import MANUAL, Caller, append, fresh_id, tone, user_says
from .world import World, until

HEARTBEAT = {"type": "session.heartbeat"}

#: More than every buffer between a server and a client that does not read.
ENDLESS = {"audio_ms": 60_000, "pace": "burst"}


async def speak(caller: Caller) -> None:
    """Audio in real time, for as long as anybody listens."""
    with contextlib.suppress(ConnectionError):
        while True:
            await caller.send(append(tone(20, 0.5)))
            await asyncio.sleep(0.02)


async def test_b03_an_abandoned_takeover_never_strands_the_session(world: World) -> None:
    """Case B-03. B resumes and is gone at once: either A still owns the session and lives, or A was told."""
    grace_s, delays_s = 1.5, (0.0, 0.001, 0.005, 0.02)
    await world.serve({"limits.max_sessions": 50, "lease.disconnect_grace_s": grace_s})

    async def run(number: int) -> bool:
        caller = await world.call(session=MANUAL)
        speaking = asyncio.create_task(speak(caller))
        intruder = await caller.try_resume()
        await asyncio.sleep(delays_s[number % len(delays_s)])
        intruder.socket.reset()
        ending = asyncio.shield(caller.connection.socket.ending)
        replaced = await asyncio.wait({ending}, timeout=grace_s / 2)
        if replaced[0]:
            assert ending.result().code == 4001
            assert caller.connection.events[-1] == caller.connection.named("session.replaced")[0]
            await caller.resume()
        else:
            await asyncio.sleep(4 * grace_s)
        await caller.send(HEARTBEAT)
        await caller.expect("session.heartbeat_ack")
        speaking.cancel()
        await caller.hang_up()
        return bool(replaced[0])

    outcomes = await asyncio.gather(*(run(number) for number in range(50)))
    assert True in outcomes, "no takeover got through: this showed nothing"


async def test_b06_a_half_open_ghost_does_not_lock_its_client_out(world: World) -> None:
    """Case B-06. The old connection is dead and nobody knows it; the new one has the session at once."""
    await world.serve({"transport.ping_interval_s": 30, "transport.ping_timeout_s": 30})
    proxy = await world.proxy()
    caller = await world.call({"audio_ms": 3000, "chunk_ms": 40}, via=proxy.through(world.url))
    response_id = await caller.ask()
    proxy.newest.blackhole()
    async with asyncio.timeout(1):
        resumed = await caller.resume()
    assert not resumed["replay"]["gap"]
    assert (await caller.done(response_id))["status"] == "completed"
    assert len(caller.audio(response_id)) == 3000 * 48


async def test_b06_a_stalled_reader_does_not_hold_up_its_successor(world: World) -> None:
    """Case B-06 where the old connection lives, its peer reads nothing, and every buffer is full."""
    await world.serve()
    caller = await world.call(ENDLESS, receive_buffer=4096)
    old = caller.connection
    response_id = await caller.ask()
    old.socket.reading.clear()
    await until(lambda: _holds_back(world, caller.id), what="back-pressure")
    async with asyncio.timeout(1):
        resumed = await caller.resume()
    assert not resumed["replay"]["gap"]
    assert (await caller.done(response_id))["status"] == "completed"
    assert len(caller.audio(response_id)) == 60_000 * 48
    # The old one is told although it does not read; then it is reset, and its end touches nothing.
    old.socket.reading.set()
    assert (await old.ended()).code in (4001, None)
    await caller.send(HEARTBEAT)
    await caller.expect("session.heartbeat_ack")


async def _holds_back(world: World, session_id: str) -> bool:
    """Whether as much output waits as may wait."""
    state = await world.session_state(session_id)
    return state is not None and state["pending_bytes"] >= 256 * 1024


async def test_b07_strays_do_not_displace_the_owner(world: World) -> None:
    """Case B-07. No token, a wrong one, another session's, no word at all: refused, and no slot taken."""
    await world.serve({"transport.handshake_timeout_s": 0.5, "limits.max_sessions": 2})
    owner = await world.call({"audio_ms": 1500, "chunk_ms": 40})
    other = await world.call()
    response_id = await owner.ask()

    refusals = []
    for event in (
        owner.resumption(token="0" * 64),
        owner.resumption(token=other.token),
        owner.resumption() | {"session_id": "sess_" + "0" * 32},
    ):
        stray = await world.connect(query={"autostart": "0"})
        await stray.send(event | {"event_id": "stray"})
        refusals.append(await stray.error("invalid_resume_token", event_id="stray"))
        assert (await stray.ended()).code == 1008
    assert len({refusal["message"] for refusal in refusals}) == 1, "the message tells who exists"

    without_token = await world.connect(query={"autostart": "0"})
    await without_token.send({"type": "session.resume", "session_id": owner.id})
    await without_token.error("invalid_session_resume")
    assert (await without_token.ended()).code == 1008
    for query in ({"autostart": "0"}, {"resume": owner.id}):
        silent = await world.connect(query=query)
        await silent.error("config_timeout")
        assert (await silent.ended()).code == 4408

    assert (await owner.done(response_id))["status"] == "completed"
    state = await world.session_state(owner.id)
    assert state is not None
    assert state["generation"] == 1
    assert (await world.state())["slots"]["used"] == 2


async def test_a_replaced_connection_is_told_and_has_no_effect_any_more(world: World) -> None:
    """Takeover (wire contract, section 3): what it got in before counts, what it sends after does not."""
    await world.serve()
    caller = await world.call()
    old = caller.connection
    old.socket.answers_close = False
    await old.send(user_says("in time", "item_before"))
    await caller.resume()
    replaced = await old.expect("session.replaced")
    assert replaced["attachment_generation"] == 1
    with contextlib.suppress(ConnectionError):
        while old.alive:
            await old.send(user_says("too late", fresh_id("late")))
            await asyncio.sleep(0.01)
    assert (await old.ended()).code == 4001
    await caller.send(HEARTBEAT)
    await caller.expect("session.heartbeat_ack")
    assert [event["item"]["id"] for event in caller.events("conversation.item.added")] == ["item_before"]


async def test_of_two_resumes_with_one_token_the_later_has_the_session(world: World) -> None:
    """Takeover (wire contract, section 3). The first did not prove that it has its new token."""
    await world.serve()
    caller = await world.call()
    caller.reset()
    first = await caller.try_resume()
    await first.expect("session.resumed")
    resumed = await caller.resume()
    assert resumed["attachment_generation"] == 3
    assert (await first.ended()).code == 4001
    await caller.send(HEARTBEAT)
    await caller.expect("session.heartbeat_ack")


async def test_a_proven_token_is_the_only_one_that_is_good(world: World) -> None:
    """Rotation in two phases (wire contract, section 3)."""
    await world.serve()
    caller = await world.call()
    first_token = caller.token
    caller.reset()
    await caller.resume()
    caller.reset()
    await caller.resume(token=first_token)  # nothing was proven: a lost reply never locks a client out
    await caller.send(HEARTBEAT)
    await caller.expect("session.heartbeat_ack")
    caller.reset()
    refused = await caller.try_resume(token=first_token)
    await refused.error("invalid_resume_token")
    await caller.resume()
