"""A recogniser behind ``/audio/transcriptions``: an utterance as a WAV file, its words in return.

Owns: the file, the request, when there is too little sound to ask.
Does not own: what an utterance is (``hearing``), failures of the request (``server``).
Here because: it is the interface of Whisper and its successors, hosted and not.
"""

from __future__ import annotations

import io
import wave
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import aiohttp
import msgspec
import numpy as np

from counterpoint.models.cascade.failing import Fault
from counterpoint.models.cascade.loudness import SILENCE, WINDOW, levels, samples_of
from counterpoint.models.cascade.stages import INPUT_RATE, Transcription

from .server import Server, ServerOptions

#: With less sound than this (0.1 s, in windows) a recogniser invents words.
_LEAST_SOUND: Final = INPUT_RATE // 10 // WINDOW
_MOST_ANSWER_BYTES: Final = 2**20


class TranscriptionOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``model.asr.*`` of a recogniser elsewhere."""

    #: Language of what is said, as the server calls it (en); empty: it finds out.
    language: str = ""


class _Answer(msgspec.Struct):
    text: str


class RemoteTranscriber:
    """A ``Transcriber``: every utterance is sent whole, once its words are needed."""

    def __init__(self, server: Server, options: TranscriptionOptions) -> None:
        self._server = server
        self._options = options

    def start(self) -> Transcription:
        return _RemoteTranscription(self)

    async def recognise(self, pcm: bytes) -> str:
        """The words of ``pcm``, int16 at ``INPUT_RATE``. Raises ``StageFailed``."""
        if np.count_nonzero(levels(samples_of(pcm)) > SILENCE) < _LEAST_SOUND:
            return ""
        async with aclosing(self._server.attempt(lambda: self._request(pcm))) as answers:
            return await anext(answers)

    async def _request(self, pcm: bytes) -> AsyncGenerator[str]:
        form = aiohttp.FormData()
        form.add_field("file", wav_of(pcm), filename="speech.wav", content_type="audio/wav")
        form.add_field("model", self._options.model)
        form.add_field("response_format", "json")
        if self._options.language:
            form.add_field("language", self._options.language)
        async with self._server.post("audio/transcriptions", data=form) as response:
            body = await response.content.read(_MOST_ANSWER_BYTES)
            while len(body) < _MOST_ANSWER_BYTES and (
                more := await response.content.read(_MOST_ANSWER_BYTES)
            ):
                body += more
        try:
            text = msgspec.json.decode(body, type=_Answer).text
        except ValueError:
            raise self._server.failed(Fault.BROKEN, "the answer is no transcription") from None
        yield text.strip()


class _RemoteTranscription:
    def __init__(self, transcriber: RemoteTranscriber) -> None:
        self._transcriber = transcriber
        self._pcm = bytearray()

    def feed(self, pcm: bytes) -> None:
        self._pcm += pcm

    async def text(self) -> str:
        return await self._transcriber.recognise(bytes(self._pcm))

    def cancel(self) -> None:
        """Who awaits the words is cancelled, and the request with it."""


def wav_of(pcm: bytes) -> bytes:
    """``pcm`` (mono int16 at ``INPUT_RATE``) as a file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(INPUT_RATE)
        writer.writeframes(pcm)
    return file.getvalue()
