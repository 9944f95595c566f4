"""Native models over real sockets: several voices, resume, barge-in (wire contract, sections 4 to 6)."""

from __future__ import annotations

import asyncio
from typing import Any

from counterpoint.models.scripted.content import ramp
from counterpoint.models.scripted.native import ScriptedFrames, ScriptedUnits

from .client import AMP, Caller, append, tone
from .world import World

LOUD = tone(80, 0.9)
QUIET = tone(80, 0.0)

#: A test speaks faster than real time: more of it waits for the model than the small bound of the cases.
ROOM = {"limits.max_pending_input_bytes": 1 << 20}


async def loud(caller: Caller, frames: int = 5) -> None:
    await caller.send(*[append(LOUD) for _ in range(frames)])


async def quiet(caller: Caller, frames: int) -> None:
    await caller.send(*[append(QUIET) for _ in range(frames)])


async def hear(caller: Caller, samples: int) -> None:
    """Wait until so much of the newest response has come."""
    response_id = caller.events("response.created")[-1]["response"]["id"]
    while len(caller.audio(response_id)) < 2 * samples:
        await caller.expect("response.output_audio.delta", response_id=response_id)


async def test_four_sessions_side_by_side_are_four_voices(world: World) -> None:
    """(invariant 153)"""
    await world.serve({"limits.max_sessions": 4}, plugin=ScriptedFrames({"slots": 4}))

    async def talk(number: int) -> None:
        caller = await world.call({"audio_ms": 400 + 80 * number, "text": f"voice {number}"})
        for answer in range(1, 4):
            await loud(caller)
            await quiet(caller, 12)
            response = await caller.done()
            assert response["status"] == "completed"
            samples = (400 + 80 * number) * 24
            assert caller.audio(response["id"]) == ramp(answer, 0, samples)
            assert caller.transcript(response["id"]) == f"voice {number}"
        assert len(caller.events("response.speak")) == 3

    await asyncio.gather(*(talk(number) for number in range(4)))


async def test_an_answer_goes_on_where_the_connection_was_lost(world: World) -> None:
    await world.serve(ROOM, plugin=ScriptedFrames({}))
    caller = await world.call({"audio_ms": 4000})
    await loud(caller)
    await caller.expect("response.created")
    await quiet(caller, 10)
    await hear(caller, 5 * 1920)
    caller.reset()
    await caller.resume()
    for _ in range(4):  # less at once than a slot holds
        await quiet(caller, 12)
        await asyncio.sleep(0.05)  # the model steps on a thread of its own
    response = await caller.done()
    assert response["status"] == "completed"
    assert caller.audio(response["id"]) == ramp(1, 0, 96_000)


async def test_the_client_decides_that_speech_interrupts(world: World) -> None:
    await world.serve(ROOM, plugin=ScriptedFrames({}))
    caller = await world.call({"audio_ms": 60_000}, session={**AMP, "overlap_policy": "barge_in_on_speech"})
    await loud(caller)
    await caller.expect("response.created")
    await quiet(caller, 15)
    await hear(caller, 4 * 1920)
    await loud(caller, 4)
    response = await caller.done()
    assert response["status"] == "cancelled"
    assert response["status_details"]["reason"] == "turn_detected"
    await quiet(caller, 15)
    await asyncio.sleep(0.05)  # the model steps on a thread of its own
    await loud(caller, 6)
    created = await caller.expect("response.created")
    await hear(caller, 1920)
    assert caller.audio(created["response"]["id"]).startswith(ramp(2, 0, 1920))
    await caller.send({"type": "response.cancel"})
    assert (await caller.done())["status_details"]["reason"] == "client_cancelled"


async def test_a_unit_model_listens_speaks_and_is_silent_with_its_client(world: World) -> None:
    """Nobody sends silence: the server makes it, a unit a second."""
    await world.serve(ROOM, plugin=ScriptedUnits({}))
    caller = await world.call({"audio_ms": 800})
    listen: dict[str, Any] = await caller.expect("response.listen")
    assert listen["reason"] == "listen"
    assert "response_id" not in listen
    await caller.send(append(tone(1000, 0.9)))
    response = await caller.done()
    assert caller.audio(response["id"]) == ramp(1, 0, 19_200)


async def test_a_greeting_is_asked_for_by_text(world: World) -> None:
    await world.serve(ROOM, plugin=ScriptedFrames({}))
    caller = await world.call({"audio_ms": 160, "text": "hello to you"})
    response = await caller.answer("hello")
    assert caller.transcript(response["id"]) == "hello to you"
    await caller.send({"type": "response.create", "response": {"conversation": "none"}})
    await caller.error("unsupported")
