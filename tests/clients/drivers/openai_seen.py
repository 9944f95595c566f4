"""What both drivers of the ``openai`` package say, and how they tell of what comes.

Owns: the words, the tool, the pieces of a recording, one JSON object a line for each event a user notices.
Does not own: the connection, which is asynchronous in one driver and synchronous in the other.
Here because: the two must have the same conversations, or the test would not compare like with like.
"""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import Iterator
from typing import Any

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TRANSCRIPTION = {"model": "gpt-4o-transcribe"}
BY_HAND = {"input": {"turn_detection": None, "transcription": TRANSCRIPTION}}
BY_DETECTOR = {"input": {"turn_detection": {"type": "server_vad"}, "transcription": TRANSCRIPTION}}
#: After an utterance, for the detector to hear its end: a second at 24 kHz.
SILENCE = bytes(48_000)


class Seen:
    """What the user of one conversation sees."""

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario

    def saw(self, what: str, **more: object) -> None:
        print(json.dumps({"scenario": self._scenario, "saw": what, **more}), flush=True)

    def tell(self, event: Any) -> None:
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


def written(text: str) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def sunny(response: Any) -> dict[str, object]:
    """The result of the call that ``response`` consists of."""
    return {"type": "function_call_output", "call_id": response.output[0].call_id, "output": "sunny"}


def pieces(pcm: bytes) -> Iterator[str]:
    """``pcm`` in appends of 100 ms."""
    for start in range(0, len(pcm), 4800):
        yield base64.b64encode(pcm[start : start + 4800]).decode()


def read(recording: str) -> bytes:
    with wave.open(recording) as wav:
        pcm: bytes = wav.readframes(wav.getnframes())
        return pcm
