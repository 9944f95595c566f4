"""Group L of the known cases: every utterance is one turn, at the right place on the clock of the input."""

from __future__ import annotations

import asyncio

import pytest

from .client import AMP, MANUAL, append, respond, tone, update
from .wire import Event
from .world import World

COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}
STARTED, STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"


def amp(**fields: object) -> Event:
    return {"audio": {"input": {"turn_detection": {"type": "server_vad", "detector": "amp", **fields}}}}


@pytest.mark.parametrize("threshold", [0.05, 0.10, 0.15, 0.16, 0.5, 1.0])
async def test_l03_every_threshold_can_end_a_turn(world: World, threshold: float) -> None:
    """Case L-03."""
    await world.serve()
    caller = await world.call({"audio_ms": 20}, session=amp(threshold=threshold))
    await caller.send(append(tone(400, 1.0)), append(tone(700, 0)))
    await caller.expect(STOPPED)
    assert (await caller.done())["status"] == "completed"


@pytest.mark.parametrize("threshold", [0, 1.1])
async def test_l03_a_threshold_that_ends_no_turn_is_refused(world: World, threshold: float) -> None:
    """Case L-03."""
    await world.serve()
    caller = await world.call()
    await caller.send(update(**amp(threshold=threshold)))
    error = (await caller.expect("error"))["error"]
    assert error["param"] == "session.audio.input.turn_detection.threshold"


async def test_l04_speech_from_the_first_sample_starts_at_zero(world: World) -> None:
    """Case L-04. The turn holds it from there."""
    await world.serve()
    caller = await world.call({"echo_input": True, "pace": "burst"}, session=AMP)
    speech = tone(400, 0.9) + tone(640, 0)
    await caller.send(append(speech))
    assert (await caller.expect(STARTED))["audio_start_ms"] == 0
    heard = caller.audio((await caller.done())["id"])
    assert speech.startswith(heard)
    assert len(heard) >= len(tone(400, 0.9))


async def test_l05_speech_ends_when_no_more_input_comes(world: World) -> None:
    """Case L-05. The turn is answered, and the next one is heard."""
    await world.serve({"limits.input_stall_ms": 200})
    caller = await world.call({"audio_ms": 20}, session=AMP)
    for end_ms in (800, 1600):
        await caller.send(append(tone(800, 0.9)))
        assert (await caller.expect(STOPPED))["audio_end_ms"] == end_ms
        assert (await caller.done())["status"] == "completed"


async def test_l05_a_pause_between_turns_costs_nothing_and_counts_for_nothing(world: World) -> None:
    """Case L-05. Nobody sends for ten times the stall: the clock counts audio, not time."""
    await world.serve({"limits.input_stall_ms": 100, "limits.max_pending_input_bytes": 1024 * 1024})
    caller = await world.call({"audio_ms": 20, "pace": "burst"}, session=AMP)
    for start_ms in (0, 1700):
        await caller.send(append(tone(800, 0.9) + tone(900, 0)))
        assert (await caller.expect(STARTED))["audio_start_ms"] == pytest.approx(
            max(0, start_ms - 300), abs=40
        )
        assert (await caller.done())["status"] == "completed"
        await asyncio.sleep(1)
    assert len(caller.events(STOPPED)) == len(caller.events("response.created")) == 2


async def test_l06_without_a_detector_nothing_is_detected(world: World) -> None:
    """Case L-06. Loud audio right behind a commit waits for the next."""
    await world.serve()
    caller = await world.call({"echo_input": True, "pace": "burst"}, session=MANUAL)
    for speech in (tone(300, 0.9), tone(200, 0.8)):
        await caller.send(append(speech), COMMIT, respond(), append(tone(100, 1.0)))
        assert caller.audio((await caller.done())["id"]).endswith(speech)
    assert not caller.events(STARTED)


async def test_l09_noise_opens_no_turn(world: World) -> None:
    """Case L-09. Ten minutes of it below the threshold."""
    await world.serve({"limits.max_pending_input_bytes": 64 * 1024 * 1024})
    caller = await world.call(session=AMP)
    for _ in range(60):
        await caller.send(append(tone(10_000, 0.3)))
    await caller.send({"type": "session.heartbeat"})
    await caller.expect("session.heartbeat_ack")
    await caller.send(append(tone(400, 0.9)))
    assert (await caller.expect(STARTED))["audio_start_ms"] == pytest.approx(599_700, abs=40)
    assert len(caller.events(STARTED)) == 1


@pytest.mark.parametrize("before_ms", [990, 1200])
async def test_l07_an_update_of_the_detector_loses_and_doubles_nothing(world: World, before_ms: int) -> None:
    """Case L-07. It comes just before the speech, or within it."""
    await world.serve({"limits.max_pending_input_bytes": 16 * 1024 * 1024})
    caller = await world.call({"echo_input": True, "pace": "burst"}, session=amp(create_response=False))
    audio = tone(1000, 0) + tone(800, 0.9) + tone(900, 0)
    at = before_ms * 48
    await caller.send(append(audio[:at]), update(**amp(threshold=0.4, silence_duration_ms=400)))
    await caller.expect("session.updated")
    await caller.send(append(audio[at:]))
    await caller.expect(STOPPED)
    (started,) = caller.events(STARTED)
    assert started["audio_start_ms"] == pytest.approx(700, abs=40)
    (stopped,) = caller.events(STOPPED)
    await caller.send(respond())
    heard = caller.audio((await caller.done())["id"])
    assert heard == audio[started["audio_start_ms"] * 48 :][: len(heard)]
    assert len(heard) == (stopped["audio_end_ms"] - started["audio_start_ms"]) * 48


async def test_l08_the_last_of_many_turns_is_detected_as_the_first(world: World) -> None:
    """Case L-08. Five hundred, some cleared, on twenty connections."""
    await world.serve()
    caller = await world.call(session=amp(create_response=False, silence_duration_ms=200))
    for turn in range(500):
        if turn % 25 == 24:
            caller.reset()
            await caller.resume()
        await caller.send(append(tone(200, 0.9)))
        started = await caller.expect(STARTED)
        assert started["audio_start_ms"] == pytest.approx(turn * 600 - (300 if turn else 0), abs=300)
        if turn % 10 == 9:
            await caller.send({"type": "input_audio_buffer.clear"}, append(tone(400, 0)))
        else:
            await caller.send(append(tone(400, 0)))
            await caller.expect(STOPPED)
    assert len(caller.events(STARTED)) == 500


async def test_l08_turns_that_interrupt_answers_are_detected_as_any(world: World) -> None:
    """Case L-08. Every turn cuts the answer before it short; each is found, and answered."""
    await world.serve()
    caller = await world.call({"audio_ms": 20_000}, session=amp(silence_duration_ms=200))
    for turn in range(40):
        await caller.send(append(tone(400, 0.9)))
        await caller.expect(STARTED)
        if turn:
            assert (await caller.done())["status"] == "cancelled"
        await caller.send(append(tone(400, 0)))
        await caller.expect("response.output_audio.delta")
    assert len(caller.events(STARTED)) == len(caller.events("response.created")) == 40
    await caller.send({"type": "response.cancel"})
    await caller.done()
