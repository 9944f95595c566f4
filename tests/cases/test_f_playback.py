"""Group F of the known cases: what was heard, and a history that holds no more than that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from counterpoint.testing.invariants.history import History

from .client import AMP, BYTES_PER_MS, MANUAL, Caller, append, respond, tone, user_says
from .wire import Event
from .world import World

LONG: Event = {"audio_ms": 30_000, "chunk_ms": 20}
BURST: Event = {"audio_ms": 400, "pace": "burst"}
HISTORY: Event = {"echo_history": True, "audio_ms": 100, "pace": "burst"}

CANCEL: Event = {"type": "response.cancel"}
COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}


def truncate(item_id: str, audio_end_ms: Any, content_index: Any = 0) -> Event:
    return {
        "type": "conversation.item.truncate",
        "item_id": item_id,
        "content_index": content_index,
        "audio_end_ms": audio_end_ms,
        "event_id": "cut",
    }


def ack(played_ms: Any, **of: Any) -> Event:
    return {"type": "playback.ack", "played_ms": played_ms, **of}


def format_of(kind: str) -> Event:
    rate = {"rate": 24_000} if kind == "audio/pcm" else {}
    return {"audio": {"output": {"format": {"type": kind, **rate}}, **MANUAL["audio"]}}


async def retrieved(caller: Caller, item_id: str) -> Event:
    await caller.send({"type": "conversation.item.retrieve", "item_id": item_id})
    item: Event = (await caller.expect("conversation.item.retrieved"))["item"]
    return item


async def history(caller: Caller) -> list[Event]:
    """What the model is given; the next script must be ``HISTORY``."""
    answer = await caller.answer("what was said?")
    given: list[Event] = json.loads(answer["output"][0]["content"][0]["transcript"])
    return given


# --------------------------------------------------------------------------- truncation


@pytest.mark.parametrize(("kind", "per_ms"), [("audio/pcm", 48), ("audio/pcmu", 8), ("audio/pcma", 8)])
async def test_f01_a_truncation_beyond_the_audio_is_refused_and_changes_nothing(
    world: World, kind: str, per_ms: int
) -> None:
    """Case F-01. An error, not a clamp; to the end, shorter, and the same again are allowed."""
    await world.serve()
    caller = await world.call({"audio_ms": 3700, "pace": "burst"}, session=format_of(kind))
    caller.record.ramp = kind == "audio/pcm"
    item_id = (await caller.answer())["output"][0]["id"]
    assert len(caller.audio()) == 3700 * per_ms
    for audio_end_ms in (3760, 3701, -1, "x"):
        await caller.send(truncate(item_id, audio_end_ms))
        error = await caller.error("invalid_event", event_id="cut")
        assert error["param"] == "audio_end_ms"
    await caller.send(truncate(item_id, 1000, content_index=9))
    error = await caller.error("invalid_event", event_id="cut")
    assert error["param"] == "content_index"
    for audio_end_ms, allowed in ((3700, True), (1500, True), (2000, False), (1500, True)):
        await caller.send(truncate(item_id, audio_end_ms))
        if allowed:
            cut = await caller.expect("conversation.item.truncated", item_id=item_id)
            assert cut["audio_end_ms"] == audio_end_ms
        else:
            error = await caller.error("invalid_event", event_id="cut")
            assert error["param"] == "audio_end_ms"
    assert len(caller.connection.named("error")) == 6


@pytest.mark.parametrize("running", [True, False])
async def test_f02_a_truncation_at_0_before_the_first_frame_leaves_no_word(
    world: World, running: bool
) -> None:
    """Case F-02. While the response runs, which ends it, and after it was cancelled."""
    await world.serve()
    script = LONG | {"items": [{"type": "message", "audio_ms": 5000, "text": "never heard"}]}
    caller = await world.call(script, HISTORY)
    await caller.ask()
    item_id = (await caller.expect("response.content_part.added"))["item_id"]
    if not running:
        await caller.send(CANCEL)
        await caller.done()
    await caller.send(truncate(item_id, 0))
    if running:
        done = await caller.done()
        assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    if not caller.events("conversation.item.truncated"):
        await caller.expect("conversation.item.truncated")
    assert caller.events("conversation.item.truncated")[0]["audio_end_ms"] == 0
    kept = await retrieved(caller, item_id)
    assert kept["content"][0].get("transcript", "") == ""
    assert not any(item["text"] for item in await history(caller) if item["role"] == "assistant")
    assert caller.connection.named("error") == []


async def test_f03_a_truncation_cuts_what_the_model_is_given(world: World) -> None:
    """Case F-03. 20 words over 4 s, cut at 1 s: five words and a second of audio, wherever one looks."""
    await world.serve()
    caller = await world.call({"audio_ms": 4000, "words": 20, "pace": "burst"}, HISTORY)
    item_id = (await caller.answer())["output"][0]["id"]
    await caller.send(truncate(item_id, 1000))
    await caller.expect("conversation.item.truncated", audio_end_ms=1000)
    [part] = (await retrieved(caller, item_id))["content"]
    assert part["transcript"].split()[:5] == [f"word{n}" for n in range(1, 6)]
    assert len(part["transcript"].split()) <= 6
    assert len(part["audio"]) == 1000 * BYTES_PER_MS * 4 // 3
    [given] = [item for item in await history(caller) if item["id"] == item_id]
    assert given["text"] == part["transcript"]


# --------------------------------------------------------------------------- acknowledgements


async def test_a_model_is_given_what_was_acknowledged_through_a_whole_conversation(world: World) -> None:
    """CASE-INV-11, case F-03: 20 words over 2 s each, heard in part, as a whole, not at all."""
    await world.serve()
    spoken: Event = {"audio_ms": 2000, "words": 20, "pace": "burst"}
    heard_ms = [0, 300, 1000, 1950, 2000, 9000, 650]
    session = MANUAL | {"playback_commit_policy": "ack_only"}
    caller = await world.call(*[script for _ in heard_ms for script in (spoken, HISTORY)], session=session)
    judge, expected, read = History(), {}, 0
    for played_ms in heard_ms:
        item_id = (await caller.answer("go on"))["output"][0]["id"]
        for event in caller.connection.events[read:]:
            judge.take(event)
        for part_ms in range(0, played_ms, 500):
            await caller.send(ack(part_ms, item_id=item_id))
        await caller.send(ack(played_ms, item_id=item_id))
        judge.acknowledged(played_ms, item_id=item_id)
        expected[item_id] = min(played_ms, 2000) // 100
        read = len(caller.connection.events)
        given = {item["id"]: item["text"] or "" for item in await history(caller)}
        for known, words in expected.items():
            assert abs(len(given.get(known, "").split()) - words) <= 1, "to one word"
    for event in caller.connection.events[read:]:
        judge.take(event)


@pytest.mark.parametrize("order", ["commit first", "ack first"])
async def test_f06_an_ack_beside_a_commit_moves_no_item(world: World, order: str) -> None:
    """Case F-06. Both in one segment: the answer keeps its place before the turn that followed it."""
    await world.serve()
    caller = await world.call(BURST | {"words": 4}, HISTORY, session=MANUAL)
    done = await caller.answer()
    item_id = done["output"][0]["id"]
    await caller.send(append(tone(200, 0.5)))
    events = [COMMIT, ack(400, response_id=done["id"])]
    await caller.send(*(events if order == "commit first" else reversed(events)))
    await caller.quiet()
    spoken = caller.events("input_audio_buffer.committed")[0]["item_id"]
    given = await history(caller)
    assert [item["id"] for item in given][1:3] == [item_id, spoken]
    assert given[1]["text"] == "word1 word2 word3 word4"
    assert caller.connection.named("error") == []


async def test_f07_impossible_acks_are_clamped_and_the_position_never_falls(world: World) -> None:
    """Case F-07. Too far, backwards, and a thousand at once, all after the end of the response."""
    await world.serve()
    caller = await world.call(BURST)
    done = await caller.answer()
    positions = []
    for played_ms in (100, 50, 10_000, 0):
        await caller.send(ack(played_ms, response_id=done["id"]))
        told = await caller.expect("playback.acknowledged", response_id=done["id"])
        positions.append(told["playback"]["played_ms"])
        assert told["playback"]["played_ms"] <= told["playback"]["sent_ms"] == 400
    assert positions == [100, 100, 400, 400]
    for _ in range(10):
        await caller.send(*[ack(400, response_id=done["id"])] * 100)
    await caller.quiet()
    assert caller.connection.named("error") == []
    assert (await caller.answer())["status"] == "completed"


async def test_f07_an_ack_of_nothing_that_was_said_is_ignored(world: World) -> None:
    """Case F-07. Of an unknown, a deleted and a user's item: no error, no answer, no effect."""
    await world.serve()
    caller = await world.call(BURST)
    await caller.send(user_says("hello", "item_user"), respond())
    item_id = (await caller.done())["output"][0]["id"]
    await caller.send({"type": "conversation.item.delete", "item_id": item_id})
    await caller.expect("conversation.item.deleted")
    for unknown in ("item_user", "item_nobody", item_id):
        await caller.send(ack(100, item_id=unknown))
    await caller.send(ack(100, response_id="resp_nobody"))
    await caller.quiet()
    assert caller.events("playback.acknowledged") == []
    assert caller.connection.named("error") == []


