"""Nothing of the extensions reaches an unextended client when its model is native, or its session ends."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import pytest

from counterpoint.models.scripted.native import ScriptedFrames, ScriptedUnits
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.talk import MANUAL, amp, answer, append, configure, pcm, script, settle
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.server import running_server

from .leaking import EXTENSIONS, kinds, leaks, taken_over, unextended

BETA = pytest.mark.parametrize("beta", [False, True], ids=["stock", "beta"])

#: 1.1 s of PCM16 at 24 kHz that is as loud after resampling.
LOUD = b"\x00\x60" * (24 * 1100)


def frames() -> ModelPlugin:
    return ScriptedFrames({})


def units() -> ModelPlugin:
    return ScriptedUnits({})


async def be_spoken_to(peer: Peer) -> None:
    """Speak until the model does, hear it out, then cut it off."""
    await configure(peer, amp(), script(audio_ms=800), {"overlap_policy": "listen_only"})
    await peer.send(append(LOUD))
    await answer(peer)
    await configure(peer, script(audio_ms=3000))
    await peer.send(append(LOUD))
    await peer.until("response.output_audio.delta", "response.audio.delta")
    await peer.send({"type": "barge_in"})
    await answer(peer)
    await settle(peer)


@pytest.mark.parametrize("model", [frames, units], ids=["frames", "units"])
@BETA
async def test_a_native_model_is_told_in_official_words(beta: bool, model: Callable[[], ModelPlugin]) -> None:
    """An extended client is told when it speaks and listens; then another takes its session over."""
    async with (
        running_server({"journal.ttl_s": 0}, plugin=model()) as server,
        aiohttp.ClientSession() as http,
    ):
        target = Target(http, server.url)
        async with target.session(extended=True) as (extended, _):
            await be_spoken_to(extended)
            async with taken_over(target, extended, beta=beta) as peer:
                await be_spoken_to(peer)
        assert "response.speak" in kinds(extended)
        assert not kinds(peer) & EXTENSIONS
        assert kinds(peer) >= {"response.created", "response.done"}
        assert leaks(peer, beta=beta) == []


@BETA
async def test_what_was_missed_is_told_in_official_words(beta: bool) -> None:
    """After a gap an extended client gets a snapshot; another is told its items."""
    async with running_server() as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        async with target.session(extended=True) as (extended, session):
            await configure(extended, MANUAL, script(audio_ms=200))
            await extended.send(append(pcm(300)))
            await extended.send({"type": "input_audio_buffer.commit"})
            await answer(extended)
            created, head = extended.stream.received[0], extended.stream.received[-1]["server_event_seq"]
            await extended.send({"type": "session.event_ack", "server_event_seq": head})
            await settle(extended)
            await extended.drop()
            query = {"resume": session["id"], "resume_token": created["resume_token"]}
            headers = {"OpenAI-Beta": "realtime=v1"} if beta else {}
            async with target.connect(query=query, headers=headers) as peer:
                await settle(peer)
        assert ("conversation.item.created" if beta else "conversation.item.added") in kinds(peer)
        assert not kinds(peer) & EXTENSIONS
        assert leaks(peer, beta=beta) == []


@BETA
async def test_the_end_of_a_session_is_told_in_official_words(beta: bool) -> None:
    """``session.expiring`` and ``session.expired`` are extensions: an error and the close code say it."""
    async with running_server({"limits.max_session_s": 1}) as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        async with target.session(extended=True) as (extended, _), unextended(target, beta=beta) as peer:
            assert await extended.end() == 1000
            assert await peer.end() == 1000
        assert {"session.expiring", "session.expired"} <= kinds(extended)
        assert kinds(peer) == {"session.created", "error"}
        assert leaks(peer, beta=beta) == []


@BETA
async def test_a_drain_is_told_in_official_words(beta: bool) -> None:
    """``session.go_away`` and ``session.closed`` are extensions: the close code says it."""
    async with running_server({"drain.timeout_s": 0.3}) as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        async with target.session(extended=True) as (extended, _), unextended(target, beta=beta) as peer:
            await server.drain()
            assert await extended.end() == 1012
            assert await peer.end() == 1012
        assert {"session.go_away", "session.closed"} <= kinds(extended)
        assert kinds(peer) == {"session.created"}
        assert leaks(peer, beta=beta) == []
