"""Group G of the known cases: a call is answered once, whenever its result comes, on whatever connection."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from .client import AMP, MANUAL, Caller, append, fresh_id, respond, tone
from .wire import Event
from .world import World

CANCEL: Event = {"type": "response.cancel"}
COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}
ROOM: dict[str, object] = {"limits.max_pending_input_bytes": 16 * 1024 * 1024}

TELL: Event = {"echo_history": True, "pace": "burst", "audio_ms": 20}

#: Arguments that come in several pieces.
LONG_ARGUMENTS = json.dumps({"city": "word " * 40})


def call(*names: str, arguments: str = "{}", **script: Any) -> Event:
    calls = [{"name": name, "arguments": arguments} for name in names]
    return {"items": [{"type": "function_call", **made} for made in calls], "pace": "burst", **script}


def result(call_id: str, output: Any = "done", **fields: Any) -> Event:
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    return {"type": "conversation.item.create", "item": item, "event_id": fresh_id(), **fields}


async def call_ids(caller: Caller) -> list[str]:
    """Ask for an answer, and wait for its end: the ids of the calls in it."""
    response = await caller.answer()
    return [item["call_id"] for item in response["output"] if item["type"] == "function_call"]


async def history(caller: Caller, *, extra: Event | None = None) -> list[tuple[str, str | None]]:
    """Type and text of every item that the model is given, as it tells in one more answer."""
    await caller.script(TELL)
    await caller.send(respond(**(extra or {})))
    response = await caller.done()
    assert response["status"] == "completed"
    told = json.loads(caller.transcript(response["id"]))
    return [(item["type"], item["text"]) for item in told]


async def refused(caller: Caller, event: Event, code: str, **fields: Any) -> None:
    """``event`` is answered by one error that names it."""
    await caller.send(event)
    await caller.error(code, event_id=event["event_id"], **fields)


# ---------------------------------------------------------------------- parallel calls, and results


async def test_g01_two_results_and_two_requests_without_waiting(world: World) -> None:
    """Case G-01. The first request runs, the second is refused by name; the next sees both, in call order."""
    await world.serve()
    caller = await world.call(call("first", "second"), {"audio_ms": 200})
    first, second = await call_ids(caller)
    too_early = respond() | {"event_id": "too_early"}
    await caller.send(result(second, "two"), respond(), result(first, "one"), too_early)
    await caller.error("conversation_already_has_active_response", event_id="too_early")
    assert (await caller.done())["status"] == "completed"
    told = await history(caller)
    assert told[1:5] == [
        ("function_call", "{}"),
        ("function_call_output", "one"),
        ("function_call", "{}"),
        ("function_call_output", "two"),
    ]
    assert [kind for kind, _ in told].count("function_call_output") == 2


async def test_g02_results_that_fit_no_call_are_refused_by_name(world: World) -> None:
    """Case G-02. Unknown, of another session, of a wrong form; a large one is a result like any other."""
    # A large item goes out twice; a log that held only one of the two would answer with a snapshot.
    await world.serve(ROOM | {"journal.max_bytes": 32 * 1024 * 1024})
    caller, other = [await world.call(call("look")) for _ in range(2)]
    (own,), (foreign,) = [await call_ids(one) for one in (caller, other)]
    for call_id in ("call_nobody", foreign):
        await refused(caller, result(call_id), "unknown_function_call_output", param="item.call_id")
    for output in ({"a": 1}, 5, None, ["a"]):
        await refused(caller, result(own, output), "invalid_event", param="item.output")
    await caller.send(result(own, "x" * 5_000_000))
    added = await caller.expect("conversation.item.added")
    assert len(added["item"]["output"]) == 5_000_000
    assert caller.connection.alive


async def test_g02_a_result_may_come_with_the_request_that_wants_it(world: World) -> None:
    """Case G-02. The call is in the conversation, the result in ``response.create.response.input``."""
    await world.serve()
    caller = await world.call(call("look"))
    (call_id,) = await call_ids(caller)
    items = [{"type": "function_call_output", "call_id": call_id, "output": "found"}]
    told = await history(caller, extra={"input": items})
    assert ("function_call_output", "found") in told


@pytest.mark.parametrize("across_a_resume", [False, True])
async def test_g03_a_result_counts_once(world: World, across_a_resume: bool) -> None:
    """Case G-03. The second is refused by name, runs no model and leaves no item."""
    await world.serve()
    caller = await world.call(call("look"))
    (call_id,) = await call_ids(caller)
    await caller.send(result(call_id, "once"))
    await caller.expect("conversation.item.done")
    if across_a_resume:
        caller.reset()
        await caller.resume()
    await refused(caller, result(call_id, "twice"), "duplicate_function_call_output", param="item.call_id")
    assert len(await world.calls(caller.id, "generate")) == 1
    assert [text for kind, text in await history(caller) if kind == "function_call_output"] == ["once"]


# ---------------------------------------------------------------------- interruptions

#: Where the speech comes: the script, the event before it, and what becomes of the call's result.
POINTS: dict[str, tuple[Event, str, str]] = {
    "before the arguments": ({"stall_first_ms": 60_000, **call("look")}, "response.created", "no call"),
    "within the arguments": (
        call("look", arguments=LONG_ARGUMENTS, pace="realtime", chunk_ms=400),
        "response.function_call_arguments.delta",
        "stale",
    ),
    "behind the arguments": (
        {
            "items": [
                {"type": "function_call", "name": "look", "arguments": "{}"},
                {"type": "message", "audio_ms": 60_000},
            ]
        },
        "response.output_item.done",
        "accepted",
    ),
    "while the tool runs": (call("look"), "response.done", "accepted"),
}


@pytest.mark.parametrize("point", POINTS)
async def test_g04_no_interruption_leaves_a_call_in_progress(world: World, point: str) -> None:
    """Case G-04. Whatever becomes of the call, its late result starts nothing and the next answer comes."""
    script, before, fate = POINTS[point]
    await world.serve()
    caller = await world.call(script, {"audio_ms": 40}, session=AMP)
    await caller.ask()
    if before != "response.created":
        await caller.expect(before)
    await caller.send(append(tone(300, 0.9)))
    if before != "response.done":
        assert (await caller.done())["status"] == "cancelled"
    await caller.send(append(tone(700, 0)))
    assert (await caller.done())["status"] == "completed"

    calls = [
        event["item"]
        for event in caller.events("response.output_item.added")
        if event["item"]["type"] == "function_call"
    ]
    assert bool(calls) == (fate != "no call")
    for made in calls:
        late = result(made["call_id"], "late")
        if fate == "stale":
            await refused(caller, late, "stale_function_call_output")
        else:
            await caller.send(late)
            await caller.expect("conversation.item.done")
    assert len(await world.calls(caller.id, "generate")) == 2
    told = await history(caller)
    assert (("function_call_output", "late") in told) == (fate == "accepted")


async def test_g05_a_call_of_a_cancelled_answer_is_not_announced_as_complete(world: World) -> None:
    """Case G-05. Two hundred cancels around the moment in which the call appears."""
    at_once, chance = 5, random.Random(5)
    await world.serve({"limits.max_sessions": at_once})
    script: Event = {
        "items": [
            {"type": "message", "audio_ms": 10, "text": "so"},
            {"type": "function_call", "name": "look", "arguments": LONG_ARGUMENTS},
        ],
        "chunk_ms": 1,
    }

    async def run(caller: Caller) -> str:
        response_id = await caller.ask()
        await asyncio.sleep(chance.uniform(0, 0.04))
        await caller.send(CANCEL)
        response = await caller.done(response_id)
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        ended = [
            event["item"]["id"]
            for event in caller.events("response.output_item.done", response_id)
            if event["item"]["status"] == "completed"
        ]
        complete = bool(caller.events("response.function_call_arguments.done", response_id))
        if response["status"] == "cancelled":
            for made in calls:
                assert (made["status"] == "completed") == (made["id"] in ended)
                assert complete or made["status"] == "incomplete"
        else:
            assert complete
        return f"{response['status']}, {'a call' if calls else 'no call'}"

    callers = [await world.call(script) for _ in range(at_once)]
    outcomes: list[str] = []
    for _ in range(40):
        outcomes += await asyncio.gather(*map(run, callers))
    assert set(outcomes) >= {"cancelled, a call", "cancelled, no call"}, "nothing was cut in the middle"


# ---------------------------------------------------------------------- while a call is pending


async def test_g07_speech_while_a_call_is_pending_is_the_next_turn(world: World) -> None:
    """Case G-07."""
    await world.serve(ROOM)
    caller = await world.call(call("look"), {"echo_input": True, "pace": "burst"}, session=MANUAL)
    (call_id,) = await call_ids(caller)
    speech = tone(5000, 0.5)
    await caller.send(*(append(speech[start : start + 9600]) for start in range(0, len(speech), 9600)))
    await caller.send(COMMIT, result(call_id))
    await caller.expect("input_audio_buffer.committed")
    await caller.send(respond())
    assert caller.audio((await caller.done())["id"]) == speech


@pytest.mark.parametrize("moment", ["before the call", "before the result"])
async def test_g08_a_result_after_a_reconnect_is_taken_once(world: World, moment: str) -> None:
    """Case G-08. Also when the call itself was made while nobody was connected."""
    await world.serve()
    caller = await world.call(call("look", stall_first_ms=100 if moment == "before the call" else 0))
    response_id = await caller.ask()
    if moment == "before the result":
        await caller.done(response_id)
    caller.reset()
    await asyncio.sleep(0.2)
    await caller.resume()
    if moment == "before the call":
        await caller.done(response_id)
    (done,) = caller.events("response.function_call_arguments.done", response_id)
    await caller.send(result(done["call_id"], "found"))
    await caller.expect("conversation.item.done")
    assert ("function_call_output", "found") in await history(caller)


async def test_g08_a_result_for_a_session_that_is_over_is_unknown(world: World) -> None:
    """Case G-08. Ids of calls are never used again."""
    await world.serve({"lease.disconnect_grace_s": 0.1})
    made: list[str] = []
    for _ in range(5):
        caller = await world.call(call("look", "listen"))
        for old in made:
            await refused(caller, result(old), "unknown_function_call_output")
        made += await call_ids(caller)
        await caller.hang_up()
    assert len(set(made)) == 10


async def test_three_hundred_round_trips_over_many_connections(world: World) -> None:
    """Every tenth result goes out on a connection of its own; the model is given all of them, in order."""
    await world.serve()
    caller = await world.call(call("look"))
    (call_id,) = await call_ids(caller)
    for number in range(300):
        if number % 10 == 9:
            caller.reset()
            await caller.resume()
        await caller.send(result(call_id, f"result {number}"), respond())
        done = await caller.expect("response.function_call_arguments.done")
        call_id = done["call_id"]
        await caller.done(done["response_id"])
    told = await history(caller)
    assert [text for kind, text in told if kind == "function_call_output"] == [
        f"result {number}" for number in range(300)
    ]
    assert [kind for kind, _ in told].count("function_call") == 301


@pytest.mark.parametrize("scheduling", ["interrupt", "when_idle", "silent"])
async def test_a_result_says_when_it_wants_an_answer(world: World, scheduling: str) -> None:
    """Wire contract, section 5: at once, behind the answer that is running, or when the client asks."""
    await world.serve()
    running = {"audio_ms": 60_000 if scheduling == "interrupt" else 300}
    caller = await world.call(call("look"), running, {"audio_ms": 20})
    (call_id,) = await call_ids(caller)
    response_id = await caller.ask()
    await caller.send(result(call_id, scheduling=scheduling))
    ended = await caller.done(response_id)
    assert ended["status"] == ("cancelled" if scheduling == "interrupt" else "completed")
    if scheduling != "silent":
        assert (await caller.done())["status"] == "completed"
    await caller.send({"type": "session.heartbeat"})
    await caller.expect("session.heartbeat_ack")
    assert len(await world.calls(caller.id, "generate")) == (2 if scheduling == "silent" else 3)
