"""Group E of the known cases: what interrupts and what does not, and what an interruption leaves."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

from .client import AMP, BYTES_PER_MS, TURN, Caller, append, tone
from .wire import Event
from .world import World, until

LONG: Event = {"audio_ms": 30_000, "chunk_ms": 20}
BURST: Event = {"audio_ms": 400, "pace": "burst"}
HISTORY: Event = {"echo_history": True, "audio_ms": 100, "pace": "burst"}

CANCEL: Event = {"type": "response.cancel"}


def detecting(**fields: Any) -> Event:
    return {"audio": {"input": {"turn_detection": {"type": "server_vad", "detector": "amp", **fields}}}}


async def talking(caller: Caller) -> str:
    """A response of which the first audio has come."""
    response_id = await caller.ask()
    await caller.expect("response.output_audio.delta")
    return response_id


def history_of(answer: Event) -> list[Event]:
    history: list[Event] = json.loads(answer["output"][0]["content"][0]["transcript"])
    return history


def numbers(caller: Caller, kind: str) -> list[int]:
    return [event["server_event_seq"] for event in caller.events(kind)]


async def _has_aborted(world: World, caller: Caller) -> bool:
    return bool(await world.calls(caller.id, "abort"))


async def test_e02_an_abort_waits_for_no_client(world: World) -> None:
    """Case E-02. The client reads nothing, yet its speech stops the model; the order of events holds."""
    await world.serve({"transport.ping_timeout_s": 30})
    caller = await world.call(LONG | {"pace": "burst"}, session=AMP, receive_buffer=4096)
    await caller.ask()
    caller.connection.socket.reading.clear()
    await until(lambda: _is_held_back(world, caller), what="a connection that takes no more")
    spoken = time.monotonic()
    await caller.send(append(tone(400, 0.9)))
    await until(lambda: _has_aborted(world, caller), within=1, what="the abort")
    assert time.monotonic() - spoken < 1  # the rest of 100 ms is room for a busy machine
    caller.connection.socket.reading.set()
    done = await caller.done()
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "turn_detected")
    [started], [ended] = (
        numbers(caller, "input_audio_buffer.speech_started"),
        numbers(caller, "response.done"),
    )
    assert started < ended


async def _is_held_back(world: World, caller: Caller) -> bool:
    state = await world.session_state(caller.id)
    return state is not None and bool(state["pending_bytes"] >= 200 * 1024)


async def test_e03_the_speech_that_interrupts_is_heard_from_its_first_sample(world: World) -> None:
    """Case E-03. The next turn holds all of it with its padding; history tells who said what, in order."""
    await world.serve({"limits.max_pending_input_bytes": 2**20})
    caller = await world.call(
        LONG | {"words": 1500}, {"echo_input": True, "pace": "burst"}, HISTORY, session=AMP
    )
    first = await talking(caller)
    await caller.send({"type": "playback.ack", "response_id": first, "played_ms": 20})
    marked = b"".join((28_000 + n % 4000).to_bytes(2, "little") for n in range(1200 * BYTES_PER_MS // 2))
    spoken = tone(512, 0.0) + marked + tone(704, 0.0)
    for at in range(0, len(spoken), 960):
        await caller.send(append(spoken[at : at + 960]))
    assert (await caller.done(first))["status"] == "cancelled"
    echo = await caller.done()
    await caller.send({"type": "playback.ack", "response_id": echo["id"], "played_ms": 1500})
    heard = caller.audio(echo["id"])
    started = caller.events("input_audio_buffer.speech_started")[-1]["audio_start_ms"]
    assert started == 512 - 300
    assert heard[: len(tone(300, 0.0)) + len(marked)] == tone(300, 0.0) + marked
    history = history_of(await caller.answer("what was said?"))
    assert [item["role"] for item in history] == ["user", "assistant", "user", "assistant", "user"]
    committed = caller.events("input_audio_buffer.committed")[-1]["item_id"]
    assert history[2]["id"] == committed
    assert len(history[1]["text"].split()) < 10


@pytest.mark.parametrize("how", ["clear", "speech"])
async def test_e04_playback_is_cut_after_its_response_has_ended(world: World, how: str) -> None:
    """Case E-04. Ended, but still playing: history keeps what was acknowledged, and nothing stays busy."""
    await world.serve({"limits.max_pending_output_bytes": 2**20})
    words = [f"word{n}" for n in range(10, 90)]  # equally long, hence 100 ms each
    said = {"audio_ms": 8000, "text": " ".join(words), "pace": "burst"}
    caller = await world.call(said, HISTORY, session=AMP)
    done = await caller.answer()
    item_id = done["output"][0]["id"]
    await caller.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 1000})
    await caller.expect("playback.acknowledged")
    if how == "clear":
        await caller.send({"type": "output_audio_buffer.clear"})
    else:
        await caller.send(append(TURN))
        await caller.expect("input_audio_buffer.speech_started")
    await until(lambda: caller.events("output_audio_buffer.cleared"), what="the notice")
    assert caller.events("output_audio_buffer.cleared")[0]["response_id"] == done["id"]
    await until(lambda: caller.events("conversation.item.truncated"), what="the cut")
    [cut] = caller.events("conversation.item.truncated")
    assert (cut["item_id"], cut["audio_end_ms"]) == (item_id, 1000)
    answer = await caller.answer() if how == "clear" else await caller.done()
    [kept] = [item["text"] for item in history_of(answer) if item["id"] == item_id]
    assert kept.split() == words[:10]


async def test_e07_a_knock_does_not_interrupt_and_speech_does(world: World) -> None:
    """Case E-07. 60 ms of noise, and ten seconds too faint to be speech, leave the answer as it is."""
    await world.serve({"limits.max_pending_input_bytes": 2**20})
    caller = await world.call(LONG, BURST, session=detecting(min_speech_ms=200))
    response_id = await talking(caller)
    await caller.send(append(tone(64, 0.9) + tone(320, 0.0)))
    for _ in range(10):
        await caller.send(append(tone(1000, 0.3)))
    await caller.quiet()
    await caller.expect("response.output_audio.delta")
    assert caller.events("input_audio_buffer.speech_started") == []
    assert not caller.has_ended(response_id)
    await caller.send(append(tone(400, 0.9)))
    confirmed = time.monotonic()
    assert (await caller.done(response_id))["status"] == "cancelled"
    assert time.monotonic() - confirmed < 1  # the rest of 250 ms is room for a busy machine
    await caller.send(append(tone(700, 0.0)))
    assert (await caller.done())["status"] == "completed"


@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_e08_without_interruption_an_answer_is_finished_and_the_new_turn_answered(
    world: World, modality: str
) -> None:
    """Case E-08. ``interrupt_response: false``: speech is announced, and its answer comes afterwards."""
    await world.serve()
    session = detecting(interrupt_response=False) | {"output_modalities": [modality]}
    caller = await world.call({"audio_ms": 800, "chunk_ms": 20}, BURST, session=session)
    first = await caller.ask()
    await caller.send(append(TURN))
    await caller.expect("input_audio_buffer.speech_started")
    assert (await caller.done(first))["status"] == "completed"
    assert (await caller.done())["status"] == "completed"
    assert len(caller.events("response.created")) == 2


@pytest.mark.parametrize("modality", ["audio", "text"])
@pytest.mark.parametrize("interrupts", [True, False, None])
async def test_e08_an_explicit_cancel_works_whatever_speech_may_do(
    world: World, interrupts: bool | None, modality: str
) -> None:
    """Case E-08. And the session shows the default that is in force."""
    await world.serve()
    fields = {} if interrupts is None else {"interrupt_response": interrupts}
    caller = await world.call(session=detecting(**fields) | {"output_modalities": [modality]})
    shown = caller.events("session.updated")[-1]["session"]["audio"]["input"]["turn_detection"]
    assert shown["interrupt_response"] is (interrupts is not False)
    await caller.script(LONG | {"stall_first_ms": 200})
    await caller.ask()
    await caller.send(CANCEL)
    done = await caller.done()
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")


async def test_e09_a_queued_answer_does_not_speak_after_new_speech_began(world: World) -> None:
    """Case E-09. Turn 1 waits for its answer when turn 2 begins: only turn 2 is answered."""
    await world.serve()
    caller = await world.call(
        {"audio_ms": 1500, "chunk_ms": 20}, HISTORY, session=detecting(interrupt_response=False)
    )
    first = await talking(caller)
    await caller.send(append(TURN))
    await caller.expect("input_audio_buffer.committed")
    await caller.send(append(tone(400, 0.9)))
    await caller.expect("input_audio_buffer.speech_started")
    assert (await caller.done(first))["status"] == "completed"
    await caller.send(append(tone(700, 0.0)))
    history = history_of(await caller.done())
    await caller.quiet()
    assert len(caller.events("response.created")) == 2
    committed = [event["item_id"] for event in caller.events("input_audio_buffer.committed")]
    assert [item["id"] for item in history if item["role"] == "user"][1:] == committed


async def test_e10_every_request_that_is_cancelled_is_aborted_by_its_id(world: World) -> None:
    """Case E-10. Cancelled by the client and by speech, before and during the output."""
    await world.serve()
    caller = await world.call(LONG, LONG | {"stall_first_ms": 2000}, LONG, BURST, session=AMP)
    await talking(caller)
    await caller.send(CANCEL)
    await caller.done()
    await caller.ask()
    await caller.send(CANCEL)
    await caller.done()
    await talking(caller)
    await caller.send(append(TURN))
    assert (await caller.done())["status"] == "cancelled"
    assert (await caller.done())["status"] == "completed"
    generated = [call["request_id"] for call in await world.calls(caller.id, "generate")]
    aborted = [call["request_id"] for call in await world.calls(caller.id, "abort")]
    assert Counter(generated).total() == len(set(generated)) == 4
    assert aborted == generated[:3]
    assert caller.connection.named("error") == []


#: Sounds of a listener, and of the agent in its own microphone.
MURMURS = {"a fifth of the agent itself": tone(800, 0.2), "mm-hmm, softly": tone(256, 0.3)}


@pytest.mark.parametrize("murmur", MURMURS)
async def test_e11_an_echo_or_a_murmur_interrupts_nothing(world: World, murmur: str) -> None:
    """Case E-11. With the defaults, which the session shows: no policy of overlap, no resumption."""
    await world.serve()
    caller = await world.call(LONG, session=AMP)
    session = caller.events("session.updated")[-1]["session"]
    assert session["overlap_policy"] is None
    assert session["audio"]["input"]["turn_detection"]["false_interruption_ms"] == 0
    response_id = await talking(caller)
    await caller.send(append(MURMURS[murmur] + tone(700, 0.0)))
    await caller.quiet()
    assert caller.events("input_audio_buffer.speech_started") == []
    assert not caller.has_ended(response_id)


async def test_e11_a_graded_policy_listens_to_a_short_acknowledgement(world: World) -> None:
    """Case E-11. 250 ms of loud speech are listened to; more than ``overlap_barge_in_ms`` interrupts."""
    await world.serve({"limits.max_pending_input_bytes": 2**20})
    caller = await world.call(LONG, BURST, session=AMP | {"overlap_policy": "graded"})
    response_id = await talking(caller)
    await caller.send(append(tone(256, 0.9) + tone(700, 0.0)))
    decided = await caller.expect("overlap.decision")
    assert (decided["policy"], decided["action"]) == ("graded", "listen")
    await caller.quiet()
    assert caller.events("input_audio_buffer.speech_started") == []
    assert not caller.has_ended(response_id)
    await caller.send(append(tone(1500, 0.9)))
    assert (await caller.done(response_id))["status"] == "cancelled"
    assert caller.events("overlap.decision")[-1]["action"] == "barge_in"
    await caller.send(append(tone(700, 0.0)))
    assert (await caller.done())["status"] == "completed"
