"""Group K of the known cases: slow and dead peers, floods, and the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Sequence

import pytest
from tests.models.voice.speech import noise, recording

from counterpoint.audio.resample import StreamingResampler
from counterpoint.models.cascade.detectors import SileroDetector
from counterpoint.models.voice.files import find_files
from counterpoint.models.voice.vad import SileroVad
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.testing.proxy import Faults

from .client import BYTES_PER_MS, MANUAL, Caller, append, tone, user_says
from .plugins import InterceptedPlugin
from .wire import Event, http_get, text
from .world import World, until

KIB, MIB = 2**10, 2**20

SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]

HEARTBEAT: Event = {"type": "session.heartbeat"}
COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}


# --------------------------------------------------------------------------- clients that do not read


@pytest.mark.parametrize(("clients", "minutes"), [(5, 1), pytest.param(20, 10, marks=SLOW)])
async def test_k01_who_does_not_read_costs_no_more_than_the_configured_bytes(
    world: World, clients: int, minutes: int
) -> None:
    """Case K-01. The model stops at the bound, the connection is detached, the session lives and resumes."""
    pending, journal = 64 * KIB, 256 * KIB
    bounds = {"limits.max_pending_output_bytes": pending, "journal.max_bytes": journal}
    server = await world.spawn(
        bounds
        | {
            "limits.max_sessions": clients,
            "transport.send_timeout_s": 1.5,
            "transport.ping_timeout_s": 30,
            "lease.disconnect_grace_s": 30,
        }
    )
    script = {"audio_ms": minutes * 60_000, "pace": "burst"}
    callers = [await world.call(script, receive_buffer=4096) for _ in range(clients)]
    before = server.status("VmRSS")
    responses = [await caller.ask() for caller in callers]
    for caller in callers:
        caller.connection.socket.reading.clear()
    await until(lambda: _all_hold(world, pending), what="a model that is held back")
    for session in (await world.state())["sessions"]:
        # One event may be on the way to either bound.
        assert session["pending_bytes"] <= pending + 16 * KIB
        assert session["journal_bytes"] + session["pending_bytes"] <= journal + 16 * KIB
    assert server.status("VmRSS") - before < clients * (pending + journal + 256 * KIB) / KIB

    await until(lambda: _detached(world, clients), what="connections detached")
    assert await world.metric("counterpoint_connections_ended_total", cause="stalled") == clients
    for caller, response_id in zip(callers, responses, strict=True):
        caller.connection.socket.reading.set()
        resumed = await caller.resume()
        assert resumed["session_id"] == caller.id
        assert not caller.has_ended(response_id)
    await asyncio.gather(*(caller.hang_up() for caller in callers))
    await until(lambda: _free(world))


async def _all_hold(world: World, pending: int) -> bool:
    sessions = (await world.state())["sessions"]
    return all(session["pending_bytes"] >= pending for session in sessions)


async def _detached(world: World, number: int) -> bool:
    sessions = (await world.state())["sessions"]
    return sum(not session["attached"] for session in sessions) == number


async def _free(world: World) -> bool:
    used: int = (await world.state())["slots"]["used"]
    return used == 0


async def test_k01_a_model_that_was_held_back_goes_on_and_nothing_is_lost(world: World) -> None:
    """Case K-01. A reader that pauses, for less than the timeout, gets every sample in the end."""
    await world.serve()
    caller = await world.call({"audio_ms": 20_000, "pace": "burst"}, receive_buffer=4096)
    response_id = await caller.ask()
    caller.connection.socket.reading.clear()
    await until(lambda: _all_hold(world, 256 * KIB))
    caller.connection.socket.reading.set()
    assert (await caller.done(response_id))["status"] == "completed"
    assert len(caller.audio(response_id)) == 20_000 * BYTES_PER_MS


async def test_k04_a_peer_that_dies_without_a_word_is_noticed_and_comes_back(world: World) -> None:
    """Case K-04. Detached within interval, timeout and a second; a resume in the grace gets every event."""
    await world.serve({"lease.disconnect_grace_s": 5, "transport.send_timeout_s": 30})
    proxy = await world.proxy()
    caller = await world.call({"audio_ms": 4000, "chunk_ms": 40}, via=proxy.through(world.url))
    response_id = await caller.ask()
    await caller.expect("response.output_audio.delta")
    proxy.newest.blackhole()
    await until(lambda: _detached(world, 1), within=1 + 1 + 1, what="the detach")
    assert await world.metric("counterpoint_connections_ended_total", cause="lost") == 1
    resumed = await caller.resume()
    assert not resumed["replay"]["gap"]
    assert (await caller.done(response_id))["status"] == "completed"
    assert len(caller.audio(response_id)) == 4000 * BYTES_PER_MS


# --------------------------------------------------------------------------- busy connections


async def test_k05_a_large_upload_over_a_slow_link_is_no_silence(world: World) -> None:
    """Case K-05. A megabyte in one event takes seconds, in which no pong can come."""
    await world.serve({"limits.max_pending_input_bytes": 2 * MIB})
    proxy = await world.proxy()
    caller = await world.call(session=MANUAL)
    proxy.to_server = Faults(bytes_per_s=300_000)
    await caller.resume(via=proxy.through(world.url))
    await caller.send(append(bytes(3 * MIB // 4)), HEARTBEAT)
    await caller.expect("session.heartbeat_ack")
    await _is_on_its_second_connection(world, caller)


async def test_k05_while_a_large_event_drains_nothing_is_concluded_from_silence(world: World) -> None:
    """Case K-05. The pong waits behind one event for longer than interval and timeout together."""
    await world.serve({"limits.max_pending_input_bytes": 2 * MIB, "transport.send_timeout_s": 1})
    proxy = await world.proxy()
    caller = await world.call(session=MANUAL)
    await caller.send(append(tone(8_000, 0.5)), COMMIT)
    item_id = (await caller.expect("input_audio_buffer.committed"))["item_id"]
    proxy.to_client = Faults(bytes_per_s=150_000)
    await caller.resume(via=proxy.through(world.url))
    await caller.send({"type": "conversation.item.retrieve", "item_id": item_id})
    retrieved = await caller.expect("conversation.item.retrieved")
    assert len(retrieved["item"]["content"][0]["audio"]) == 8_000 * BYTES_PER_MS * 4 // 3
    await _is_on_its_second_connection(world, caller)


async def test_k05_while_many_small_events_drain_nothing_is_concluded_from_silence(world: World) -> None:
    """Case K-05. What the buffers hold takes seconds on such a link, and they are filled again."""
    await world.serve({"transport.send_timeout_s": 2})
    proxy = await world.proxy()
    caller = await world.call({"audio_ms": 1_000, "chunk_ms": 20, "pace": "burst"})
    proxy.to_client = Faults(bytes_per_s=22_000)
    await caller.resume(via=proxy.through(world.url))
    assert (await caller.answer())["status"] == "completed"
    await _is_on_its_second_connection(world, caller)


async def _is_on_its_second_connection(world: World, caller: Caller) -> None:
    state = await world.session_state(caller.id)
    assert state is not None
    assert (state["attached"], state["generation"]) == (True, 2)


async def test_k05_a_pong_that_comes_late_is_a_pong(world: World) -> None:
    """Case K-05. A small device answers after 0.9 s, within a timeout of one."""
    await world.serve()
    caller = await world.call()
    caller.connection.socket.pong_delay_s = 0.9
    await until(lambda: caller.connection.socket.pings == 4)
    assert caller.connection.alive
    state = await world.session_state(caller.id)
    assert state is not None
    assert state["attached"]


async def test_k05_a_link_that_is_slow_and_dead_is_found_out(world: World) -> None:
    """Case K-05. Bytes that waited for a slow link do not excuse one that takes no more."""
    await world.serve({"transport.send_timeout_s": 1})
    proxy = await world.proxy()
    caller = await world.call({"audio_ms": 12_000, "pace": "burst"})
    proxy.to_client = Faults(bytes_per_s=150_000)
    await caller.resume(via=proxy.through(world.url))
    await caller.ask()
    await caller.expect("response.output_audio.delta")
    proxy.newest.blackhole()
    await until(lambda: _detached(world, 1), within=3)


# --------------------------------------------------------------------------- the loop


async def test_k06_a_plugin_that_blocks_the_loop_is_seen_in_the_metrics(world: World) -> None:
    """Case K-06. What harms every session at once must not look like a slow network."""

    async def block(session_id: str) -> None:
        time.sleep(0.5)  # noqa: ASYNC251

    await world.serve(plugin=InterceptedPlugin({"respond": block}))
    caller = await world.call({"audio_ms": 100, "pace": "burst"})
    await caller.answer()
    await until(lambda: _loop_was_late(world, 400))
    late = await world.metric("counterpoint_loop_lag_seconds_bucket", le="+Inf") - await world.metric(
        "counterpoint_loop_lag_seconds_bucket", le="0.2"
    )
    assert late == 1


class Listening(InterceptedPlugin):
    """The scripted model, with the detector of the embedded voice."""

    def detectors(self) -> Sequence[object]:
        return (SileroDetector(SileroVad(find_files().vad)),)


SILERO: Event = {"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}}
FRAME_BYTES = 20 * BYTES_PER_MS


def _microphone(pcm: bytes) -> list[bytes]:
    return [text(append(pcm[at : at + FRAME_BYTES])) for at in range(0, len(pcm), FRAME_BYTES)]


async def _stream(caller: Caller, frames: list[bytes], seconds: float) -> None:
    """In real time, whatever the server does."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(int(seconds * 50)):
        await caller.connection.socket.send(frames[number % len(frames)])
        await asyncio.sleep(max(0.0, started + 0.02 * (number + 1) - loop.time()))


