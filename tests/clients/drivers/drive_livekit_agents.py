"""``livekit-agents`` with its plugin for the Realtime API: what a session's user sees, a JSON object a line.

Owns: using ``RealtimeModel`` and ``RealtimeSession`` as an agent of the package does, without a room.
Does not own: what must be seen (``test_real_clients``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import wave
from collections.abc import Coroutine
from typing import Any

from livekit import rtc
from livekit.agents import llm
from livekit.plugins.openai.realtime import RealtimeModel
from openai.types.realtime import AudioTranscription
from openai.types.realtime.realtime_audio_input_turn_detection import ServerVad

RATE = 24_000
FRAME = 4800


@llm.function_tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


class Talk:
    """One session and what is seen on it."""

    def __init__(self, name: str, session: Any, speech: bytes) -> None:
        self.name, self.session, self.speech = name, session, speech
        self.speaks = asyncio.Event()
        self.spontaneous: asyncio.Queue[Any] = asyncio.Queue()  #: answers that the server began by itself
        session.on("error", lambda event: self.saw("error", message=str(event.error)))
        session.on("generation_created", self._created)
        session.on(
            "input_audio_transcription_completed", lambda event: self.saw("heard", text=event.transcript)
        )
        session.on("metrics_collected", self._measured)

    def saw(self, what: str, **more: object) -> None:
        print(json.dumps({"scenario": self.name, "saw": what, **more}), flush=True)

    def _created(self, generation: Any) -> None:
        if not generation.user_initiated:
            self.spontaneous.put_nowait(generation)

    def _measured(self, metrics: Any) -> None:
        if getattr(metrics, "cancelled", False):
            self.saw("interrupted")

    async def write(self, text: str) -> None:
        context = self.session.chat_ctx.copy()
        context.add_message(role="user", content=text)
        await self.session.update_chat_ctx(context)

    def hear(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), FRAME):
            part = pcm[start : start + FRAME]
            self.session.push_audio(rtc.AudioFrame(part, RATE, 1, len(part) // 2))

    async def reply(self) -> list[llm.FunctionCall]:
        return await self.receive(await self.session.generate_reply())

    async def receive(self, generation: Any) -> list[llm.FunctionCall]:
        """An answer to its end; the tools that it calls."""
        async for message in generation.message_stream:
            await asyncio.gather(self._listen(message), self._read(message))
        calls = [call async for call in generation.function_stream]
        for call in calls:
            self.saw("tool", name=call.name, arguments=call.arguments)
        return calls

    async def _listen(self, message: Any) -> None:
        async for frame in message.audio_stream:
            self.saw("audio", pcm=base64.b64encode(bytes(frame.data)).decode())
            self.speaks.set()

    async def _read(self, message: Any) -> None:
        self.saw("text", text="".join([text async for text in message.text_stream]))

    async def begun(self, answer: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """An answer that has begun to be heard."""
        self.speaks.clear()
        speaking = asyncio.create_task(answer)
        await self.speaks.wait()
        return speaking


async def text(talk: Talk) -> None:
    await talk.write("Hello.")
    await talk.reply()


async def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    talk.hear(talk.speech)
    talk.session.commit_audio()
    await talk.reply()


async def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    talk.hear(talk.speech + bytes(48_000))
    speaking = await talk.begun(talk.receive(await talk.spontaneous.get()))
    talk.hear(talk.speech + bytes(48_000))
    await speaking
    await talk.receive(await talk.spontaneous.get())


async def tools(talk: Talk) -> None:
    await talk.session.update_tools([weather])
    await talk.write("What is the weather in Paris?")
    (call,) = await talk.reply()
    result = await weather(**json.loads(call.arguments))
    context = talk.session.chat_ctx.copy()
    context.items.append(
        llm.FunctionCallOutput(call_id=call.call_id, name=call.name, output=result, is_error=False)
    )
    await talk.session.update_chat_ctx(context)
    await talk.reply()


async def cancel(talk: Talk) -> None:
    await talk.write("Tell me a story.")
    speaking = await talk.begun(talk.reply())
    talk.session.interrupt()
    await speaking
    talk.saw("again")
    await talk.reply()


async def main(url: str, recording: str, *names: str) -> None:
    with wave.open(recording) as wav:
        speech = wav.readframes(wav.getnframes())
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    for name in names:
        model = RealtimeModel(
            base_url=url.removesuffix("/realtime"),
            api_key="unused",
            modalities=["text" if name == "text" else "audio"],
            turn_detection=ServerVad(type="server_vad") if name == "vad" else None,
            input_audio_transcription=AudioTranscription(model="gpt-4o-transcribe"),
        )
        session = model.session()
        await scenarios[name](Talk(name, session, speech))
        await session.aclose()
        await model.aclose()


asyncio.run(main(*sys.argv[1:]))