async def test_f07_an_ack_of_what_is_not_yet_sent_counts_only_what_is(world: World) -> None:
    """Case F-07, during the response: never more than was sent."""
    await world.serve()
    caller = await world.call(LONG)
    response_id = await caller.ask()
    await caller.expect("response.output_audio.delta")
    await caller.send(ack(29_000, response_id=response_id))
    playback = (await caller.expect("playback.acknowledged"))["playback"]
    assert 0 < playback["played_ms"] <= playback["sent_ms"] <= playback["generated_ms"] < 29_000


async def test_f07_a_negative_ack_is_clamped(world: World) -> None:
    """Case F-07: impossible, hence answered with the position in force."""
    await world.serve()
    caller = await world.call(BURST)
    done = await caller.answer()
    await caller.send(ack(100, response_id=done["id"]), ack(-5, response_id=done["id"]))
    await caller.quiet()
    told = [event["playback"]["played_ms"] for event in caller.events("playback.acknowledged")]
    assert told == [100, 100]
    assert caller.connection.named("error") == []


# --------------------------------------------------------------------------- durations


@pytest.mark.parametrize(("kind", "per_ms"), [("audio/pcm", 48), ("audio/pcmu", 8), ("audio/pcma", 8)])
@pytest.mark.parametrize("audio_ms", [1, 333, 1237])
async def test_f09_every_account_of_a_duration_is_the_same(
    world: World, kind: str, per_ms: int, audio_ms: int
) -> None:
    """Case F-09. What the deltas hold, what is reported, and the longest truncation that is accepted."""
    await world.serve()
    caller = await world.call({"audio_ms": audio_ms, "pace": "burst"}, session=format_of(kind))
    caller.record.ramp = kind == "audio/pcm"
    done = await caller.answer()
    item_id = done["output"][0]["id"]
    assert len(caller.audio()) // per_ms == audio_ms
    reported = [
        event["duplex"]["audio_duration_ms"] for event in caller.events("response.output_audio.delta")
    ]
    assert sum(reported) == pytest.approx(audio_ms)
    await caller.send(ack(10_000, response_id=done["id"]))
    assert (await caller.expect("playback.acknowledged"))["playback"]["sent_ms"] == audio_ms
    await caller.send(truncate(item_id, audio_ms + 1))
    await caller.error("invalid_event", param="audio_end_ms")
    await caller.send(truncate(item_id, audio_ms))
    await caller.expect("conversation.item.truncated", audio_end_ms=audio_ms)