async def _input_ages(world: World, quiet: Sequence[Caller], enough: asyncio.Event) -> list[float]:
    """How many ms of input wait for the detector at most, in sessions where nobody speaks."""
    ages, ids = [], {caller.id for caller in quiet}
    while not enough.is_set():
        sessions = (await world.state())["sessions"]
        ages.append(max(each["input_bytes"] for each in sessions if each["id"] in ids) / BYTES_PER_MS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), 0.1)
    return ages


@pytest.mark.voice
@pytest.mark.parametrize(
    ("sessions", "seconds", "share"), [(6, 4.0, 0.25), pytest.param(30, 60.0, 1.0, marks=SLOW)]
)
async def test_k06_real_detection_neither_blocks_the_loop_nor_starves(
    world: World, sessions: int, seconds: float, share: float
) -> None:
    """Case K-06. 20 ms frames in real time, while all threads of the default executor are taken.

    The bounds hold for ``share`` of what is measured: other tests may have the processor for a while.
    """
    await world.serve({"limits.max_sessions": sessions}, plugin=Listening({}))
    talking, *quiet = [await world.call(session=SILERO) for _ in range(sessions)]
    resampler = StreamingResampler(16_000, SESSION_RATE)
    speech = resampler.process((recording("go_forward") * 32767).astype("<i2").tobytes())
    hum = (noise(1.0, 0.001) * 32767).astype("<i2").tobytes()
    loop = asyncio.get_running_loop()
    blocked = [loop.run_in_executor(None, time.sleep, seconds / 16) for _ in range(64)]
    enough = asyncio.Event()
    watching = asyncio.gather(_input_ages(world, quiet, enough), _health_times(world.url, enough))
    streams = [_stream(talking, _microphone(speech + bytes(48_000)), seconds)]
    await asyncio.gather(*streams, *(_stream(caller, _microphone(hum), seconds) for caller in quiet))
    enough.set()
    ages, health = await watching
    await talking.expect("input_audio_buffer.speech_started")
    half = len(ages) // 2
    assert _at(share, ages) < 200
    assert statistics.median(ages[half:]) < statistics.median(ages[:half]) + 100, "it does not grow"
    assert _at(min(share, 0.99), health) < 0.05
    lags = await world.metric("counterpoint_loop_lag_seconds_bucket", le="+Inf")
    assert lags > 5 * seconds
    assert await world.metric("counterpoint_loop_lag_seconds_bucket", le="0.1") >= share * lags
    assert await world.metric("counterpoint_loop_lag_seconds_bucket", le="0.02") >= min(share, 0.99) * lags
    await asyncio.gather(*blocked)


