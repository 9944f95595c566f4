"""The ``openai`` package, synchronous: what its user sees of five conversations, a JSON object a line.

Owns: using the package as its documentation shows it.
Does not own: the words, and how it tells of what comes (``openai_seen``); what must be seen
(``test_real_clients``).
Here because: it has a connection class of its own, beside the asynchronous one (``drive_openai``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from openai import OpenAI
from openai_seen import BY_DETECTOR, BY_HAND, SILENCE, WEATHER, Seen, pieces, read, sunny, written


class Talk:
    """One connection and what is seen on it."""

    def __init__(self, name: str, connection: Any, speech: bytes) -> None:
        self.seen, self.connection, self.speech = Seen(name), connection, speech

    def events(self) -> Iterator[Any]:
        """Events, each told to the test."""
        for event in self.connection:
            self.seen.tell(event)
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
        self.connection.conversation.item.create(item=written(text))
        self.connection.response.create()

    def speak(self, pcm: bytes) -> None:
        for audio in pieces(pcm):
            self.connection.input_audio_buffer.append(audio=audio)


def text(talk: Talk) -> None:
    talk.configure(output_modalities=["text"])
    talk.write("Hello.")
    talk.until("response.done")


def audio(talk: Talk) -> None:
    """Without a detector: the program says when a turn ends."""
    talk.configure(audio=BY_HAND)
    talk.speak(talk.speech)
    talk.connection.input_audio_buffer.commit()
    talk.connection.response.create()
    talk.until("response.done")


def vad(talk: Talk) -> None:
    """The server finds out when the turn ends, and that the answer is talked over."""
    talk.configure(audio=BY_DETECTOR)
    talk.speak(talk.speech + SILENCE)
    talk.until("response.output_audio.delta")
    talk.speak(talk.speech + SILENCE)
    talk.until("response.done")
    talk.until("response.done")


def tools(talk: Talk) -> None:
    talk.configure(tools=[WEATHER])
    talk.write("What is the weather in Paris?")
    called = talk.until("response.done")
    talk.connection.conversation.item.create(item=sunny(called.response))
    talk.connection.response.create()
    talk.until("response.done")


def cancel(talk: Talk) -> None:
    talk.configure()
    talk.write("Tell me a story.")
    talk.until("response.output_audio.delta")
    talk.connection.response.cancel()
    talk.until("response.done")
    talk.seen.saw("again")
    talk.write("Hello.")
    talk.until("response.done")


def main(url: str, recording: str, *names: str) -> None:
    speech = read(recording)
    scenarios = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}
    with OpenAI(api_key="unused", websocket_base_url=url.removesuffix("/realtime")) as client:
        for name in names:
            with client.realtime.connect(model="gpt-realtime") as connection:
                scenarios[name](Talk(name, connection, speech))


main(*sys.argv[1:])
