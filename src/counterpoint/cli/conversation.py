"""A spoken conversation from files: each question in real time, each answer to its end.

Owns: pacing, silence after a question, which answer belongs to it, latencies.
Does not own: files and printing (``cli.talk``), the session (``client``).
Here because: ``talk`` and the tests of recorded speech have the same conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from counterpoint.client import Event, Session, connect
from counterpoint.errors import CounterpointError
from counterpoint.protocol.audio import SESSION_RATE

FRAME_S = 0.02
FRAME_BYTES = round(SESSION_RATE * FRAME_S) * 2
#: Quieter samples at the end of a question are not speech: about -34 dBFS.
AUDIBLE = 0.02
#: After a question there is silence until an answer begins; without one after this long, nothing was heard.
PATIENCE_S = 10.0

#: Turns end as soon as the turn model agrees, and what was understood is told.
INPUT = {
    "turn_detection": {"type": "semantic_vad", "eagerness": "high"},
    "transcription": {"model": "default"},
}


@dataclass(slots=True)
class Turn:
    """One question and its answer. ``latency_ms`` counts from the last audible sample of the question."""

    heard: str = ""
    answer: str = ""
    status: str = ""
    audio: bytes = field(default=b"", repr=False)  #: int16 at 24 kHz
    latency_ms: dict[str, int] = field(default_factory=dict)

    @property
    def audio_s(self) -> float:
        return round(len(self.audio) / 2 / SESSION_RATE, 3)


async def converse(
    url: str, questions: list[bytes], *, voice: str, fast: bool, progress: Callable[[int], None]
) -> list[Turn]:
    """Speak ``questions`` (int16 at 24 kHz) in turn; ``progress`` is told of bytes spoken.

    Raises ``CounterpointError`` if nothing is understood or answered, ``ClientError`` if the session ends.
    """
    config: dict[str, Any] = {"type": "realtime", "audio": {"input": INPUT}}
    if voice:
        config["audio"] = {"input": INPUT, "output": {"voice": voice}}
    async with connect(url, session=config) as session:
        events = session.events()
        return [await _turn(session, events, Question(question, fast, progress)) for question in questions]


class Question:
    """A question on its way to the server, and when its speech ended."""

    def __init__(
        self, pcm: bytes, fast: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._pcm = pcm
        self._fast = fast
        self._progress = progress
        audible = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)) > AUDIBLE * 32768)
        self._last_audible = int(audible[-1]) * 2 if len(audible) else len(pcm)
        self.ended_at: float | None = None
        self.all_sent = False

    async def speak(self, session: Session) -> None:
        """The question, then silence for as long as nobody stops it."""
        loop = asyncio.get_running_loop()
        began, position = loop.time(), 0
        patience = len(self._pcm) + round(PATIENCE_S * SESSION_RATE) * 2
        while position < patience:
            frame = self._pcm[position : position + FRAME_BYTES]
            await session.append_audio(frame.ljust(FRAME_BYTES, b"\0"))
            self._progress(len(frame))
            position += FRAME_BYTES
            if self.ended_at is None and position > self._last_audible:
                self.ended_at = loop.time()
            self.all_sent = position >= len(self._pcm)
            if not (self._fast and position < patience):
                await asyncio.sleep(began + position / 2 / SESSION_RATE - loop.time())

    def since_end_ms(self) -> int:
        if self.ended_at is None:
            return 0
        return round((asyncio.get_running_loop().time() - self.ended_at) * 1000)


@asynccontextmanager
async def spoken(session: Session, question: Question) -> AsyncIterator[asyncio.Task[None]]:
    """Speak ``question``, and then silence, until the block ends."""
    speaking = asyncio.create_task(question.speak(session))
    try:
        yield speaking
    finally:
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)


async def _turn(session: Session, events: AsyncIterator[Event], question: Question) -> Turn:
    turn = Turn()
    async with spoken(session, question) as speaking:
        following = asyncio.create_task(_follow(session, events, question, turn))
        await asyncio.wait({following, speaking}, return_when=asyncio.FIRST_COMPLETED)
        # Spoken and long silent: what has not begun by now is not coming. An answer that has may finish.
        if not following.done() and not turn.audio:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            raise CounterpointError("no speech was heard, or nothing was answered")
        await following
    return turn


async def _follow(session: Session, events: AsyncIterator[Event], question: Question, turn: Turn) -> None:
    """Take events until the answer to the whole question is complete.

    A pause in a question may bring an answer that the rest of it interrupts: its words and sounds are
    forgotten, and what was understood is added up.
    """
    async for event in events:
        match event.type:
            case "conversation.item.input_audio_transcription.completed":
                turn.heard = f"{turn.heard} {event.string('transcript')}".strip()
                turn.latency_ms.setdefault("transcript", question.since_end_ms())
            case "response.created":
                turn.answer, turn.audio = "", b""
                turn.latency_ms.pop("first_audio", None)
            case "response.output_audio.delta":
                turn.latency_ms.setdefault("first_audio", question.since_end_ms())
                turn.audio += event.audio
            case "response.output_audio_transcript.done":
                turn.answer = f"{turn.answer} {event.string('transcript')}".strip()
            case "response.done":
                turn.status = str(event.object("response").get("status"))
                if turn.status != "cancelled" and question.all_sent:
                    await session.acknowledge_playback(event.response_id, round(turn.audio_s * 1000))
                    return
            case _:
                pass
