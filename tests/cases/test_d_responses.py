"""Group D of the known cases: when a response begins, what it consists of, and that it ends exactly once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from .client import AMP, MANUAL, TURN, Caller, append, respond, tone, update, user_says
from .wire import Event
from .world import World, until

LONG: Event = {"audio_ms": 30_000, "chunk_ms": 20}
BURST: Event = {"audio_ms": 400, "pace": "burst"}

CANCEL: Event = {"type": "response.cancel"}
#: In a session of ``duplex=1`` without a detector a commit starts a response by itself.
COMMIT: Event = {"type": "input_audio_buffer.commit"}

# --------------------------------------------------------------------------- create and cancel


async def test_d01_a_create_beside_an_active_response_is_refused_and_changes_nothing(world: World) -> None:
    """Case D-01. One error, at once; the active response goes on to its end."""
    await world.serve()
    caller = await world.call({"audio_ms": 1000, "chunk_ms": 20})
    response_id = await caller.ask()
    await caller.expect("response.output_audio.delta")
    asked = time.monotonic()
    await caller.send(respond() | {"event_id": "c2"})
    await caller.error("conversation_already_has_active_response", event_id="c2")
    assert time.monotonic() - asked < 0.5  # the rest of 100 ms is room for a busy machine
    assert (await caller.done(response_id))["status"] == "completed"
    assert len(caller.events("response.created")) == len(caller.connection.named("error")) == 1


async def test_d01_a_create_behind_the_speech_that_creates_one_is_refused(world: World) -> None:
    """Case D-01, in the gap between the detector's turn and its ``response.created``."""
    await world.serve()
    caller = await world.call(BURST, session=AMP)
    await caller.send(append(TURN), respond() | {"event_id": "c2"})
    await caller.error("conversation_already_has_active_response", event_id="c2")
    assert (await caller.done())["status"] == "completed"
    await caller.quiet()
    assert len(caller.events("response.created")) == 1


async def test_d03_a_cancel_of_nothing_is_an_error_and_no_more(world: World) -> None:
    """Case D-03, invariant 95. Before any response, twice, and right behind the end of one."""
    await world.serve()
    caller = await world.call(LONG, BURST)
    await caller.send(CANCEL | {"event_id": "early"})
    error = await caller.error("response_cancel_not_active", event_id="early")
    assert error["message"].startswith("Cancellation failed")
    await caller.ask()
    await caller.expect("response.output_audio.delta")
    await caller.send(CANCEL, CANCEL | {"event_id": "again"})
    await caller.error("response_cancel_not_active", event_id="again")
    await caller.answer()
    await caller.send(CANCEL | {"event_id": "late"})
    await caller.error("response_cancel_not_active", event_id="late")
    assert (await caller.answer())["status"] == "completed"
    statuses = [event["response"]["status"] for event in caller.events("response.done")]
    assert statuses == ["cancelled", "completed", "completed"]


@pytest.mark.parametrize("one_segment", [True, False])
async def test_d05_a_cancel_before_the_first_output_leaves_none(world: World, one_segment: bool) -> None:
    """Case D-05. Created, cancelled, no delta ever, whether the model was asked yet or not."""
    await world.serve()
    caller = await world.call(BURST | {"stall_first_ms": 1000}, BURST | {"text": "second"})
    if one_segment:
        await caller.send(user_says("hello"), respond(), CANCEL)
    else:
        await caller.ask()
        await until(lambda: world.calls(caller.id, "generate"), what="a model that was asked")
        await caller.send(CANCEL)
    sent = time.monotonic()
    first = await caller.done()
    assert time.monotonic() - sent < 0.8  # before the model would have begun
    assert (first["status"], first["output"]) == ("cancelled", [])
    second = await caller.answer()
    assert second["status"] == "completed"
    assert caller.transcript(second["id"]) == "second"  # each response has a script of its own
    assert caller.audio(first["id"]) == b""
    assert caller.transcript(first["id"]) == ""
    assert caller.connection.named("error") == []


# --------------------------------------------------------------------------- turns and their answers


def _turns(caller: Caller) -> list[str]:
    kinds = ("input_audio_buffer.committed", "response.created")
    return [event["type"] for _, event in sorted(caller.record.events.items()) if event["type"] in kinds]


