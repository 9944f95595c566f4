"""The ``openai-agents`` package: what its user sees of five conversations, a JSON object a line.

Owns: using its ``RealtimeSession`` as its documentation shows it.
Does not own: what must be seen (``test_real_clients``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import wave
from typing import Any

from agents import function_tool, set_tracing_disabled
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession
from agents.realtime.model_inputs import RealtimeModelSendRawMessage

TURN_ENDED = "turn_ended"
AUDIO = "audio"


class Talk:
    """One session and what is seen on it."""

    def __init__(self, name: str, session: RealtimeSession, speech: bytes) -> None:
        self.name, self.session, self.speech = name, session, speech

    def saw(self, what: str, **more: object) -> None:
        print(json.dumps({"scenario": self.name, "saw": what, **more}), flush=True)

    async def until(self, kind: str) -> None:
        """Until an event of the session, or of its model, of this type."""
        async for event in self.session:
            inner = event.data.type if event.type == "raw_model_event" else ""
            match event.type:
                case "error":
                    self.saw("error", message=str(event.error))
                case "audio":
                    self.saw("audio", pcm=base64.b64encode(event.audio.data).decode())
                case "audio_interrupted":
                    self.saw("interrupted")
                case "tool_start":
                    self.saw("tool", name=event.tool.name, arguments=event.arguments)
                case "raw_model_event":
                    self.model_event(event.data)
            if kind in (event.type, inner):
                return
        raise ConnectionError(f"no {kind}")

    def model_event(self, event: Any) -> None:
        match event.type:
            case "input_audio_transcription_completed":
                self.saw("heard", text=event.transcript)
            case "raw_server_event" if event.data["type"] == "response.output_audio_transcript.done":
                self.saw("text", text=event.data["transcript"])
            case "raw_server_event" if event.data["type"] == "response.output_text.done":
                self.saw("text", text=event.data["text"])
            case "exception":
                self.saw("error", message=str(event.exception))

    async def speak(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), 4800):
            await self.session.send_audio(pcm[start : start + 4800])


async def text(talk: Talk) -> None:
    await talk.session.send_message("Hello.")
    await talk.until(TURN_ENDED)


async def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    await talk.speak(talk.speech)
    await talk.session.send_audio(b"", commit=True)
    await talk.session.model.send_event(RealtimeModelSendRawMessage(message={"type": "response.create"}))
    await talk.until(TURN_ENDED)


async def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    await talk.speak(talk.speech + bytes(48_000))
    await talk.until(AUDIO)
    await talk.speak(talk.speech + bytes(48_000))
    await talk.until(TURN_ENDED)
    await talk.until(TURN_ENDED)


async def tools(talk: Talk) -> None:
    await talk.session.send_message("What is the weather in Paris?")
    await talk.until(TURN_ENDED)
    await talk.until(TURN_ENDED)


async def cancel(talk: Talk) -> None:
    await talk.session.send_message("Tell me a story.")
    await talk.until(AUDIO)
    await talk.session.interrupt()
    await talk.until(TURN_ENDED)
    talk.saw("again")
    await talk.session.send_message("Hello.")
    await talk.until(TURN_ENDED)


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


def settings(name: str) -> dict[str, Any]:
    detection = None if name == "audio" else {"type": "server_vad", "interrupt_response": True}
    listening = {"turn_detection": detection, "transcription": {"model": "gpt-4o-transcribe"}}
    return {
        "model_name": "gpt-realtime",
        "output_modalities": ["text" if name == "text" else "audio"],
        "audio": {"input": listening},
    }


async def main(url: str, recording: str, *names: str) -> None:
    set_tracing_disabled(True)
    with wave.open(recording) as wav:
        speech = wav.readframes(wav.getnframes())
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    for name in names:
        offered = [weather] if name == "tools" else []
        agent = RealtimeAgent(name="friend", instructions="Be brief.", tools=offered)
        runner = RealtimeRunner(agent, config={"model_settings": settings(name)})
        connection = {"url": f"{url}?model=gpt-realtime", "api_key": "unused"}
        async with await runner.run(model_config=connection) as session:
            await scenarios[name](Talk(name, session, speech))


asyncio.run(main(*sys.argv[1:]))
