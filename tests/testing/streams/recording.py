"""A recorded conversation that uses everything, to be broken by tests of the rules.

Owns: ``record``: a session with typed and spoken turns, a call, an interruption, a mistake, playback.
Does not own: what a test breaks in it.
Here because: a rule is only shown by an event stream that keeps every other rule.
"""

from __future__ import annotations

import copy
import functools
from asyncio import Runner

import aiohttp

from counterpoint.testing.conformance.talk import (
    amp,
    answer,
    answered,
    ask,
    configure,
    pcm,
    refusal,
    script,
    settle,
    speak,
    type_text,
)
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.server import running_server
from counterpoint.testing.streams.stream import Stream

TOOL = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}


async def _record() -> Stream:
    async with running_server() as server, aiohttp.ClientSession() as http:
        target = Target(http, server.url)
        async with target.session(extended=True) as (peer, _):
            call = {"type": "function_call", "name": "look_up", "arguments": '{"word": "fugue"}'}
            scripts = [
                {"pace": "burst", "audio_ms": 240, "items": [{"type": "message", "text": "one two"}, call]},
                {"pace": "burst", "audio_ms": 160, "input_transcript": "good morning"},
                {"pace": "realtime", "audio_ms": 5000, "input_transcript": "go on"},
            ]
            detection = amp(create_response=False)
            detection["audio"]["input"]["transcription"] = {"model": "any"}
            await configure(peer, detection, {"extra_body": {"script": scripts}, "tools": [TOOL]})
            await answered(peer)
            await speak(peer, pcm(400, 0.9), pcm(400))
            await peer.until("conversation.item.input_audio_transcription.completed")
            done = await answer(peer, await ask(peer, output_modalities=["text"]))
            await peer.send({"type": "playback.ack", "item_id": done["output"][0]["id"], "played_ms": 0})
            await refusal(peer, {"type": "response.cancel"})
            await refusal(peer, {"type": "response.cancel", "client_event_seq": 1})
            await type_text(peer)
            await ask(peer)
            added = await peer.until("response.output_audio.delta")
            for played_ms in (10, 20):
                ack = {"type": "playback.ack", "item_id": added["item_id"], "played_ms": played_ms}
                await peer.send(ack)
                await peer.until("playback.acknowledged")
            await speak(peer, pcm(400, 0.9), pcm(400))
            await answer(peer)
            await configure(peer, script(fail_at_chunk=1))
            await answered(peer)
            await settle(peer)
            await peer.send({"type": "session.close"})
            await peer.end()
        (stream,) = target.streams
        return stream


@functools.cache
def _recorded() -> Stream:
    with Runner() as runner:
        return runner.run(_record())


def record() -> Stream:
    """A copy of its own, made once."""
    return copy.deepcopy(_recorded())