# --------------------------------------------------------------------------- items that were never heard

TEXT: Event = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "restored"}],
}
CALL: Event = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
OUTPUT: Event = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}


async def test_f10_items_without_audio_refuse_truncation_and_survive_an_interruption(world: World) -> None:
    """Case F-10. Restored text, a call with its result: all of it stays in history."""
    await world.serve()
    caller = await world.call(LONG | {"words": 300}, HISTORY, session=AMP)
    restored = {"text": TEXT, "call": CALL, "output": OUTPUT}
    for item_id, item in restored.items():
        await caller.send({"type": "conversation.item.create", "item": item | {"id": item_id}})
        await caller.expect("conversation.item.added")
    await caller.send(user_says("hello", "user"))
    await caller.send(respond())
    await caller.expect("response.output_audio.delta")
    for item_id in (*restored, "user", "nobody"):
        await caller.send(truncate(item_id, 0))
        await caller.error("item_truncate_invalid_item_id", event_id="cut", param="item_id")
    await caller.send(append(tone(400, 0.9) + tone(700, 0.0)))
    assert (await caller.done())["status"] == "cancelled"
    answer = await caller.done()
    given = json.loads(answer["output"][0]["content"][0]["transcript"])
    assert [item["id"] for item in given][:4] == [*restored, "user"]
    assert given[0]["text"] == "restored"
