"""The ``openai`` package, asynchronous: what its user sees of five conversations, a JSON object a line.

Owns: using the package as its documentation shows it.
Does not own: what must be seen (``test_real_clients``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import wave
from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Talk:
    """One connection and what is seen on it."""

    def __init__(self, name: str, connection: Any, speech: bytes) -> None:
        self.name, self.connection, self.speech = name, connection, speech

    def saw(self, what: str, **more: object) -> None:
        print(json.dumps({"scenario": self.name, "saw": what, **more}), flush=True)

    async def events(self) -> AsyncIterator[Any]:
        """Events, each told to the test."""
        async for event in self.connection:
            match event.type:
                case "error":
                    self.saw("error", message=event.error.message)
                case "response.output_audio.delta":
                    self.saw("audio", pcm=event.delta)
                case "response.output_audio_transcript.done":
                    self.saw("text", text=event.transcript)
                case "response.output_text.done":
                    self.saw("text", text=event.text)
                case "conversation.item.input_audio_transcription.completed":
                    self.saw("heard", text=event.transcript)
                case "response.function_call_arguments.done":
                    self.saw("tool", name=event.name, arguments=event.arguments)
                case "response.done" if event.response.status == "cancelled":
                    self.saw("interrupted")
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
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await self.connection.conversation.item.create(item=item)
        await self.connection.response.create()

    async def speak(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), 4800):
            audio = base64.b64encode(pcm[start : start + 4800]).decode()
            await self.connection.input_audio_buffer.append(audio=audio)


async def text(talk: Talk) -> None:
    await talk.configure(output_modalities=["text"])
    await talk.write("Hello.")
    await talk.until("response.done")


async def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    listening = {"turn_detection": None, "transcription": {"model": "gpt-4o-transcribe"}}
    await talk.configure(audio={"input": listening})
    await talk.speak(talk.speech)
    await talk.connection.input_audio_buffer.commit()
    await talk.connection.response.create()
    await talk.until("response.done")


async def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    listening = {"turn_detection": {"type": "server_vad"}, "transcription": {"model": "gpt-4o-transcribe"}}
    await talk.configure(audio={"input": listening})
    await talk.speak(talk.speech + bytes(48_000))
    await talk.until("response.output_audio.delta")
    await talk.speak(talk.speech + bytes(48_000))
    await talk.until("response.done")
    await talk.until("response.done")


async def tools(talk: Talk) -> None:
    await talk.configure(tools=[WEATHER])
    await talk.write("What is the weather in Paris?")
    call = (await talk.until("response.done")).response.output[0]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    await talk.connection.conversation.item.create(item=output)
    await talk.connection.response.create()
    await talk.until("response.done")


async def cancel(talk: Talk) -> None:
    await talk.configure()
    await talk.write("Tell me a story.")
    await talk.until("response.output_audio.delta")
    await talk.connection.response.cancel()
    await talk.until("response.done")
    talk.saw("again")
    await talk.write("Hello.")
    await talk.until("response.done")


async def main(url: str, recording: str, *names: str) -> None:
    with wave.open(recording) as wav:
        speech = wav.readframes(wav.getnframes())
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    async with AsyncOpenAI(api_key="unused", websocket_base_url=url.removesuffix("/realtime")) as client:
        for name in names:
            async with client.realtime.connect(model="gpt-realtime") as connection:
                await scenarios[name](Talk(name, connection, speech))


asyncio.run(main(*sys.argv[1:]))
