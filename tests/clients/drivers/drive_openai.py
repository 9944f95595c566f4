"""The ``openai`` package, asynchronous: what its user sees of five conversations, a JSON object a line.

Owns: using the package as its documentation shows it.
Does not own: the words, and how it tells of what comes (``openai_seen``); what must be seen
(``test_real_clients``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI
from openai_seen import BY_DETECTOR, BY_HAND, SILENCE, WEATHER, Seen, pieces, read, sunny, written


class Talk:
    """One connection and what is seen on it."""

    def __init__(self, name: str, connection: Any, speech: bytes) -> None:
        self.seen, self.connection, self.speech = Seen(name), connection, speech

    async def events(self) -> AsyncIterator[Any]:
        """Events, each told to the test."""
        async for event in self.connection:
            self.seen.tell(event)
            yield event

    async def until(self, kind: str) -> Any:
        async for event in self.events():
            if event.type == kind:
                return event
        raise ConnectionError(f"no {kind}")

    async def configure(self, **session: Any) -> None:
        await self.connection.session.update(session={"type": "realtime", **session})
        await self.until("session.updated")

    async def write(self, text: str) -> None:
        await self.connection.conversation.item.create(item=written(text))
        await self.connection.response.create()

    async def speak(self, pcm: bytes) -> None:
        for audio in pieces(pcm):
            await self.connection.input_audio_buffer.append(audio=audio)


async def text(talk: Talk) -> None:
    await talk.configure(output_modalities=["text"])
    await talk.write("Hello.")
    await talk.until("response.done")


async def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    await talk.configure(audio=BY_HAND)
    await talk.speak(talk.speech)
    await talk.connection.input_audio_buffer.commit()
    await talk.connection.response.create()
    await talk.until("response.done")


async def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    await talk.configure(audio=BY_DETECTOR)
    await talk.speak(talk.speech + SILENCE)
    await talk.until("response.output_audio.delta")
    await talk.speak(talk.speech + SILENCE)
    await talk.until("response.done")
    await talk.until("response.done")


async def tools(talk: Talk) -> None:
    await talk.configure(tools=[WEATHER])
    await talk.write("What is the weather in Paris?")
    called = await talk.until("response.done")
    await talk.connection.conversation.item.create(item=sunny(called.response))
    await talk.connection.response.create()
    await talk.until("response.done")


async def cancel(talk: Talk) -> None:
    await talk.configure()
    await talk.write("Tell me a story.")
    await talk.until("response.output_audio.delta")
    await talk.connection.response.cancel()
    await talk.until("response.done")
    talk.seen.saw("again")
    await talk.write("Hello.")
    await talk.until("response.done")


async def main(url: str, recording: str, *names: str) -> None:
    speech = read(recording)
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    async with AsyncOpenAI(api_key="unused", websocket_base_url=url.removesuffix("/realtime")) as client:
        for name in names:
            async with client.realtime.connect(model="gpt-realtime") as connection:
                await scenarios[name](Talk(name, connection, speech))


asyncio.run(main(*sys.argv[1:]))
