"""One answer of the model, while it comes and afterwards.

Owns: its audio and words as streams, its end.
Does not own: playing it, the conversation that it becomes part of (``conversation``).
Here because: a program wants to hold a live answer in its hand, whatever else the events bring.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from counterpoint.errors import ClientError

from .event import Event, text_of
from .stream import Stream

#: Characters of text deltas that wait for a reader.
_TEXT_LIMIT = 1 << 20


class Response:
    """A live answer. Audio and text can each be read once, while they come; ``text`` and ``data`` stay.

    ::

        response = await session.respond()
        async for chunk in response.audio():
            speaker.write(chunk)
        await response.done()
        print(response.status, response.text)
    """

    def __init__(self, response_id: str, *, audio_limit: int, overflow: Callable[[], None]) -> None:
        self.id = response_id
        #: The server's newest word on it: status, output, usage, metadata (official JSON).
        self.data: dict[str, Any] = {}
        self._audio: Stream[bytes] = Stream(audio_limit, len)
        self._deltas: Stream[str] = Stream(_TEXT_LIMIT, len)
        self._parts: dict[tuple[int, int], str] = {}
        self._overflow = overflow  #: called once, when audio first gives way
        self._dropped_bytes = 0
        self._interrupted = False
        self._has_gap = False
        self._finished = asyncio.Event()
        self._error: ClientError | None = None

    def __repr__(self) -> str:
        return f"Response({self.id!r}, {self.status})"

    # ------------------------------------------------------------------ for the program

    def audio(self) -> AsyncIterator[bytes]:
        """Chunks of audio, whole samples in the session's ``output_format``, until the answer ends.

        An interruption ends it at once: what was not read is not to be heard any more. If nobody reads, the
        oldest audio gives way (``Options.audio_buffer_bytes``): see ``dropped_audio_bytes``. Raises
        ``ClientError`` if the end of the answer will never be known.
        """
        return self._audio

    def deltas(self) -> AsyncIterator[str]:
        """Pieces of what is said or written, as they come."""
        return self._deltas

    async def done(self) -> Response:
        """Wait for its end, which need not be a success: see ``status``.

        Raises ``SessionEnded`` or ``ConnectionLost`` if the session ends before it, ``AnswerMissed`` if its
        end fell into a gap.
        """
        await self._finished.wait()
        if self._error is not None:
            raise self._error
        return self

    @property
    def status(self) -> str:
        """``in_progress``, ``completed``, ``cancelled``, ``incomplete`` or ``failed``."""
        return text_of(self.data, "status") or "in_progress"

    @property
    def text(self) -> str:
        """What has been said or written so far, all parts, one per line."""
        return "\n".join(text for _, text in sorted(self._parts.items()) if text)

    @property
    def output(self) -> list[dict[str, Any]]:
        """Its items, once it is done; function calls among them."""
        output = self.data.get("output")
        return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []

    @property
    def interrupted(self) -> bool:
        """Whether it was cancelled, or its playback cut, by the user or by ``Session.cancel``."""
        return self._interrupted

    @property
    def dropped_audio_bytes(self) -> int:
        """Audio that gave way because nobody read it."""
        return self._dropped_bytes

    @property
    def has_gap(self) -> bool:
        """Whether some of its audio never came, because an outage outlasted what the server keeps."""
        return self._has_gap

    # ------------------------------------------------------------------ for the session

    def follow(self, event: Event) -> None:
        """An event about this answer."""
        match event.type:
            case "response.created":
                self._restate(event.object("response"))
            case "response.output_audio.delta":
                self._hear(event.audio)
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                key = _part_of(event)
                self._parts[key] = self._parts.get(key, "") + event.string("delta")
                self._deltas.put(event.string("delta"))
            case "response.output_audio_transcript.done":
                self._parts[_part_of(event)] = event.string("transcript")
            case "response.output_text.done":
                self._parts[_part_of(event)] = event.string("text")
            case "output_audio_buffer.cleared":
                self._interrupt()
            case "response.done":
                self._restate(event.object("response"))
                if self.status == "cancelled":
                    self._interrupt()
                self.finish(None)
            case _:
                pass

    def skip_gap(self, data: dict[str, Any]) -> None:
        """Events of it are lost; ``data`` is what it had become."""
        self._has_gap = True
        self._restate(data)

    def finish(self, error: ClientError | None) -> None:
        """Nothing follows; ``error`` if its end is not known."""
        self._error = error
        self._audio.end(error)
        self._deltas.end(error)
        self._finished.set()

    def _restate(self, data: dict[str, Any]) -> None:
        """The server's word on the whole of it, which holds what was handed over of every part."""
        self.data = data
        for output_index, item in enumerate(self.output):
            content = item.get("content")
            for content_index, part in enumerate(content if isinstance(content, list) else ()):
                if isinstance(part, dict) and (text := text_of(part, "transcript") or text_of(part, "text")):
                    self._parts[output_index, content_index] = text

    def _interrupt(self) -> None:
        self._interrupted = True
        self._audio.clear()

    def _hear(self, chunk: bytes) -> None:
        dropped = self._audio.put(chunk)
        if dropped and not self._dropped_bytes:
            self._overflow()
        self._dropped_bytes += dropped


def _part_of(event: Event) -> tuple[int, int]:
    return event.integer("output_index") or 0, event.integer("content_index") or 0
