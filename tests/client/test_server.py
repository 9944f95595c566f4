"""The client against the server itself, through a proxy that breaks connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from counterpoint.client import (
    Backoff,
    ConnectionLost,
    Event,
    Options,
    ServerRefused,
    Session,
    SessionEnded,
    connect,
)
from counterpoint.testing.proxy import FaultProxy, proxying
from counterpoint.testing.server import running_server

QUICK = Options(backoff=Backoff(first_s=0.02, most_s=0.1, stable_s=0.5, give_up_s=5))
MANUAL = {"input": {"turn_detection": None}}
PATIENCE_S = 10.0


def scripted(**script: Any) -> dict[str, Any]:
    return {"audio": MANUAL, "extra_body": {"script": {"pace": "burst"} | script}}


def ramp(response: int, samples: int) -> bytes:
    """What the scripted model says in its ``response``th answer (wire contract, section 12)."""
    return struct.pack(f"<{samples}h", *((response * 7919 + i) % 32768 for i in range(samples)))


@asynccontextmanager
async def served(settings: Mapping[str, object] | None = None) -> AsyncIterator[tuple[str, FaultProxy]]:
    async with running_server(settings) as server, proxying(server.url) as proxy, asyncio.timeout(40):
        yield proxy.through(server.url), proxy


async def hear(session: Session) -> bytes:
    response = await session.respond()
    return b"".join([chunk async for chunk in response.audio()])


async def rest_of(session: Session) -> list[Event]:
    return [event async for event in session.events()]


async def until(session: Session, type: str) -> Event:
    async for event in session.events():
        if event.type == type:
            return event
    raise AssertionError(f"no {type}")


async def test_a_conversation_by_text() -> None:
    async with served() as (url, _), connect(url, session=scripted(audio_ms=400, text="good day")) as session:
        await session.send_text("hello")
        response = await session.respond()
        audio = b"".join([chunk async for chunk in response.audio()])
        await response.done()
        assert (response.status, response.text, audio) == ("completed", "good day", ramp(1, 9600))
        await session.acknowledge_playback(response.id, 400)
        assert (await until(session, "playback.acknowledged"))["playback"]["played_ms"] == 400
        assert [(item.role, item.text) for item in session.conversation] == [
            ("user", "hello"),
            ("assistant", "good day"),
        ]
        assert session.capabilities["interaction"]
    assert session.close_reason is not None
    assert (session.close_reason.code, session.close_reason.resumable) == (1000, False)


async def test_what_is_refused_is_raised() -> None:
    async with served() as (url, _), connect(url, session=scripted()) as session:
        with pytest.raises(ServerRefused, match="input_audio_buffer_commit_empty"):
            await session.commit_audio()
        with pytest.raises(ServerRefused) as refused:
            await session.update({"audio": {"input": {"format": {"type": "PCM16"}}}})
        assert refused.value.param == "session.audio.input.format.type"
        assert await session.cancel() is False
    with pytest.raises(ServerRefused, match="model_not_found"):
        async with served() as (url, _):
            await connect(url, model="nope")


async def test_a_full_server_says_when_to_come_back() -> None:
    async with served({"limits.max_sessions": 1}) as (url, _), connect(url):
        with pytest.raises(ServerRefused, match="resource_exhausted") as refused:
            await connect(url)
        assert refused.value.retry_after_ms is not None


async def test_an_answer_can_be_stopped() -> None:
    config = scripted(audio_ms=60_000, pace="realtime")
    async with served() as (url, _), connect(url, session=config) as session:
        await session.send_text("go on")
        response = await session.respond()
        await anext(aiter(response.audio()))
        assert await session.cancel() is True
        assert (await response.done()).interrupted


@pytest.mark.parametrize("lost_from", [3_000, 10_000, 30_000, 60_000])
async def test_speech_arrives_once_whatever_was_lost_on_the_way(lost_from: int) -> None:
    """Case A-13: 50 appends of 20 ms; from some byte on nothing arrives, then the connection is reset."""
    ramp_in = ramp(3, 50 * 480)
    async with (
        served() as (url, proxy),
        connect(url, session=scripted(echo_input=True), options=QUICK) as session,
    ):
        newest = proxy.newest
        newest.to_server.faults.drop_from = newest.to_server.passed + lost_from
        for start in range(0, len(ramp_in), 960):
            await session.append_audio(ramp_in[start : start + 960])
            await asyncio.sleep(0.002)
        newest.reset()
        await session.commit_audio()
        assert await hear(session) == ramp_in


async def test_an_answer_arrives_once_over_many_resets() -> None:
    config = scripted(audio_ms=20_000, text=" ".join(f"word{number}" for number in range(100)))
    async with served() as (url, proxy), connect(url, session=config, options=QUICK) as session:
        await session.send_text("tell me")
        proxy.to_client.reset_at = 200_000
        proxy.newest.to_client.faults.reset_at = 200_000
        response = await session.respond()
        audio = b"".join([chunk async for chunk in response.audio()])
        assert audio == ramp(1, 480_000)
        assert len(proxy.connections) > 5
        proxy.to_client.reset_at = float("inf")
        assert response.text == config["extra_body"]["script"]["text"]
    numbers = [event.seq for event in await rest_of(session) if event.seq is not None]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_dead_line_is_noticed_by_the_client_itself() -> None:
    options = Options(ping_s=0.3, backoff=QUICK.backoff)
    async with served() as (url, proxy), connect(url, session=scripted(), options=options) as session:
        proxy.newest.blackhole()
        await until(session, "client.disconnected")
        await session.send_text("still here")
        assert len(proxy.connections) == 2


async def test_a_session_that_expired_meanwhile_ends_every_wait_within_a_second() -> None:
    """Case A-14."""
    settings = {"lease.disconnect_grace_s": 0.2, "lease.reaper_interval_s": 0.05}
    config = scripted(pace="realtime", audio_ms=60_000)
    async with served(settings) as (url, proxy):
        session = await connect(url, session=config, options=QUICK)
        await session.send_text("go on")
        response = await session.respond()
        waiting = asyncio.create_task(response.done())
        proxy.port, port = 1, proxy.port
        proxy.newest.reset()
        await asyncio.sleep(0.6)
        proxy.port = port
        with pytest.raises(ConnectionLost) as lost:
            async with asyncio.timeout(1):
                await waiting
        assert isinstance(lost.value.__cause__, ServerRefused)
        assert lost.value.__cause__.code == "session_resume_expired"
        await session.close()


async def test_another_server_at_the_same_address_is_no_resume() -> None:
    """Case A-05: typed, never the live edge; and a new session delivers its events from 1 on."""
    async with running_server() as second, served() as (url, proxy):
        session = await connect(url, session=scripted(), options=QUICK)
        for _ in range(5):
            await session.send_text("x")
        proxy.port = int(second.url.rsplit(":", 1)[1].split("/")[0])
        proxy.newest.reset()
        with pytest.raises(ConnectionLost, match="invalid_resume_token"):
            await rest_of(session)
        async with connect(url, session=scripted()) as other:
            await other.send_text("hello")
            assert other.id != session.id
        assert next(event.seq for event in await rest_of(other) if event.seq) == 1


async def test_two_clients_of_one_session_do_not_fight() -> None:
    """Case B-05."""
    async with served() as (url, proxy):
        first = await connect(url, session=scripted(), options=QUICK)
        async with connect(url, resume=first.resume_point, options=QUICK) as second:
            with pytest.raises(ConnectionLost) as lost:
                await rest_of(first)
            assert lost.value.code == 4001
            assert first.close_reason is not None
            assert first.close_reason.resumable
            await asyncio.sleep(1)
            assert len(proxy.connections) == 2
            await second.send_text("mine now")


async def test_a_session_can_be_left_and_taken_up_elsewhere() -> None:
    async with served() as (url, _):
        first = await connect(url, session=scripted(text="good day"))
        await first.send_text("hello")
        point = await first.detach()
        async with connect(url, resume=point) as second:
            assert second.id == first.id
            response = await second.respond()
            assert (await response.done()).text == "good day"


async def test_after_a_gap_the_conversation_is_whole() -> None:
    settings = {"journal.max_events": 20, "lease.disconnect_grace_s": 20}
    async with served(settings) as (url, proxy):
        config = scripted(audio_ms=2000, text="gone by", pace="realtime")
        session = await connect(url, session=config, options=QUICK)
        await session.send_text("hello")
        response = await session.respond()
        proxy.port, port = 1, proxy.port
        proxy.newest.reset()
        await asyncio.sleep(2.5)
        proxy.port = port
        await response.done()
        assert (response.status, response.text, response.has_gap) == ("completed", "gone by", True)
        await until(session, "session.snapshot")
        await session.send_text("are you there")
        texts = [(item.role, item.text) for item in session.conversation]
        assert texts == [("user", "hello"), ("assistant", "gone by"), ("user", "are you there")]
        await session.close()


async def test_a_drain_ends_a_session_that_nobody_stores() -> None:
    async with running_server() as server:
        session = await connect(server.url)
        server.manager.end_all("drained")
        with pytest.raises(SessionEnded, match="drained"):
            await rest_of(session)
        assert session.close_reason is not None
        assert (session.close_reason.code, session.close_reason.resumable) == (1012, False)


async def test_the_official_api_alone_is_enough_for_a_conversation() -> None:
    async with (
        served() as (url, _),
        connect(url, session=scripted(text="good day"), extended=False) as session,
    ):
        await session.send_text("hello")
        assert (await (await session.respond()).done()).text == "good day"
        await session.update({"audio": {"input": {"format": {"type": "audio/pcmu"}}}})
        assert session.input_format.bytes_per_second == 8000
        await session.append_audio(bytes(1600))
        await session.commit_audio()


async def test_speech_is_found_and_answered_unasked() -> None:
    detection = {"type": "server_vad", "detector": "amp", "silence_duration_ms": 200}
    audio = {"input": {"turn_detection": detection, "transcription": {}}}
    config = {
        "audio": audio,
        "extra_body": {"script": {"input_transcript": "hi", "text": "yes", "pace": "burst"}},
    }
    async with served() as (url, _), connect(url, session=config) as session:
        loud = struct.pack("<h", 30_000) * 4800
        await session.append_audio(loud + bytes(48_000))
        response = await anext(aiter(session.responses()))
        assert (await response.done()).text == "yes"
        await until(session, "conversation.item.input_audio_transcription.completed")
        assert [item.text for item in session.conversation] == ["hi", "yes"]


async def test_nobody_there_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLost, match="no session"):
        await connect(f"ws://127.0.0.1:{port}")


async def test_a_certificate_that_is_not_trusted_is_refused() -> None:
    async with served() as (url, _):
        with pytest.raises(ConnectionLost):
            await connect(url.replace("ws://", "wss://"), tls=ssl.create_default_context())
