"""Group H of the known cases: what a client sent is what the turn holds, or it is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from .client import AMP, MANUAL, append, fresh_id, respond, tone, update
from .wire import Event, frame
from .world import World

COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}
CLEAR: Event = {"type": "input_audio_buffer.clear"}
ECHO: Event = {"echo_input": True, "pace": "burst"}
ROOM: dict[str, object] = {"limits.max_pending_input_bytes": 16 * 1024 * 1024}


def numbered(event: Event) -> Event:
    return event | {"event_id": fresh_id()}


async def test_h02_bad_base64_changes_nothing(world: World) -> None:
    """Case H-02. Each is refused by name; what was in the buffer is what the turn holds."""
    await world.serve()
    caller = await world.call(ECHO, session=MANUAL)
    await caller.send(append(tone(200, 0.5)))
    kind = "input_audio_buffer.append"
    wrong: list[Any] = ["!!!!", "AAA", "_-8_", "AA\nAA", None, 5, []]
    fields: list[Event] = [*({"audio": audio} for audio in wrong), {}]
    for given in fields:
        event = numbered({"type": kind, **given})
        await caller.send(event)
        await caller.error("invalid_audio", event_id=event["event_id"])
    data_uri = "data:audio/pcm;base64," + base64.b64encode(tone(100, 0.5)).decode()
    await caller.send({"type": kind, "audio": data_uri}, COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(300, 0.5)


async def test_h03_an_empty_append_is_nothing(world: World) -> None:
    """Case H-03. A thousand of them between two that are not."""
    await world.serve(ROOM)
    caller = await world.call(ECHO, session=MANUAL)
    await caller.send(append(tone(100, 0.5)), *(append(b"") for _ in range(1000)), append(tone(100, 0.2)))
    await caller.send(COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(100, 0.5) + tone(100, 0.2)
    steps = await world.calls(caller.id, "append")
    assert len(steps) <= 3
    assert not caller.connection.named("error")


async def test_h04_too_little_makes_no_turn(world: World) -> None:
    """Case H-04. Nothing, 99 ms, what was cleared, what was committed already."""
    await world.serve()
    caller = await world.call(ECHO, session=MANUAL)
    for before in ([], [append(tone(99, 0.5))], [CLEAR, append(tone(200, 0.5)), CLEAR]):
        commit = numbered({"type": "input_audio_buffer.commit"})
        await caller.send(*before, commit)
        await caller.error("input_audio_buffer_commit_empty", event_id=commit["event_id"])
    assert not caller.events("input_audio_buffer.committed")
    again = numbered({"type": "input_audio_buffer.commit"})
    await caller.send(append(tone(100, 0.5)), COMMIT)
    await caller.expect("input_audio_buffer.committed")
    await caller.send(again)
    await caller.error("input_audio_buffer_commit_empty", event_id=again["event_id"])
    assert len(caller.events("input_audio_buffer.committed")) == 1
    assert not caller.events("response.created")


async def test_h05_a_commit_behind_the_detectors_makes_no_second_turn(world: World) -> None:
    """Case H-05."""
    await world.serve()
    caller = await world.call({"audio_ms": 40}, session=AMP)
    await caller.send(append(tone(500, 0.9)), append(tone(600, 0)))
    await caller.done()
    commit = numbered(COMMIT)
    await caller.send(append(tone(300, 0)), commit)
    await caller.error("input_audio_buffer_commit_empty", event_id=commit["event_id"])
    assert len(caller.events("input_audio_buffer.committed")) == len(caller.events("response.created")) == 1


async def test_h07_g711_stays_g711(world: World) -> None:
    """Case H-07. A second is 8,000 bytes both ways, also after an update of something else."""
    await world.serve()
    pcmu: Event = {"type": "audio/pcmu"}
    audio: Event = {"input": {"format": pcmu, "turn_detection": None}, "output": {"format": pcmu}}
    caller = await world.call({"audio_ms": 1000, "pace": "burst"}, session={"audio": audio})
    caller.record.ramp = False
    for _ in range(2):
        await caller.send(append(b"\xff" * 8000), COMMIT, respond())
        assert len(caller.audio((await caller.done())["id"])) == 8000
        await caller.send(update(instructions="be brief"))
        shown = (await caller.expect("session.updated"))["session"]["audio"]
        assert shown["input"]["format"]["type"] == shown["output"]["format"]["type"] == "audio/pcmu"


@pytest.mark.parametrize(
    "audio_input",
    [
        {"format": {"type": "g711-ulaw"}},
        {"format": {"type": "PCM16"}},
        {"format": {"type": "audio/pcm", "rate": 12345}},
        {"format": {"type": "audio/pcm", "rate": "24000"}},
        {"turn_detection": {"type": "vad"}},
        {"turn_detection": {"type": "server_vad", "threshold": 7}},
    ],
)
async def test_h08_a_value_that_is_none_is_refused_with_its_place(world: World, audio_input: Event) -> None:
    """Case H-08. Nothing is changed by it, and the message says what is allowed."""
    await world.serve()
    caller = await world.call()
    await caller.send(update(instructions="same"))
    before = (await caller.expect("session.updated"))["session"]["audio"]
    wrong = numbered(update(audio={"input": audio_input}, instructions="other"))
    await caller.send(wrong)
    error = (await caller.expect("error"))["error"]
    assert error["event_id"] == wrong["event_id"]
    assert error["param"].startswith("session.audio.input.")
    await caller.send(update())
    after = (await caller.expect("session.updated"))["session"]
    assert (after["audio"], after["instructions"]) == (before, "same")


async def test_h12_a_clear_ends_the_utterance_on_the_same_clock(world: World) -> None:
    """Case H-12. What was cleared is never said to have stopped."""
    await world.serve({"limits.max_pending_input_bytes": 16 * 1024 * 1024})
    caller = await world.call(session=AMP)
    await caller.send(append(tone(1000, 0)), append(tone(150, 0.9)), CLEAR)
    await caller.expect("input_audio_buffer.cleared")
    await caller.send(append(tone(2000, 0)), append(tone(300, 0.9)))
    started = await caller.expect("input_audio_buffer.speech_started")
    assert started["audio_start_ms"] == pytest.approx(3150 - 300, abs=40)
    assert not caller.events("input_audio_buffer.speech_stopped")


@pytest.mark.parametrize(
    ("form", "second"),
    [
        *(({"type": "audio/pcm", "rate": rate}, 2 * rate) for rate in (8000, 16_000, 22_050, 32_000, 44_100)),
        ({"type": "audio/pcmu"}, 8000),
        ({"type": "audio/pcma"}, 8000),
    ],
    ids=str,
)
async def test_h09_a_second_is_a_second_at_every_rate(world: World, form: Event, second: int) -> None:
    """Case H-09. For the model too, which gets it at its own rate."""
    await world.serve(ROOM)
    audio: Event = {"input": {"format": form, "turn_detection": None}}
    caller = await world.call(ECHO, session={"audio": audio})
    silence = bytes(second)
    await caller.send(*(append(silence[at : at + 999]) for at in range(0, second, 999)), COMMIT, respond())
    assert len(caller.audio((await caller.done())["id"])) == pytest.approx(48_000, abs=48)


async def test_h13_an_append_over_the_limit_is_refused_as_a_whole(world: World) -> None:
    """Case H-13. One append that can never fit: the limit is told, and no piece of it is in a turn."""
    await world.serve()
    caller = await world.call(ECHO, session=MANUAL)
    too_much = numbered(append(tone(3000, 0.9)))
    await caller.send(append(tone(500, 0.5)), too_much)
    error = await caller.error("invalid_audio", event_id=too_much["event_id"], param="audio")
    assert "65536" in error["message"]
    await caller.send(COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(500, 0.5)


async def test_h06_a_frame_over_the_limit_ends_the_connection_alone(world: World) -> None:
    """Case H-06. The session is resumed, and what came before the frame is in the turn."""
    await world.serve(ROOM | {"limits.max_frame_bytes": 100_000})
    caller = await world.call(ECHO, session=MANUAL)
    await caller.send(append(tone(1000, 0.5)), append(tone(2000, 0.9)))
    assert (await caller.connection.ended()).code == 1009
    await caller.resume()
    await caller.send(COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(1000, 0.5)


async def test_h13_input_over_the_room_loses_the_open_turn_whole_and_the_next_one_works(world: World) -> None:
    """Case H-13. Of a client that does not number, nothing from before the refusal is in any turn."""
    await world.serve()
    caller = await world.call(ECHO, session=MANUAL)
    pieces = [numbered(append(tone(200, 0.5))) for _ in range(10)]
    await caller.send(*pieces)
    refused = await caller.error("input_backpressure")
    assert "65536" in refused["message"]
    behind = len(pieces) - 1 - [event["event_id"] for event in pieces].index(refused["event_id"])
    await caller.send(COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(200, 0.5) * behind
    await caller.send(append(tone(300, 0.2)), COMMIT, respond())
    response_id = (await caller.done())["id"]
    assert caller.audio(response_id) == tone(300, 0.2)
    assert len(caller.connection.named("error")) == 1


@pytest.mark.parametrize("over", [-1, 0])
async def test_h06_a_message_up_to_the_limit_is_accepted_in_however_many_fragments(
    world: World, over: int
) -> None:
    """Case H-06."""
    await world.serve(ROOM | {"limits.max_frame_bytes": 100_000})
    caller = await world.call(ECHO, session=MANUAL)
    whole = json.dumps(append(tone(1000, 0.5))).encode()
    padded = whole + b" " * (100_000 + over - len(whole))
    step = 100
    pieces = [padded[at : at + step] for at in range(0, len(padded), step)]
    last = len(pieces) - 1
    await caller.connection.socket.send(
        *(frame(0 if i else 1, part, final=i == last) for i, part in enumerate(pieces))
    )
    await caller.send(COMMIT, respond())
    assert caller.audio((await caller.done())["id"]) == tone(1000, 0.5)


async def test_h08_an_unknown_voice_is_answered_with_the_one_in_force(world: World) -> None:
    """Case H-08. That is no error."""
    await world.serve()
    caller = await world.call()
    await caller.send(update())
    voice = (await caller.expect("session.updated"))["session"]["audio"]["output"]["voice"]
    await caller.send(update(audio={"output": {"voice": "nobody"}}))
    shown = (await caller.expect("session.updated"))["session"]["audio"]["output"]["voice"]
    assert shown == voice != "nobody"
    assert not caller.connection.named("error")


async def test_h11_the_clock_of_odd_chunks_does_not_drift(world: World) -> None:
    """Case H-11. Chunks of 441 samples, each no whole number of milliseconds; the speech at the very end."""
    await world.serve(ROOM)
    caller = await world.call(session=AMP)
    chunks, size = 4000, 441
    quiet = [append(bytes(2 * size))] * chunks
    for at in range(0, chunks, 500):
        await caller.send(*quiet[at : at + 500])
    await caller.send(append(tone(400, 0.9) + tone(700, 0)))
    before_ms = chunks * size * 1000 // 24_000
    started = await caller.expect("input_audio_buffer.speech_started")
    assert started["audio_start_ms"] == pytest.approx(before_ms - 300, abs=40)
    stopped = await caller.expect("input_audio_buffer.speech_stopped")
    assert stopped["audio_end_ms"] >= before_ms + 400
