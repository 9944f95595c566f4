"""Calls end to end: a peer of another make, loopback, the scripted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .caller import RATE, Caller, Callers

AMP = {"type": "server_vad", "detector": "amp", "silence_duration_ms": 200}


def tone(ms: int) -> bytes:
    """Loud enough for the ``amp`` detector, and what a speech codec keeps of it too."""
    at = np.arange(RATE * ms // 1000)
    return (np.sign(np.sin(2 * np.pi * 300 * at / RATE)) * 30_000).astype("<i2").tobytes()


def session(detection: dict[str, Any] | None = None, **script: Any) -> dict[str, Any]:
    return {
        "type": "realtime",
        "audio": {"input": {"turn_detection": detection}},
        "extra_body": {"script": script},
    }


async def configured(caller: Caller, **fields: Any) -> None:
    await caller.until_event("session.created")
    caller.send(type="session.update", session=session(**fields))
    await caller.until_event("session.updated")


async def test_an_answer_sounds_and_its_playback_is_told(door: Callers) -> None:
    caller = door.new()
    response = await caller.call()
    assert response.status == 201
    assert response.content_type == "application/sdp"
    assert response.headers["Location"].startswith("/v1/realtime/calls/rtc_")
    await configured(caller, audio_ms=600, pace="burst")
    caller.send(type="response.create")
    stopped = await caller.until_event("output_audio_buffer.stopped")
    (started,), (done,) = caller.of("output_audio_buffer.started"), caller.of("response.done")
    assert started["response_id"] == stopped["response_id"] == done["response"]["id"]
    assert caller.of("response.output_audio.delta") == [], "audio is on the track"
    kinds = [event["type"] for event in caller.events]
    assert kinds.index("response.created") < kinds.index("output_audio_buffer.started")
    assert kinds.index("response.done") < kinds.index("output_audio_buffer.stopped")


async def test_what_is_said_is_heard_and_answered(door: Callers) -> None:
    """Microphone to turn, and the answer, which repeats it, to the loudspeaker."""
    caller = door.new()
    await caller.call()
    await configured(caller, detection=AMP, echo_input=True)
    caller.voice.say(tone(600))
    await caller.until_event("input_audio_buffer.committed")
    await caller.until_event("output_audio_buffer.stopped")
    started, ended = (caller.of(f"input_audio_buffer.speech_{edge}")[0] for edge in ("started", "stopped"))
    heard_ms = ended["audio_end_ms"] - started["audio_start_ms"]
    assert 600 <= heard_ms <= 1400, "padding and the silence that ends a turn are part of it"
    await caller.until(lambda: caller.loud_ms >= 500, "the echo")


async def test_speech_ends_an_answer_at_once_and_the_history_holds_what_sounded(door: Callers) -> None:
    """The queue of the track is emptied, and nothing of the old answer sounds any more."""
    caller = door.new()
    await caller.call()
    await configured(caller, detection=AMP, echo_input=True)
    caller.voice.say(tone(2000))
    await caller.until(lambda: caller.loud_ms >= 400, "the echo")
    caller.voice.say(tone(200))
    cleared = await caller.until_event("output_audio_buffer.cleared")
    first = caller.of("response.done")[0]["response"]
    assert cleared["response_id"] == first["id"]
    assert first["status"] == "cancelled"
    assert first["status_details"]["reason"] == "turn_detected"
    assert caller.of("output_audio_buffer.stopped") == []


@pytest.mark.parametrize("ends_first", [False, True])
async def test_the_client_clears_the_buffer(door: Callers, ends_first: bool) -> None:
    """During the answer it ends it; after ``response.done`` it cuts what was not heard."""
    caller = door.new()
    await caller.call()
    await configured(caller, audio_ms=900 if ends_first else 5000, pace="burst")
    caller.send(type="response.create")
    await caller.until_event("response.done" if ends_first else "output_audio_buffer.started")
    caller.send(type="output_audio_buffer.clear")
    await caller.until_event("output_audio_buffer.cleared")
    done = await caller.until_event("response.done")
    assert done["response"]["status"] == ("completed" if ends_first else "cancelled")
    if ends_first:
        cut = await caller.until_event("conversation.item.truncated")
        assert cut["audio_end_ms"] < 900
    assert len(caller.of("output_audio_buffer.cleared")) == 1
    assert caller.of("output_audio_buffer.stopped") == []


async def test_a_lost_peer_connection_is_resumed_by_another_offer(door: Callers) -> None:
    """The answer goes on where it was heard to, and its end is told once."""
    first = door.new()
    await first.call()
    created = await first.until_event("session.created")
    await configured(first, audio_ms=3000)
    first.send(type="response.create")
    await first.until_event("output_audio_buffer.started")
    await first.close()
    second = door.new()
    seen = first.events[-1]["server_event_seq"]
    response = await second.call(
        f"?resume={created['session']['id']}",
        X_Resume_Token=created["resume_token"],
        X_Last_Event_Seq=str(seen),
    )
    assert response.status == 201
    again = await second.until_event("session.created")
    assert again["session"]["id"] == created["session"]["id"]
    assert again["resume_token"] != created["resume_token"]
    await second.until_event("output_audio_buffer.stopped")
    (done,) = second.of("response.done")
    assert done["response"]["status"] == "completed"


async def test_a_new_offer_takes_over_from_a_call_that_still_stands(door: Callers) -> None:
    """The old one is told so, and hangs up (wire contract, section 3)."""
    old, new = door.new(), door.new()
    await old.call("?duplex=1")
    created = await old.until_event("session.created")
    query = f"?duplex=1&resume={created['session']['id']}"
    await new.call(query, X_Resume_Token=created["resume_token"])
    resumed = await new.until_event("session.resumed")
    assert resumed["attachment_generation"] == 2
    replaced = await old.until_event("session.replaced")
    assert replaced["attachment_generation"] == 1
    await old.until(lambda: old.closed, "the end of the old call")
    new.send(type="session.heartbeat")
    await new.until_event("session.heartbeat_ack")


async def test_what_was_heard_is_not_played_again_from_the_beginning(door: Callers) -> None:
    """Also where the client gives no cursor: everything is told again, and sounds from the playhead on."""
    first, second = door.new(), door.new()
    await first.call("?duplex=1")
    created = await first.until_event("session.created")
    await configured(first, detection=AMP, echo_input=True)
    first.voice.say(tone(2000))
    await first.until(lambda: first.loud_ms >= 1200, "most of the echo")
    await first.close()
    query = f"?duplex=1&resume={created['session']['id']}"
    await second.call(query, X_Resume_Token=created["resume_token"])
    await second.until_event("output_audio_buffer.stopped")
    assert second.of("response.created"), "it is told again"
    assert 0 < second.loud_ms <= 1400, "a part of 2 s and padding"


async def test_an_extended_call_has_numbers_without_holes(door: Callers) -> None:
    """Audio deltas come empty: the sound is on the track."""
    caller = door.new()
    await caller.call("?duplex=1")
    await configured(caller, audio_ms=400, pace="burst")
    caller.send(type="response.create")
    await caller.until_event("output_audio_buffer.stopped")
    numbers = [event["server_event_seq"] for event in caller.events if "server_event_seq" in event]
    assert numbers == list(range(1, len(numbers) + 1))
    deltas = caller.of("response.output_audio.delta")
    assert {delta["delta"] for delta in deltas} == {""}
    assert sum(delta["duplex"]["audio_duration_ms"] for delta in deltas) == 400


async def test_the_session_is_closed_by_an_event(door: Callers) -> None:
    caller = door.new()
    await caller.call("?duplex=1")
    await caller.until_event("session.created")
    caller.send(type="session.close")
    closed = await caller.until_event("session.closed")
    assert closed["reason"] == "client_closed"
    await caller.until(lambda: caller.closed, "the end of the channel")