@pytest.mark.parametrize("acknowledged", [False, True])
async def test_d07_every_turn_in_sequence_is_answered(world: World, acknowledged: bool) -> None:
    """Case D-07. Each turn waits for the end of the answer before it, or for the end of its playback."""
    await world.serve()
    caller = await world.call(BURST, session=AMP)
    for _ in range(5):
        await caller.send(append(TURN))
        done = await caller.done()
        assert done["status"] == "completed"
        if acknowledged:
            await caller.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 400})
            await caller.expect("playback.acknowledged")
    assert _turns(caller) == ["input_audio_buffer.committed", "response.created"] * 5


async def test_d07_every_turn_that_interrupts_is_answered(world: World) -> None:
    """Case D-07. Each turn cancels the answer before it and gets its own."""
    await world.serve()
    caller = await world.call(*[LONG] * 4, BURST, session=AMP)
    for _ in range(4):
        await caller.send(append(TURN))
        await caller.expect("response.output_audio.delta")
    await caller.send(append(TURN))
    statuses = [(await caller.done())["status"] for _ in range(2)]
    assert statuses == ["cancelled", "completed"]
    assert _turns(caller) == ["input_audio_buffer.committed", "response.created"] * 5
    ended = [event["response"]["status"] for event in caller.events("response.done")]
    assert ended == ["cancelled"] * 4 + ["completed"]


async def test_d08_a_model_that_never_stops_is_stopped_and_one_that_never_answers_fails(world: World) -> None:
    """Case D-08. Both sessions are usable afterwards."""
    await world.serve({"limits.response_timeout_s": 0.5, "limits.max_response_s": 1})
    endless = await world.call({"audio_ms": 60_000, "pace": "burst"}, BURST)
    hanging = await world.call({"hang": True}, BURST)
    stopped, failed = await asyncio.gather(endless.answer(), hanging.answer())
    assert (stopped["status"], stopped["status_details"]["reason"]) == ("incomplete", "max_output_tokens")
    assert (failed["status"], failed["status_details"]["error"]["code"]) == ("failed", "model_timeout")
    for caller in (endless, hanging):
        assert (await caller.answer())["status"] == "completed"
        assert caller.connection.named("error") == []


@pytest.mark.parametrize("paced", [True, False])
@pytest.mark.parametrize("seconds", [(0.5, 1.0, 1.5, 2.0), pytest.param((10.0,), marks=pytest.mark.slow)])
async def test_d09_the_last_commit_is_answered_however_the_audio_came(
    world: World, seconds: tuple[float, ...], paced: bool
) -> None:
    """Case D-09. 80 ms every 80 ms, or everything at once: committed, transcribed, answered."""
    await world.serve({"limits.max_sessions": 4, "limits.max_pending_input_bytes": 2**20})
    heard = {"audio": {"input": {"turn_detection": None, "transcription": {"model": "whisper-1"}}}}

    async def run(length_s: float) -> None:
        caller = await world.call(BURST | {"input_transcript": "every word"}, session=heard)
        frames = [append(tone(80, 0.5))] * round(length_s * 1000 / 80)
        if paced:
            for frame in frames:
                await caller.send(frame)
                await asyncio.sleep(0.08)
            await caller.send(COMMIT)
        else:
            await caller.send(*frames, COMMIT)
        await caller.expect("input_audio_buffer.committed")
        assert (await caller.done())["status"] == "completed"
        completed = "conversation.item.input_audio_transcription.completed"
        if not caller.events(completed):
            await caller.expect(completed)
        assert [event["transcript"] for event in caller.events(completed)] == ["every word"]
        assert caller.connection.named("error") == []

    await asyncio.gather(*map(run, seconds))


