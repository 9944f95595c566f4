"""The official ``openai`` package, unmodified: by text, by audio, with VAD, tools and cancel.

What it receives must parse into its own typed models, and hold nothing that these do not know (case I-09).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, AuthenticationError, BadRequestError
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import ClientSecretCreateResponse, RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed

from counterpoint.serving.app import Server
from counterpoint.testing.schema.events import server_event_problems
from counterpoint.testing.server import running_server

STRICT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
FRAME = 960  # 20 ms of PCM16 at 24 kHz


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running_server() as up:
        yield up


@pytest.fixture
async def connection(server: Server) -> AsyncIterator[AsyncRealtimeConnection]:
    base = server.url.removesuffix("/realtime")
    async with (
        AsyncOpenAI(api_key="unused", base_url=base, websocket_base_url=base) as client,
        client.realtime.connect(model="gpt-realtime") as opened,
    ):
        yield opened


async def events_until(connection: AsyncRealtimeConnection, last: str) -> list[Any]:
    """Every event up to the first of type ``last``, each valid for the package's strict models."""
    events = []
    async with asyncio.timeout(20):
        async for event in connection:
            STRICT.validate_python(event.to_dict())
            assert server_event_problems(event.to_dict()) == []
            events.append(event)
            if event.type == last:
                return events
    raise AssertionError(f"the connection ended before {last}")


def tone(ms: int, level: float) -> bytes:
    sample = round(level * 32767).to_bytes(2, "little", signed=True)
    return sample * (ms * 24)


async def speak(connection: AsyncRealtimeConnection, pcm: bytes) -> None:
    for start in range(0, len(pcm), FRAME):
        await connection.input_audio_buffer.append(
            audio=base64.b64encode(pcm[start : start + FRAME]).decode()
        )


async def use_script(connection: AsyncRealtimeConnection, script: dict[str, Any], **audio: Any) -> None:
    session: dict[str, Any] = {"type": "realtime", "extra_body": {"script": script}}
    if audio:
        session["audio"] = audio
    await connection.session.update(session=session)  # type: ignore[arg-type]
    await events_until(connection, "session.updated")


async def test_a_typed_conversation(connection: AsyncRealtimeConnection) -> None:
    await events_until(connection, "session.created")
    await use_script(connection, {"audio_ms": 400, "pace": "burst", "text": "hello there"})
    await connection.conversation.item.create(
        item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    )
    await connection.response.create(response={"output_modalities": ["text"]})
    events = await events_until(connection, "response.done")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "hello there"
    assert events[-1].response.status == "completed"
    assert events[-1].response.output[0].content[0].text == "hello there"


async def test_a_spoken_conversation_with_server_vad(connection: AsyncRealtimeConnection) -> None:
    """Speech in, audio out: every sample of the script's ramp, once and in order."""
    await events_until(connection, "session.created")
    detection = {"type": "server_vad", "detector": "amp", "silence_duration_ms": 300}
    await use_script(
        connection,
        {"audio_ms": 500, "pace": "burst", "input_transcript": "good morning"},
        input={"turn_detection": detection, "transcription": {"model": "any"}},
    )
    await speak(connection, tone(600, 0.9) + tone(600, 0.0))
    events = await events_until(connection, "response.done")
    kinds = [event.type for event in events]
    for kind in ("input_audio_buffer.speech_started", "input_audio_buffer.committed", "response.created"):
        assert kinds.count(kind) == 1
    pcm = b"".join(
        base64.b64decode(event.delta) for event in events if event.type == "response.output_audio.delta"
    )
    ramp = b"".join(((7919 + i) % 32768).to_bytes(2, "little") for i in range(500 * 24))
    assert pcm == ramp
    transcripts = [e.transcript for e in events if e.type.endswith("input_audio_transcription.completed")]
    assert transcripts == ["good morning"]


async def test_cancel_then_create_at_once(connection: AsyncRealtimeConnection) -> None:
    await events_until(connection, "session.created")
    await use_script(connection, {"audio_ms": 5000, "pace": "realtime"})
    await connection.conversation.item.create(
        item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    )
    await connection.response.create()
    first = (await events_until(connection, "response.output_audio.delta"))[-1].response_id
    await connection.response.cancel()
    await connection.response.create(response={"output_modalities": ["text"]})
    events = await events_until(connection, "response.done")
    assert events[-1].response.id == first
    assert events[-1].response.status == "cancelled"
    events = await events_until(connection, "response.done")
    assert events[-1].response.status == "completed"
    assert all(getattr(event, "response_id", None) != first for event in events)


