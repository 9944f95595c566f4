"""The ``openai`` package, synchronous: what its user sees of five conversations, a JSON object a line.

Owns: using the package as its documentation shows it.
Does not own: what must be seen (``test_real_clients``).
Here because: it has a connection class of its own, beside the asynchronous one (``drive_openai``).
"""

from __future__ import annotations

import base64
import json
import sys
import wave
from collections.abc import Iterator
from typing import Any

from openai import OpenAI

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

    def events(self) -> Iterator[Any]:
        """Events, each told to the test."""
        for event in self.connection:
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

    def until(self, kind: str) -> Any:
        for event in self.events():
            if event.type == kind:
                return event
        raise ConnectionError(f"no {kind}")

    def configure(self, **session: Any) -> None:
        self.connection.session.update(session={"type": "realtime", **session})
        self.until("session.updated")

    def write(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        self.connection.conversation.item.create(item=item)
        self.connection.response.create()

    def speak(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), 4800):
            audio = base64.b64encode(pcm[start : start + 4800]).decode()
            self.connection.input_audio_buffer.append(audio=audio)


def text(talk: Talk) -> None:
    talk.configure(output_modalities=["text"])
    talk.write("Hello.")
    talk.until("response.done")


def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    listening = {"turn_detection": None, "transcription": {"model": "gpt-4o-transcribe"}}
    talk.configure(audio={"input": listening})
    talk.speak(talk.speech)
    talk.connection.input_audio_buffer.commit()
    talk.connection.response.create()
    talk.until("response.done")


def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    listening = {"turn_detection": {"type": "server_vad"}, "transcription": {"model": "gpt-4o-transcribe"}}
    talk.configure(audio={"input": listening})
    talk.speak(talk.speech + bytes(48_000))
    talk.until("response.output_audio.delta")
    talk.speak(talk.speech + bytes(48_000))
    talk.until("response.done")
    talk.until("response.done")


def tools(talk: Talk) -> None:
    talk.configure(tools=[WEATHER])
    talk.write("What is the weather in Paris?")
    call = (talk.until("response.done")).response.output[0]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    talk.connection.conversation.item.create(item=output)
    talk.connection.response.create()
    talk.until("response.done")


def cancel(talk: Talk) -> None:
    talk.configure()
    talk.write("Tell me a story.")
    talk.until("response.output_audio.delta")
    talk.connection.response.cancel()
    talk.until("response.done")
    talk.saw("again")
    talk.write("Hello.")
    talk.until("response.done")


def main(url: str, recording: str, *names: str) -> None:
    with wave.open(recording) as wav:
        speech = wav.readframes(wav.getnframes())
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    with OpenAI(api_key="unused", websocket_base_url=url.removesuffix("/realtime")) as client:
        for name in names:
            with client.realtime.connect(model="gpt-realtime") as connection:
                scenarios[name](Talk(name, connection, speech))


main(*sys.argv[1:])
