"""The embedded voice as stages: recognition in pieces, a small language model kept on a short lead, a voice.

Owns: how the blocking engines are called, how long input is cut for recognition, how prompts are made to fit.
Does not own: the engines (``models.voice``), the order of the stages (``answer``).
Here because: everything that is peculiar to these engines stays on this side of the stage interfaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from counterpoint.models.voice import llm
from counterpoint.models.voice.asr import MoonshineAsr
from counterpoint.models.voice.cancellation import Cancelled
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.tts import DEFAULT_VOICE, VOICES, HibariTts

from .fitting import fit
from .loudness import SILENCE, WINDOW, levels, samples_of
from .shared import Shared
from .stages import INPUT_RATE, Message, Piece, PromptRead, Stages, Transcription, Writing, Written
from .worker import Worker

#: Input longer than this is recognised in pieces while it still arrives; they are cut where it is quietest.
_LONGEST_PIECE: Final = 10 * INPUT_RATE
_SHORTEST_PIECE: Final = 5 * INPUT_RATE
#: With fewer windows of sound (0.3 s) a piece holds no speech, and the model would invent some.
_LEAST_SPEECH: Final = 15

#: Answers in parallel; the model keeps as many conversations in memory.
_LLM_THREADS: Final = 3
#: Room that is kept in the model's memory for an answer; longer ones end there.
_MOST_ANSWER_TOKENS: Final = 120
#: A conversation in front of the conversation. Without it the model often repeats what it is told, or tells
#: a story; with it, it answers. It names no topic, since topics come back.
_EXAMPLE: Final = (
    llm.Message("user", "Hi there."),
    llm.Message("assistant", "Hello! What can I do for you?"),
    llm.Message("user", "I have a question."),
    llm.Message("assistant", "Of course. What would you like to know?"),
)
#: Sentences of one answer: the model is fluent and wanders.
SENTENCES: Final = 2


class EmbeddedVoice:
    """The engines, their threads, and the stages made of both. Threads start with the first call."""

    def __init__(self, engines: VoiceEngines) -> None:
        self._engines = engines
        self._asr, self._llm, self._tts = Worker("asr"), Worker("llm", _LLM_THREADS), Worker("tts")
        self._workers = (self._asr, self._llm, self._tts)

    @property
    def stages(self) -> Stages:
        """All of them."""
        return Stages(self.transcriber(), self.language_model(), self.synthesizer(), sentences=SENTENCES)

    def transcriber(self) -> EmbeddedTranscriber:
        return EmbeddedTranscriber(self._engines.asr, self._asr)

    def language_model(self) -> EmbeddedLanguageModel:
        return EmbeddedLanguageModel(self._engines.llm, self._llm)

    def synthesizer(self) -> EmbeddedSynthesizer:
        return EmbeddedSynthesizer(self._engines.tts, self._tts)

    def stop(self) -> None:
        """End the threads; waits for the token, chunk or sentence that each is at."""
        for worker in self._workers:
            worker.stop()


class EmbeddedTranscriber:
    def __init__(self, engine: MoonshineAsr, worker: Worker) -> None:
        self._engine = engine
        self._worker = worker

    def start(self) -> Transcription:
        return _EmbeddedTranscription(self._recognise)

    async def _recognise(self, pcm: bytes) -> str:
        samples = samples_of(pcm)
        if np.count_nonzero(levels(samples) > SILENCE) < _LEAST_SPEECH:
            return ""
        return await self._worker.run(lambda cancelled: self._engine.transcribe(samples, cancelled))


class _EmbeddedTranscription:
    """The engine hears whole clips only: long input is cut, and its pieces are recognised as they fill."""

    def __init__(self, recognise: Callable[[bytes], Coroutine[Any, Any, str]]) -> None:
        self._recognise = recognise
        self._pieces: list[Shared[str]] = []
        self._rest = bytearray()

    def feed(self, pcm: bytes) -> None:
        self._rest += pcm
        while len(self._rest) > 2 * _LONGEST_PIECE:
            end = 2 * quietest(samples_of(bytes(self._rest)), _SHORTEST_PIECE, _LONGEST_PIECE)
            piece = self._recognise(bytes(self._rest[:end]))
            self._pieces.append(Shared(piece, f"piece {len(self._pieces)}"))
            del self._rest[:end]

    async def text(self) -> str:
        earlier = [piece.result() for piece in self._pieces]
        texts = await asyncio.gather(*earlier, self._recognise(bytes(self._rest)))
        return " ".join(text for text in texts if text)

    def cancel(self) -> None:
        for piece in self._pieces:
            piece.cancel()


class EmbeddedLanguageModel:
    def __init__(self, engine: llm.LanguageModel, worker: Worker) -> None:
        self._engine = engine
        self._worker = worker

    def stream(self, messages: Sequence[Message], writing: Writing) -> AsyncGenerator[Written]:
        """``messages`` begin with the system's. Tools are unknown to this model."""
        most = min(writing.max_tokens or _MOST_ANSWER_TOKENS, _MOST_ANSWER_TOKENS)

        def write(cancelled: Cancelled) -> Iterator[Written]:
            prompt = self._prompt(messages)
            yield PromptRead(self._engine.count_tokens(prompt))
            pieces = self._engine.generate(writing.session, prompt, max_tokens=most, cancelled=cancelled)
            yield from map(Piece, pieces)

        return self._worker.stream(write)

    async def prefill(self, session: str, messages: Sequence[Message]) -> None:
        await self._worker.run(
            lambda cancelled: self._engine.prefill(session, self._prompt(messages), cancelled)
        )

    def release(self, session: str) -> None:
        self._engine.release(session)

    def _prompt(self, messages: Sequence[Message]) -> list[llm.Message]:
        room = self._engine.context_tokens - _MOST_ANSWER_TOKENS
        return _prompt_of(fit(messages, lambda some: self._engine.count_tokens(_prompt_of(some)), room))


class EmbeddedSynthesizer:
    def __init__(self, engine: HibariTts, worker: Worker) -> None:
        self._engine = engine
        self._worker = worker

    async def synthesize(self, text: str, voice: str) -> bytes:
        """A voice that the engine does not have becomes its default one."""
        known = voice if voice in VOICES else DEFAULT_VOICE
        samples = await self._worker.run(lambda cancelled: self._engine.synthesize(text, known, cancelled))
        return samples.astype("<i2").tobytes()


def quietest(samples: NDArray[np.float32], first: int, last: int) -> int:
    """The middle of the quietest tenth of a second between ``first`` and ``last``."""
    width = INPUT_RATE // 10 // WINDOW
    loudness = np.convolve(levels(samples[first:last]), np.ones(width), "valid")
    return first + (int(loudness.argmin()) * WINDOW + width * WINDOW // 2)


def _prompt_of(messages: Sequence[Message]) -> list[llm.Message]:
    """The system's message, the example, and the rest."""
    system, *rest = (llm.Message(message.role, message.text) for message in messages)
    return [system, *_EXAMPLE, *rest]