@pytest.mark.parametrize("silence_s", [2.5, pytest.param(10, marks=pytest.mark.slow)])
async def test_d10_silence_is_no_failure(world: World, silence_s: float) -> None:
    """Case D-10. Every internal timeout is shorter than the silence, beside which others talk."""
    await world.serve(
        {
            "limits.max_sessions": 3,
            "limits.response_timeout_s": 1,
            "transport.send_timeout_s": 1,
            "transport.handshake_timeout_s": 1,
            "limits.input_stall_ms": 500,
        }
    )
    silent, *talking = [await world.call(BURST, session=AMP) for _ in range(3)]
    end = time.monotonic() + silence_s
    while time.monotonic() < end:
        for caller in talking:
            await caller.send(append(TURN))
            assert (await caller.done())["status"] == "completed"
        await asyncio.sleep(0.2)
    await silent.send(append(TURN))
    assert (await silent.done())["status"] == "completed"
    assert silent.connection.named("error") == []


# --------------------------------------------------------------------------- errors without side effects


async def test_d11_what_is_refused_has_no_effect(world: World) -> None:
    """Case D-11. One error each: no item, no slot, nothing committed."""
    await world.serve()
    stranger = await world.connect(query={"model": "nope"})
    await stranger.error("model_not_found")
    assert (await stranger.ended()).code == 1008
    early = await world.connect(query={"autostart": "0", "duplex": "1"})
    await early.send(COMMIT | {"event_id": "early"})
    await early.error("session_not_open", event_id="early")
    assert (await world.state())["slots"]["used"] == 0
    assert [event["type"] for event in stranger.events + early.events] == ["error", "error"]


async def test_d11_another_model_is_refused_in_an_update(world: World) -> None:
    """Case D-11: the session keeps its model and all else that it had."""
    await world.serve()
    caller = await world.call(BURST)
    await caller.send(update(model="nope", instructions="leaks") | {"event_id": "u1"})
    await caller.error("invalid_event", event_id="u1", param="session.model")
    await caller.send(update())
    session = (await caller.expect("session.updated"))["session"]
    assert session["model"] == "scripted"
    assert session.get("instructions") != "leaks"
    assert len(caller.connection.named("error")) == 1
    assert (await caller.answer())["status"] == "completed"


async def test_d13_every_update_is_acknowledged_before_what_depends_on_it(world: World) -> None:
    """Case D-13. Five accepted, one refused, and audio behind them that only the last of them explains."""
    await world.serve()
    caller = await world.call({"echo_input": True, "pace": "burst"}, session=MANUAL)
    ulaw = bytes(range(256)) * 16
    await caller.send(
        update(instructions="be brief"),
        update(max_output_tokens=100),
        update(audio={"output": {"speed": 1.0}}),
        update(audio={"input": {"turn_detection": {"type": "nope"}}}) | {"event_id": "refused"},
        update(tool_choice="none"),
        update(audio={"input": {"format": {"type": "audio/pcmu"}}}),
        append(ulaw),
        COMMIT,
    )
    await caller.error("invalid_event", event_id="refused")
    await caller.done()
    events = [event for _, event in sorted(caller.record.events.items())]
    kinds = [event["type"] for event in events]
    updates = [event["session"] for event in events if event["type"] == "session.updated"][1:]
    assert len(updates) == 5
    assert kinds.index("input_audio_buffer.committed") > max(
        at for at, kind in enumerate(kinds) if kind == "session.updated"
    )
    assert all({"instructions", "audio", "tool_choice", "extra_body"} <= set(session) for session in updates)
    assert [session["tool_choice"] for session in updates] == ["auto"] * 3 + ["none"] * 2
    assert updates[-1]["audio"]["input"]["format"]["type"] == "audio/pcmu"
    assert len(caller.audio()) == 6 * len(ulaw)  # a byte at 8 kHz is three samples at 24


# --------------------------------------------------------------------------- what a response consists of

MESSAGE: Event = {"type": "message", "audio_ms": 200, "text": "one two three"}
CALL: Event = {"type": "function_call", "name": "look", "arguments": '{"at": 1}'}

#: Items of a response by the events that must tell of each, in order, without repetition.
OF_MESSAGE = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
]
OF_CALL = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]


def _story(caller: Caller, item: Event) -> list[str]:
    """Kinds of the ``response.*`` events about an item, each kind once, in the order of first mention."""
    told: list[str] = []
    for _, event in sorted(caller.record.events.items()):
        about = event.get("item_id") or event.get("item", {}).get("id")
        if about == item["id"] and event["type"].startswith("response.") and event["type"] not in told:
            told.append(event["type"])
    return told