def _at(share: float, values: list[float]) -> float:
    """The value that so many of them do not exceed."""
    return sorted(values)[round(share * (len(values) - 1))]


async def _loop_was_late(world: World, by_ms: float) -> bool:
    lag_ms: float = (await world.state())["loop_lag_ms"]
    return lag_ms >= by_ms


async def _health_times(url: str, enough: asyncio.Event) -> list[float]:
    """How long ``/health`` takes, asked every 20 ms until ``enough``."""
    times = []
    while not enough.is_set():
        started = time.monotonic()
        status, _ = await http_get(url, "/health")
        times.append(time.monotonic() - started)
        assert status == 200
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), 0.02)
    return times


async def _round_trips(caller: Caller, enough: asyncio.Event) -> list[float]:
    """How long a heartbeat takes, sent every 20 ms until ``enough``."""
    times = []
    while not enough.is_set():
        started = time.monotonic()
        await caller.send(HEARTBEAT)
        await caller.expect("session.heartbeat_ack")
        times.append(time.monotonic() - started)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), 0.02)
    return times


@pytest.mark.parametrize("megabytes", [24, pytest.param(1000, marks=SLOW)])
async def test_k07_a_flood_of_input_is_bounded_and_delays_nobody(world: World, megabytes: int) -> None:
    """Case K-07. One client sends as fast as it can; memory stays, and another talks as if it were alone."""
    server = await world.spawn({"limits.max_pending_input_bytes": MIB})
    flooding = await world.call(session=MANUAL)
    talking = await world.call()
    alone = asyncio.Event()
    asyncio.get_running_loop().call_later(1.0, alone.set)
    usual = await _round_trips(talking, alone)

    over = asyncio.Event()
    talk = asyncio.create_task(_round_trips(talking, over))
    before = server.status("VmRSS")
    chunk = text(append(tone(200, 0.5)))
    pieces = megabytes * MIB // len(chunk)
    for _ in range(0, pieces, 16):
        await flooding.connection.socket.send(*[chunk] * 16)
    await flooding.send(HEARTBEAT)
    await flooding.expect("session.heartbeat_ack", within=60)
    over.set()
    busy = await talk
    assert server.status("VmRSS") - before < 24 * 1024
    refused = flooding.connection.named("error")
    assert {event["error"]["code"] for event in refused} == {"input_backpressure"}
    assert statistics.median(busy) < statistics.median(usual) + 0.05
    assert max(busy) < 0.5

    # A client that does not number has lost its utterance; the next one works.
    await flooding.send({"type": "input_audio_buffer.clear"}, append(tone(200, 0.5)))
    await flooding.send({"type": "input_audio_buffer.commit", "response_create": False})
    await flooding.expect("input_audio_buffer.committed")


async def _send_until_stuck(caller: Caller, frames: bytes) -> None:
    """Raises ``TimeoutError`` once nothing is taken for a second."""
    for _ in range(100):
        async with asyncio.timeout(1):
            await caller.connection.socket.send(frames)


async def test_k07_replies_that_nobody_reads_stop_the_reading(world: World) -> None:
    """Case K-07. Heartbeats from one who reads no answers: its connection is not read any further."""
    await world.serve({"transport.send_timeout_s": 30, "transport.ping_timeout_s": 30})
    caller = await world.call(receive_buffer=4096)
    caller.connection.socket.reading.clear()
    frames = text(HEARTBEAT) * 20_000
    with pytest.raises(TimeoutError):
        await _send_until_stuck(caller, frames)
    caller.reset()
    await caller.resume()
    await caller.send(user_says("still here"))
    await caller.expect("conversation.item.done")
