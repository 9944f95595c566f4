"""Over a line that is cut: every event is read once, and what is written arrives once."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import pytest
from tests.client.memory import Server, now, numbers, read_all, settle

from counterpoint.client import (
    Options,
    ReplayPolicy,
    ServerRefused,
)
from counterpoint.client.transport import BROKEN, Closed, UpgradeRefused

# --- reading ------------------------------------------------------------------------------------


async def test_every_event_comes_once_in_order_over_many_cuts() -> None:
    server = Server()
    session = await server.connect()
    for _ in range(20):
        for _ in range(3):
            server.emit("x")
        await asyncio.sleep(0.01)
        server.here.end(BROKEN)
        server.emit("y")
        await settle(10)
    await session.close()
    assert numbers(await read_all(session)) == list(range(1, server.head + 1))


async def test_the_cursor_is_the_number_of_the_newest_event() -> None:
    """Case A-09."""
    server = Server()
    session = await server.connect()
    for number in (1, 2, 2, 3, 3, 4):
        server.here.say({"type": "x", "server_event_seq": number})
    server.head = 4
    await settle()
    server.here.end(BROKEN)
    await settle()
    assert server.resumes[0]["last_received_server_event_seq"] == 4
    await session.close()
    assert numbers(await read_all(session)) == [1, 2, 3, 4, 5]


async def test_a_resume_names_session_token_and_policy() -> None:
    server = Server()
    async with server.connect(options=Options(replay=ReplayPolicy.FROM_PLAYHEAD)):
        for expected in ("token-0", "token-1"):
            server.here.end(BROKEN)
            await settle()
            assert server.resumes[-1] == {
                "type": "session.resume",
                "session_id": "sess_1",
                "resume_token": expected,
                "last_received_server_event_seq": 0,
                "replay": "from_playhead",
            }


async def test_a_token_is_proven_at_once() -> None:
    """Only an acknowledgement or a heartbeat proves that the new token arrived (wire, section 3)."""
    server = Server()
    async with server.connect():
        server.here.end(BROKEN)
        await settle()
        assert server.acknowledged == [0]


async def test_a_reply_lost_in_flight_is_retried_with_the_same_token() -> None:
    server = Server()
    async with server.connect() as session:
        server.here.end(BROKEN)
        server.obstacles = [Closed(BROKEN), Closed(1011), UpgradeRefused(503), TimeoutError()]
        await settle(30)
        assert len(server.dialled) == 6
        assert session.close_reason is None


async def test_events_are_acknowledged_though_nobody_reads_them() -> None:
    """Case K-03."""
    server = Server()
    session = await server.connect(options=Options(event_buffer_bytes=100_000))
    for number in range(1, 5001):
        server.emit("x")
        if number % 50 == 0:
            await asyncio.sleep(0.001)
    await settle(2)
    assert server.acknowledged[-1] == 5000
    assert len(server.acknowledged) < 100
    await session.close()
    left = await read_all(session)
    assert left[0].type == "client.overflow"
    unnumbered = 2  # session.created, and the session.input_ack of the close
    assert left[0]["dropped"] + len(left) - 1 == server.head + unnumbered
    assert numbers(left) == list(range(numbers(left)[0], server.head + 1))


async def test_frames_that_are_no_events_are_told_and_survived() -> None:
    """Case I-01."""
    server = Server()
    session = await server.connect()
    for frame in ("{", "null", "[]", "5", "{}", '{"type":null}', b'{"type":"x"}', "[" * 50_000):
        server.here.say_raw(frame)
    server.emit("x")
    await session.close()
    kinds = Counter(event.type for event in await read_all(session))
    assert (kinds["client.malformed_frame"], kinds["x"]) == (8, 1)


async def test_a_gap_is_an_event_and_moves_the_cursor() -> None:
    server = Server()
    session = await server.connect()
    server.here.end(BROKEN)
    for _ in range(10):
        server.emit("lost")
    server.boundary = 7
    await settle(5)
    server.emit("x")
    await settle()
    server.here.end(BROKEN)
    await settle()
    assert server.resumes[1]["last_received_server_event_seq"] == 11
    await session.close()
    events = await read_all(session)
    assert [event.type for event in events if not event.local] == [
        "session.created",
        "session.resumed",
        "session.snapshot",
        "x",
        "session.resumed",
        "session.input_ack",
        "session.closed",
    ]


# --- writing ------------------------------------------------------------------------------------


async def test_input_arrives_once_whatever_prefix_of_it_was_lost() -> None:
    """Case A-13."""
    for prefix in range(0, 51, 5):
        server = Server()
        server.acknowledges_input = False
        async with server.connect() as session:
            ramp = b"".join(number.to_bytes(2, "little") * 480 for number in range(50))
            for number in range(50):
                if number == prefix:
                    server.here.deaf = True
                await session.append_audio(ramp[number * 960 : (number + 1) * 960])
                await asyncio.sleep(0.001)
            server.here.end(BROKEN)
            await settle(1)
            assert server.audio() == ramp
            assert [event["client_event_seq"] for event in server.applied] == list(range(1, 51))


async def test_audio_of_a_short_outage_follows_and_of_a_long_one_the_newest() -> None:
    """Case N-03: 500 ms, then 5 s, with room for 2 s."""
    server = Server()
    chunks = [number.to_bytes(2, "little") * 480 for number in range(400)]
    session = await server.connect()

    async def talk(first: int, count: int) -> None:
        for chunk in chunks[first : first + count]:
            await session.append_audio(chunk)
            await asyncio.sleep(0.02)

    await talk(0, 10)
    server.here.end(BROKEN)
    server.obstacles = [Closed(BROKEN)] * 2
    await talk(10, 25)
    await settle(5)
    assert server.audio() == b"".join(chunks[:35])

    server.here.end(BROKEN)
    server.obstacles = [Closed(BROKEN)] * 100
    await talk(35, 250)
    server.obstacles = []
    await settle(10)
    assert server.audio() == b"".join((*chunks[:35], *chunks[185:285]))
    await session.close()
    dropped = [event["audio_ms"] for event in await read_all(session) if event.type == "client.audio_dropped"]
    assert dropped == [3000]


async def test_a_file_loses_nothing() -> None:
    server = Server()
    async with server.connect(options=Options(outage_audio_s=math.inf)) as session:
        server.here.end(BROKEN)
        server.obstacles = [Closed(BROKEN)] * 6
        pcm = bytes(range(256)) * 2000
        await session.append_audio(pcm)
        await settle(30)
        assert server.audio() == pcm


async def test_a_slow_line_makes_audio_wait_and_its_end_lets_it_go() -> None:
    server = Server()
    async with server.connect() as session:
        server.here.taking.clear()
        appending = asyncio.create_task(session.append_audio(bytes(10 << 20)))
        await settle(5)
        assert not appending.done()
        server.here.end(BROKEN)
        server.obstacles = [Closed(BROKEN)] * 3
        await asyncio.wait_for(appending, 0.1)


async def test_input_without_room_is_sent_again_and_nobody_hears_of_a_refusal() -> None:
    server = Server()
    refused: list[str] = []

    def no_room(event: dict[str, Any]) -> None:
        if len(refused) < 3:
            refused.append(event["event_id"])
            server.refuse(event, "input_backpressure", retry_after_ms=400)
        else:
            server.refusing = None
            server._take(server.here, event)

    async with server.connect() as session:
        server.refusing = no_room
        began = now()
        server.answer = lambda event: server.emit("input_audio_buffer.cleared")
        await session.clear_audio()
        assert now() - began >= 1.2
        assert refused == [refused[0]] * 3
        assert len(server.applied) == 1


async def test_input_without_room_that_was_not_numbered_is_refused() -> None:
    server = Server()
    server.speaks_first = True
    server.answer = lambda event: server.refuse(event, "input_backpressure", retry_after_ms=400)
    async with server.connect(extended=False) as session:
        with pytest.raises(ServerRefused, match="input_backpressure") as refused:
            await session.commit_audio()
        assert refused.value.retry_after_ms == 400


async def test_a_gap_in_the_numbers_is_filled() -> None:
    server = Server()
    async with server.connect() as session:
        server.here.deaf = True
        for name in "ab":
            await session.send({"type": name})
        await settle()
        server.here.deaf = False
        server.emit("error", error={"code": "client_event_gap", "expected": 1, "event_id": None})
        await settle()
        assert server.heard_types() == ["a", "b"]


async def test_heartbeats_come_every_half_minute_and_are_not_numbered() -> None:
    server = Server()
    async with server.connect():
        connection = server.here
        await settle(100)
        beats = [event for event in connection.heard if event["type"] == "session.heartbeat"]
        assert beats == [{"type": "session.heartbeat"}] * 3


async def test_without_extensions_only_official_events_are_sent() -> None:
    server = Server()
    server.speaks_first = True
    async with server.connect(extended=False) as session:
        await session.append_audio(b"\0\0")
        server.emit("x")
        await settle(100)
        (append,) = server.here.heard
        assert set(append) == {"type", "event_id", "audio"}
