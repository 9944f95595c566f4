"""A connection that is cut costs nothing: what is heard is what an uncut connection would have brought."""

from __future__ import annotations

import random

import pytest

from counterpoint.models.scripted.content import ramp
from counterpoint.testing.proxy import Faults

from .client import PATIENCE_S, Caller, Connection
from .wire import Event
from .world import World, until

CUTS = 10
AUDIO_MS = 2400
SCRIPT: Event = {"audio_ms": AUDIO_MS, "chunk_ms": 20, "words": 40}
UNCUT = ramp(1, 0, AUDIO_MS * 24)
WORDS = " ".join(f"word{n}" for n in range(1, 41))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("pace", ["realtime", "burst"])
async def test_an_answer_that_is_cut_ten_times_is_heard_whole(world: World, seed: int, pace: str) -> None:
    """Numbers stay dense over all connections, which is checked by the harness for every event."""
    await world.serve({"lease.disconnect_grace_s": 10})
    proxy = await world.proxy()
    chance = random.Random(seed)
    caller = await world.call(SCRIPT | {"pace": pace})
    response_id = await caller.ask()
    for _ in range(CUTS):
        caller.reset()
        resumed = False
        while not resumed:
            # The cut may fall into the upgrade, into ``session.resumed``, or in the middle of any event.
            proxy.to_client = Faults(reset_at=chance.randrange(100, 24_000))
            resumed = await caller.resume_unless_cut(via=proxy.through(world.url))
        if not caller.has_ended(response_id):
            await caller.connection.happens("response.done")
    caller.reset()
    await caller.resume()
    if not caller.has_ended(response_id):
        await caller.done(response_id)
    assert caller.audio(response_id) == UNCUT
    assert caller.transcript(response_id) == WORDS
    assert sorted(caller.record.events) == list(range(1, caller.cursor + 1))
    assert len(proxy.connections) >= CUTS


async def test_a_stock_client_that_is_cut_hears_an_answer_whole(world: World) -> None:
    """It resumes by its query, and cannot send an event for that."""
    await world.serve({"lease.disconnect_grace_s": 10})
    proxy = await world.proxy()
    chance = random.Random(4)
    caller = await world.call(SCRIPT, stock=True)
    response_id = await caller.ask()
    for _ in range(CUTS):
        caller.reset()
        proxy.to_client = Faults(reset_at=chance.randrange(3_000, 24_000))
        await _resume_by_query(world, caller, proxy.through(world.url))
        if not caller.has_ended(response_id):
            await caller.connection.happens("response.done")
    caller.reset()
    await _resume_by_query(world, caller, world.url)
    if not caller.has_ended(response_id):
        await caller.done(response_id)
    assert caller.audio(response_id) == UNCUT
    assert caller.transcript(response_id) == WORDS


async def _resume_by_query(world: World, caller: Caller, url: str) -> None:
    query = {
        "resume": caller.id,
        "resume_token": caller.token,
        "last_received_server_event_seq": str(caller.cursor),
    }
    connection: Connection = await world.connect(url, query=query)
    created = await connection.expect("session.created")
    assert created["session"]["id"] == caller.id
    caller.adopt(connection, created)


async def test_two_people_at_once_do_not_hear_each_other(world: World) -> None:
    """Each hears the own answer only, whatever the other does to the connection meanwhile."""
    await world.serve()
    scripts = {name: SCRIPT | {"text": f"only {name} hears this", "words": None} for name in ("ann", "ben")}
    ann, ben = [await world.call(scripts[name]) for name in ("ann", "ben")]
    answers = [await ann.ask(), await ben.ask()]
    ann.reset()
    await ann.resume()
    await ben.done(answers[1])
    if not ann.has_ended(answers[0]):
        await ann.done(answers[0])
    for name, caller, response_id in (("ann", ann, answers[0]), ("ben", ben, answers[1])):
        assert caller.transcript() == f"only {name} hears this"
        assert caller.audio() == UNCUT
        assert {event["response_id"] for event in caller.events("response.output_audio.delta")} == {
            response_id
        }


async def test_one_more_than_there_is_room_for_is_told_when_to_try_again(world: World) -> None:
    """Over ``limits.max_sessions``: an error with a hint, close 1013, no session, and nobody is disturbed."""
    await world.serve({"limits.max_sessions": 2})
    ann, ben = await world.call(SCRIPT), await world.call(SCRIPT)
    response_id = await ann.ask()
    third = await world.connect()
    error = await third.error("resource_exhausted", type="rate_limit_error")
    assert error["retry_after_ms"] > 0
    assert (await third.ended()).code == 1013
    assert third.named("session.created") == []
    assert (await ann.done(response_id))["status"] == "completed"
    await ben.hang_up()
    await until(lambda: world.server.manager.slots.used == 1, within=PATIENCE_S)
    await world.call()