async def test_a_tool_call_and_its_result(connection: AsyncRealtimeConnection) -> None:
    await events_until(connection, "session.created")
    weather = {
        "type": "function",
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }
    await connection.session.update(session={"type": "realtime", "tools": [weather]})  # type: ignore[list-item]
    await events_until(connection, "session.updated")
    await connection.conversation.item.create(
        item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]}
    )
    await connection.response.create()
    done = (await events_until(connection, "response.done"))[-1].response
    (call,) = done.output
    assert (call.type, call.name) == ("function_call", "weather")
    assert set(json.loads(call.arguments)) == {"city"}
    await connection.conversation.item.create(
        item={"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    )
    await connection.response.create(response={"output_modalities": ["text"]})
    done = (await events_until(connection, "response.done"))[-1].response
    assert [item.type for item in done.output] == ["message"]


async def test_a_mistake_is_an_error_event_and_no_end(connection: AsyncRealtimeConnection) -> None:
    await events_until(connection, "session.created")
    await connection.response.cancel()
    (error,) = [e for e in await events_until(connection, "error") if e.type == "error"]
    assert error.error.code == "response_cancel_not_active"
    await connection.session.update(session={"type": "realtime", "instructions": "still here"})
    updated = (await events_until(connection, "session.updated"))[-1]
    assert updated.session.instructions == "still here"


async def test_an_unknown_model_is_refused(server: Server) -> None:
    base = server.url.removesuffix("/realtime")
    async with (
        AsyncOpenAI(api_key="unused", base_url=base, websocket_base_url=base) as client,
        client.realtime.connect(model="nope") as connection,
    ):
        error = (await events_until(connection, "error"))[-1].error
        assert error.code == "model_not_found"
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


async def test_a_browser_gets_a_secret_and_connects_with_it(tmp_path: Path) -> None:
    """The HTTP side of the package, and what its answer promises of the session."""
    keys = tmp_path / "keys"
    keys.write_text(f"{hashlib.sha256(b'sk-good').hexdigest()} shop\n")
    async with running_server({"access.keys_file": str(keys)}) as server:
        base = server.url.removesuffix("/realtime")
        async with AsyncOpenAI(api_key="sk-good", base_url=base.replace("ws", "http", 1)) as client:
            issued = await client.realtime.client_secrets.create(
                expires_after={"anchor": "created_at", "seconds": 60},
                session={"type": "realtime", "model": "gpt-realtime", "instructions": "sell nothing"},
            )
            assert issued.session.type == "realtime"
            assert issued.session.instructions == "sell nothing"
            ClientSecretCreateResponse.model_validate(issued.to_dict(), strict=True)
            with pytest.raises(BadRequestError) as refused:
                await client.realtime.client_secrets.create(expires_after={"seconds": 1})
            assert (refused.value.param, refused.value.code) == ("expires_after.seconds", "invalid_event")
        async with (
            AsyncOpenAI(api_key=issued.value, base_url=base, websocket_base_url=base) as browser,
            browser.realtime.connect(model="gpt-realtime") as connection,
        ):
            await events_until(connection, "session.created")
            await connection.session.update(session={"type": "realtime", "instructions": "sell everything"})
            updated = (await events_until(connection, "session.updated"))[-1]
            assert updated.session.instructions == "sell nothing"
        async with AsyncOpenAI(api_key="sk-bad", base_url=base.replace("ws", "http", 1)) as client:
            with pytest.raises(AuthenticationError):
                await client.realtime.client_secrets.create()


async def test_a_transcription_session_takes_input_and_nothing_else(server: Server) -> None:
    """``intent=transcription``, as the official clients ask for it (case I-12)."""
    base = server.url.removesuffix("/realtime")
    async with (
        AsyncOpenAI(api_key="unused", base_url=base, websocket_base_url=base) as client,
        client.realtime.connect(extra_query={"intent": "transcription"}) as connection,
    ):
        created = (await events_until(connection, "session.created"))[-1]
        assert created.session.type == "transcription"
        detection = {"type": "server_vad", "detector": "amp", "silence_duration_ms": 200}
        session: Any = {
            "type": "transcription",
            "audio": {"input": {"transcription": {"model": "any"}, "turn_detection": detection}},
        }
        session["extra_body"] = {"script": {"input_transcript": "good morning"}}
        await connection.session.update(session=session)
        await events_until(connection, "session.updated")
        for _ in range(2):
            await speak(connection, tone(400, 0.9) + tone(400, 0.0))
            events = await events_until(connection, "conversation.item.input_audio_transcription.completed")
            assert events[-1].transcript == "good morning"
            assert not [event.type for event in events if event.type.startswith("response.")]
        await connection.response.create()
        (error,) = [e for e in await events_until(connection, "error") if e.type == "error"]
        assert error.error.code == "unsupported"
