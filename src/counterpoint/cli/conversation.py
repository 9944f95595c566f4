"""A spoken conversation from files: each question in real time, each answer to its end.

Owns: pacing, silence after a question, which answer belongs to it, latencies.
Does not own: files and printing (``cli.talk``), the session (``client``).
Here because: ``talk`` and the benchmark have the same conversation.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from counterpoint.client import Event, Options, Session, connect
from counterpoint.errors import CounterpointError
from counterpoint.protocol.audio import SESSION_RATE

FRAME_S = 0.02
FRAME_BYTES = round(SESSION_RATE * FRAME_S) * 2
#: Quieter samples at the end of a question are not speech: about -34 dBFS.
AUDIBLE = 0.02
#: Silence that is sent at once after a question that is: enough for any turn to end.
FAST_SILENCE_S = 2.0
#: Once a question is spoken and nothing is being answered, nothing is waited for longer.
PATIENCE_S = 10.0

#: Turns end as soon as the turn model agrees, and what was understood is told.
INPUT = {
    "turn_detection": {"type": "semantic_vad", "eagerness": "high"},
    "transcription": {"model": "default"},
}
#: Files wait for the line; a microphone would not.
OPTIONS = Options(outage_audio_s=math.inf)

_TRANSCRIPTION = "conversation.item.input_audio_transcription."


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
    url: str,
    questions: list[bytes],
    *,
    model: str | None = None,
    voice: str = "",
    fast: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Turn]:
    """Speak ``questions`` (int16 at 24 kHz) in turn; ``progress`` is told of bytes spoken.

    Raises ``CounterpointError`` if nothing is understood or answered, ``ClientError`` if the session ends.
    """
    config: dict[str, Any] = {"type": "realtime", "audio": {"input": INPUT}}
    if voice:
        config["audio"] = {"input": INPUT, "output": {"voice": voice}}
    async with connect(url, session=config, model=model, options=OPTIONS) as session:
        return [await _turn(session, Question(question, fast, progress)) for question in questions]


class Question:
    """A question on its way to the server, and when its speech ended."""

    def __init__(
        self, pcm: bytes, fast: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._pcm = pcm
        self._at_once = len(pcm) + round(FAST_SILENCE_S * SESSION_RATE) * 2 if fast else 0
        self._progress = progress
        audible = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)) > AUDIBLE * 32768)
        self._last_audible = int(audible[-1]) * 2 if len(audible) else len(pcm)
        self.ended_at: float | None = None
        self.all_sent_at: float | None = None

    async def speak(self, session: Session) -> None:
        """The question, then silence until somebody stops it, as a microphone would."""
        loop = asyncio.get_running_loop()
        began, position = loop.time(), 0
        while True:
            frame = self._pcm[position : position + FRAME_BYTES]
            await session.append_audio(frame.ljust(FRAME_BYTES, b"\0"))
            self._progress(len(frame))
            position += FRAME_BYTES
            if self.ended_at is None and position > self._last_audible:
                self.ended_at = loop.time()
            if self.all_sent_at is None and position >= len(self._pcm):
                self.all_sent_at = loop.time()
            await asyncio.sleep(began + (position - self._at_once) / 2 / SESSION_RATE - loop.time())

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


async def _turn(session: Session, question: Question) -> Turn:
    exchange = _Exchange(question)
    try:
        async with spoken(session, question), asyncio.timeout(None) as patience:
            # While audio is sent it is acknowledged every second, so this loop turns at least as often.
            async for event in session.events():
                exchange.follow(event)
                if exchange.over:
                    break
                patience.reschedule(exchange.give_up_at)
    except TimeoutError:
        if not exchange.answered:
            raise CounterpointError("no speech was heard, or nothing was answered") from None
    turn = exchange.turn
    await session.acknowledge_playback(exchange.answered, round(turn.audio_s * 1000))
    return turn


class _Exchange:
    """One question and what comes of it, event by event.

    A pause in a question may bring an answer that the rest of it interrupts: its words and sounds are
    forgotten, and what was understood is added up.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self.turn = Turn()
        self.answered = ""  #: the response that answers everything said so far
        self._in_speech = False
        self._responding = False
        self._quiet_since = 0.0  #: when the newest response ended
        self._transcripts: dict[str, str | None] = {}

    @property
    def over(self) -> bool:
        """Everything was said, understood and answered."""
        settled = bool(self.answered) and not self._in_speech and not self._responding
        return settled and self._question.all_sent_at is not None and None not in self._transcripts.values()

    @property
    def give_up_at(self) -> float | None:
        sent_at = self._question.all_sent_at
        if sent_at is None or self._responding:
            return None
        return max(sent_at, self._quiet_since) + PATIENCE_S

    def follow(self, event: Event) -> None:
        match event.type:
            case "input_audio_buffer.speech_started":
                self._in_speech = True
            case "input_audio_buffer.speech_stopped":
                self._in_speech = False
                self._mark("speech_stopped")
            case "input_audio_buffer.committed":
                self._transcripts[event.string("item_id")] = None
                self.answered = ""
            case "response.created" | "response.done":
                self._follow_response(event)
            case "response.output_audio.delta":
                if not self.turn.audio:
                    self._mark("first_audio")
                self.turn.audio += event.audio
            case "response.output_audio_transcript.done":
                self.turn.answer = f"{self.turn.answer} {event.string('transcript')}".strip()
            case _ if event.type.startswith(_TRANSCRIPTION) and not event.type.endswith(".delta"):
                self._understand(event)
            case _:
                pass

    def _follow_response(self, event: Event) -> None:
        self._responding = event.type == "response.created"
        if self._responding:
            self.turn.answer, self.turn.audio = "", b""
            return
        self._quiet_since = asyncio.get_running_loop().time()
        response = event.object("response")
        self.turn.status = str(response.get("status"))
        if self.turn.status == "failed":
            raise CounterpointError(f"the answer failed: {_failure(response)}")
        # A model that decided to listen says so by a response without output: that is no answer yet.
        if self.turn.status != "cancelled" and response.get("output"):
            self.answered = event.response_id
            self._mark("answer_done")

    def _understand(self, event: Event) -> None:
        """Failed, a transcript is empty."""
        self._transcripts[event.string("item_id")] = event.string("transcript")
        self.turn.heard = " ".join(text for text in self._transcripts.values() if text)
        self._mark("transcript")

    def _mark(self, name: str) -> None:
        self.turn.latency_ms[name] = self._question.since_end_ms()


def _failure(response: dict[str, Any]) -> str:
    details = response.get("status_details")
    error = details.get("error") if isinstance(details, dict) else None
    return str(error.get("code")) if isinstance(error, dict) else "the server does not say why"
