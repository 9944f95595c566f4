"""Nothing of the extensions reaches a client that did not ask for them, whatever its session uses.

An extended client uses every extension; then a stock or a beta client takes its session over, is sent all
that happened again, and goes on using them. No event type, enum value, key or nested metadata that its API
does not have may come (wire contract, "Stock and extended connections").
"""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.talk import (
    answer,
    answered,
    append,
    ask,
    configure,
    pcm,
    script,
    settle,
    speak,
    type_text,
)
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.server import running_server

from .leaking import EXTENSIONS, kinds, leaks, taken_over

TOOL = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}
CALL = {"type": "function_call", "name": "look_up", "arguments": "{}"}
NESTED = {"topic": "music", "depth": 3, "tags": ["fugue"], "of": {"key": "C"}}
IMAGE = "data:image/png;base64,iVBORw0KGgo="

#: Everything that a stock client cannot ask for.
UNOFFICIAL: dict[str, Any] = {
    "overlap_policy": "graded",
    "overlap_short_ack_ms": 300,
    "overlap_barge_in_ms": 500,
    "playback_commit_policy": "ack_only",
    "idle_timeout_s": 100,
    "tools": [TOOL],
    "audio": {
        "input": {
            "transcription": {"model": "any", "language": "en"},
            "turn_detection": {
                "type": "server_vad",
                "detector": "amp",
                "silence_duration_ms": 200,
                "min_speech_ms": 64,
                "false_interruption_ms": 800,
            },
        },
        "output": {"format": {"type": "pcm_f32le", "rate": 48000}, "voice": "default"},
    },
}

#: What both parts of the test must have brought up, or they show nothing.
SEEN = {
    "session.updated",
    "response.output_audio.delta",
    "response.function_call_arguments.done",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.truncated",
    "input_audio_buffer.speech_started",
    "output_audio_buffer.cleared",
    "error",
}


async def use_everything(peer: Peer, *, beta: bool = False, number: int = 1) -> None:
    """A conversation with every extension command, and every kind of answer; ``number`` is the next one."""
    for event in (
        {"type": "session.heartbeat"},
        {"type": "session.event_ack", "server_event_seq": 0},
        {"type": "barge_in"},
        {"type": "turn.signal", "event": "barge_in"},
        {"type": "response.cancel"},
        {"type": "no.such.event"},
    ):
        await peer.send(event)
    items = [{"type": "message", "audio_ms": 400, "text": "one two"}, CALL]
    await configure(peer, script(items=items))
    await _answered(peer, beta, metadata=NESTED, audio={"output": {"format": {"type": "audio/pcmu"}}})
    item: dict[str, Any] = {"type": "message", "role": "user"}
    item["content"] = [{"type": "input_image", "image_url": IMAGE}, {"type": "input_text", "text": "look"}]
    await peer.send({"type": "conversation.item.create", "item": item, "scheduling": "when_idle"})
    first = await answer(peer)
    ids = [entry["id"] for entry in first["output"] if entry["type"] == "message"]
    await peer.send({"type": "playback.ack", "item_id": ids[0], "played_ms": 100})
    await peer.send({"type": "output_audio_buffer.clear"})
    await peer.until("output_audio_buffer.cleared")
    await peer.send({"type": "conversation.item.retrieve", "item_id": ids[0]})
    await configure(peer, script(audio_ms=6000, pace="realtime", input_transcript="what do you mean"))
    await peer.send({"type": "response.create", "response": {"metadata": NESTED}})
    await peer.until("response.output_audio.delta", "response.audio.delta")
    await speak(peer, pcm(400, 0.9), pcm(100), pcm(900, 0.9), pcm(400))
    await answer(peer)
    await peer.until("conversation.item.input_audio_transcription.completed")
    await peer.send({"type": "response.cancel"})
    await settle(peer)
    await configure(peer, script(audio_ms=4000, pace="realtime"))
    await peer.send({"type": "conversation.item.create", "item": item, "scheduling": "interrupt"})
    await peer.until("response.created")
    await peer.send({"type": "response.create", "response": {"conversation": "none", "metadata": NESTED}})
    await peer.until("response.created")
    await peer.send({"type": "conversation.item.create", "item": item, "scheduling": "interrupt"})
    await peer.until("response.created")
    await peer.send({"type": "barge_in"})
    await settle(peer)
    await configure(peer, script(fail_at_chunk=0, fail_transcript=True))
    await _answered(peer, beta)
    await configure(peer, script(listen=True))
    await _answered(peer, beta)
    await peer.send({"type": "input.text.append", "text": "typed"})
    await peer.send({"type": "input.commit", "response_create": False})
    await peer.send({"type": "input.text.append", "text": "typed"})
    await peer.send({"type": "input.cancel"})
    for numbered in (number, number, number + 5):
        await peer.send({"type": "conversation.item.create", "item": item, "client_event_seq": numbered})
    if peer.stream.extended:
        await peer.until("session.input_ack")
    await peer.send(append(pcm(200), sample_rate_hz=24000, is_speech=True))
    await peer.send({"type": "input_audio_buffer.clear"})
    await settle(peer)


async def _answered(peer: Peer, beta: bool, **response: Any) -> None:
    if not beta:
        await answered(peer, **response)
        return
    await type_text(peer)
    await answer(peer, await ask(peer, **response))


@pytest.mark.parametrize("beta", [False, True], ids=["stock", "beta"])
async def test_a_client_of_the_official_api_sees_the_official_api(beta: bool) -> None:
    async with running_server({"journal.ttl_s": 0}) as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        async with target.session(extended=True) as (extended, _):
            await configure(extended, UNOFFICIAL)
            await use_everything(extended)
            async with taken_over(target, extended, beta=beta) as peer:
                await use_everything(peer, beta=beta, number=2)
        assert kinds(extended) >= {
            "overlap.decision",
            "playback.acknowledged",
            "session.heartbeat_ack",
            "session.input_ack",
            "response.listen",
        }
        assert not kinds(peer) & EXTENSIONS
        assert leaks(peer, beta=beta) == []
        if not beta:
            assert kinds(peer) >= SEEN


async def test_a_stock_transcription_session_shows_input_only() -> None:
    async with running_server() as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        for beta in (False, True):
            headers = {"OpenAI-Beta": "realtime=v1"} if beta else {}
            query = {"intent": "transcription"}
            async with target.connect(query=query, headers=headers) as peer:
                created = await peer.until("session.created")
                assert created["session"]["object"] == "realtime.transcription_session"
                hints = {"model": "any", "language": "en"}
                if beta:
                    await peer.send(
                        {
                            "type": "transcription_session.update",
                            "session": {"input_audio_transcription": hints},
                        }
                    )
                    updated = await peer.until("transcription_session.updated")
                    assert updated["session"]["input_audio_transcription"]["language"] == "en"
                else:
                    update = {"type": "transcription", "audio": {"input": {"transcription": hints}}}
                    await peer.send({"type": "session.update", "session": update})
                    updated = await peer.until("session.updated")
                    assert updated["session"]["audio"]["input"]["transcription"]["language"] == "en"
                    assert updated["session"].keys() <= {
                        "type",
                        "id",
                        "object",
                        "expires_at",
                        "audio",
                        "include",
                    }
                assert leaks(peer, beta=beta) == []
