"""A voice behind ``/audio/speech``: a sentence in, raw PCM out.

Owns: the request, whole samples at the session's rate out of the bytes of the answer.
Does not own: what is said in one go (``answer``), failures of the request (``server``).
Here because: it is the interface of hosted voices and of the servers of open ones.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from counterpoint.audio.resample import StreamingResampler
from counterpoint.models.cascade.failing import Fault
from counterpoint.protocol.audio import SESSION_RATE

from .server import Server, ServerOptions

#: Five minutes; a sentence is never that long, and an endless answer must end.
_MOST_BYTES: Final = 300 * 2 * SESSION_RATE


class SpeechOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``model.tts.*`` of a voice elsewhere."""

    #: Voices that clients may choose from; the first is the one for all other wishes.
    voices: tuple[str, ...] = ("alloy",)
    #: Rate of the PCM that the server sends, in Hz; OpenAI's is 24000.
    rate: int = SESSION_RATE

    def __post_init__(self) -> None:
        if not self.voices:
            raise ValueError("at least one voice")
        if not 8_000 <= self.rate <= 96_000:
            raise ValueError("a rate between 8000 and 96000")


class RemoteSynthesizer:
    """A ``Synthesizer``. PCM is read as the server makes it, and no longer than somebody waits for it."""

    def __init__(self, server: Server, options: SpeechOptions) -> None:
        self._server = server
        self._options = options

    async def synthesize(self, text: str, voice: str) -> bytes:
        """Raises ``StageFailed``. A voice that is not among the options becomes the first of them."""
        known = voice if voice in self._options.voices else self._options.voices[0]
        async with aclosing(self._server.attempt(lambda: self._speak(text, known))) as pieces:
            pcm = b"".join([piece async for piece in pieces])
        if len(pcm) % 2:
            raise self._server.failed(Fault.BROKEN, "the sound ends in the middle of a sample")
        if self._options.rate == SESSION_RATE:
            return pcm
        resampler = StreamingResampler(self._options.rate, SESSION_RATE)
        return resampler.process(pcm) + resampler.flush()

    async def _speak(self, text: str, voice: str) -> AsyncGenerator[bytes]:
        body = {"model": self._options.model, "input": text, "voice": voice, "response_format": "pcm"}
        size = 0
        async with self._server.post("audio/speech", json=body) as response:
            if response.content_type.startswith(("text/", "application/json")):
                raise self._server.failed(Fault.BROKEN, f"the answer is {response.content_type}, not sound")
            async for piece in response.content.iter_any():
                size += len(piece)
                if size > _MOST_BYTES:
                    raise self._server.failed(Fault.BROKEN, "the sound has no end")
                yield piece
