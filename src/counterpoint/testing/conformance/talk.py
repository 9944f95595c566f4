"""Phrases that many checks use: configuring, speaking, being answered, being refused.

Owns: the smallest exchanges of a client with a server.
Does not own: connections (``peer``), what is checked.
Here because: a check should read like the sentence of the contract that it stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pybase64

from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.testing.streams.stream import Event

from .outcome import Failed, require
from .peer import Peer

MANUAL: dict[str, Any] = {"audio": {"input": {"turn_detection": None}}}


def amp(**settings: Any) -> dict[str, Any]:
    """Turns by loudness, so that what is speech is known exactly."""
    detection = {"type": "server_vad", "detector": "amp", "silence_duration_ms": 200, **settings}
    return {"audio": {"input": {"turn_detection": detection}}}


def script(**keys: Any) -> dict[str, Any]:
    return {"extra_body": {"script": {"pace": "burst", **keys}}}


def pcm(ms: int, level: float = 0.0) -> bytes:
    """PCM16 at 24 kHz, ``level`` loud (0 to 1), without a constant part."""
    samples = np.full(ms * SESSION_RATE // 1000, round(level * 32767), np.int16)
    samples[::2] *= -1
    return samples.astype("<i2").tobytes()


def append(audio: bytes, **fields: Any) -> Event:
    return {"type": "input_audio_buffer.append", "audio": pybase64.b64encode(audio).decode(), **fields}


async def speak(peer: Peer, *pieces: bytes, chunk_ms: int = 100) -> None:
    """Append ``pieces`` in chunks as a microphone makes them."""
    audio, size = b"".join(pieces), chunk_ms * SESSION_RATE // 1000 * 2
    for start in range(0, len(audio), size):
        await peer.send(append(audio[start : start + size]))


async def configure(peer: Peer, *patches: dict[str, Any]) -> Event:
    """The ``session`` after an update with all ``patches``, merged at their top."""
    session: dict[str, Any] = {"type": "realtime"}
    for patch in patches:
        session |= patch
    event_id = await peer.send({"type": "session.update", "session": session})
    answer = await peer.until(
        "session.updated", "error", where=lambda event: event["type"] != "error" or _about(event, event_id)
    )
    if answer["type"] == "error":
        raise Failed(f"session.update was refused: {answer['error'].get('message')}")
    shown: Event = answer["session"]
    return shown


async def settle(peer: Peer) -> list[Event]:
    """What came before the server was done with everything that was sent so far."""
    mark = peer.count
    await configure(peer)
    return [event for event in peer.since(mark) if event["type"] != "session.updated"]


async def refusal(peer: Peer, event: Event, *codes: str, param: str | None = None) -> Event:
    """Send ``event``, which must be answered by one error with one of ``codes``; returns ``error``."""
    event_id = await peer.send(event)
    answer = await peer.until("error", where=lambda found: _about(found, event_id))
    error: Event = answer["error"]
    name = f"{event['type']} was refused with"
    require(not codes or error["code"] in codes, f"{name} {error['code']}, not {' or '.join(codes)}")
    require(param is None or error["param"] == param, f"{name} param {error.get('param')!r}, not {param!r}")
    return error


def _about(event: Event, event_id: str) -> bool:
    return bool(event["error"].get("event_id") == event_id)


async def type_text(peer: Peer, text: str = "Say hello.", **fields: Any) -> Event:
    """Add a user's message; returns the item that was added."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    await peer.send({"type": "conversation.item.create", "item": item, **fields})
    added = await peer.until("conversation.item.added", "conversation.item.created")
    found: Event = added["item"]
    return found


async def ask(peer: Peer, **response: Any) -> str:
    """``response.create``; returns the id of the response that it made."""
    await peer.send(
        {"type": "response.create", "response": response} if response else {"type": "response.create"}
    )
    created = await peer.until("response.created")
    return str(created["response"]["id"])


async def answer(peer: Peer, response_id: str | None = None) -> Event:
    """The response that is done next, or the one named."""
    done = await peer.until(
        "response.done", where=lambda event: response_id in (None, event["response"]["id"])
    )
    found: Event = done["response"]
    return found


async def answered(peer: Peer, text: str = "Say hello.", **response: Any) -> Event:
    """A typed question and its whole answer."""
    await type_text(peer, text)
    return await answer(peer, await ask(peer, **response))


def heard(peer: Peer, response_id: str) -> bytes:
    """All audio of a response, in the order in which it came."""
    return b"".join(
        pybase64.b64decode(event["delta"])
        for event in peer.stream.of("response.output_audio.delta")
        if event["response_id"] == response_id
    )


def ramp(number: int, samples: int, start: int = 0) -> bytes:
    """What the scripted model says as the session's response ``number``."""
    index = np.arange(start, start + samples)
    return ((number * 7919 + index) % 32768).astype("<i2").tobytes()