@pytest.mark.parametrize(
    "items",
    [[MESSAGE, CALL, MESSAGE], [MESSAGE, CALL], [CALL], [CALL, CALL], []],
    ids=["text tool text", "audio first", "tool only", "two tools", "empty"],
)
async def test_d12_every_item_is_told_of_whole_and_listed_at_its_index(
    world: World, items: list[dict[str, Any]]
) -> None:
    """Case D-12. No audio event without audio; ids and indexes are those of ``response.done``."""
    await world.serve()
    caller = await world.call({"items": items, "pace": "burst"})
    done = await caller.answer()
    assert [item["type"] for item in done["output"]] == [item["type"] for item in items]
    for index, item in enumerate(done["output"]):
        assert item["status"] == "completed"
        expected = OF_CALL if item["type"] == "function_call" else OF_MESSAGE
        story = _story(caller, item)
        assert (story[0], story[-1]) == (expected[0], expected[-1])
        assert sorted(story) == sorted(expected)
        added = [e for e in caller.events("response.output_item.added") if e["item"]["id"] == item["id"]]
        assert [event["output_index"] for event in added] == [index]
    silent = not any(item["type"] == "message" for item in items)
    assert silent == (caller.events("response.output_audio.done") == [])


async def test_d12_a_cancel_during_the_second_item_leaves_the_first_completed(world: World) -> None:
    """Case D-12."""
    await world.serve()
    long = MESSAGE | {"audio_ms": 30_000}
    caller = await world.call({"items": [MESSAGE, long], "chunk_ms": 20})
    await caller.ask()
    await caller.expect("response.output_item.done")
    await caller.expect("response.output_audio.delta")
    await caller.send(CANCEL)
    done = await caller.done()
    assert [item["status"] for item in done["output"]] == ["completed", "incomplete"]
    ended = [event["item"]["status"] for event in caller.events("response.output_item.done")]
    assert ended == ["completed", "incomplete"]


# --------------------------------------------------------------------------- the last sample, and owners


@pytest.mark.parametrize(("pace", "lengths"), [("burst", range(1, 1240, 25)), ("realtime", (237, 241))])
async def test_d14_no_sample_is_missing_at_the_end(world: World, pace: str, lengths: range) -> None:
    """Case D-14. Lengths that fill no chunk; that it is the ramp, once, is checked of every stream."""
    await world.serve()
    caller = await world.call(*({"audio_ms": ms, "chunk_ms": 80, "pace": pace} for ms in lengths))
    for ms in lengths:
        done = await caller.answer()
        assert len(caller.audio(done["id"])) == ms * 48
        ended = caller.events("response.output_audio.done", done["id"])[0]["server_event_seq"]
        deltas = caller.events("response.output_audio.delta", done["id"])
        assert all(event["server_event_seq"] < ended for event in deltas)


#: An answer of every kind, and the status with which it ends.
KINDS: dict[str, tuple[Event, str]] = {
    "speak": (BURST, "completed"),
    "listen": ({"listen": True}, "completed"),
    "cancelled": (LONG, "cancelled"),
    "failed": ({"fail_at_chunk": 2, "pace": "burst"}, "failed"),
    "tool": ({"items": [CALL], "pace": "burst"}, "completed"),
}


async def test_d15_every_event_of_a_response_names_it(world: World) -> None:
    """Case D-15. Twenty answers of every kind; each stream is held against the schema besides."""
    await world.serve()
    caller = await world.call(session=MANUAL)
    for _ in range(4):
        for kind, (script, status) in KINDS.items():
            await caller.script(script)
            response_id = await caller.ask()
            if kind == "cancelled":
                await caller.expect("response.output_audio.delta")
                await caller.send(CANCEL)
            done = await caller.done(response_id)
            assert done["status"] == status, kind
            if kind == "listen":
                assert done["output"] == []
                assert caller.audio(response_id) == b""
    known = {event["response"]["id"] for event in caller.events("response.created")}
    assert len(known) == 20
    for event in caller.record.events.values():
        if event["type"].startswith("response."):
            assert (event.get("response_id") or event["response"]["id"]) in known, event
