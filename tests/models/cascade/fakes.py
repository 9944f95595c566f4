"""Stages whose words, times and failures a test writes down, and which count what runs in them.

Owns: these stages, audio that is loud or silent, and turns that are spoken with it.
Does not own: what tests of all models share (``tests.models.support``).
Here because: the logic of the cascade is about when stages start and stop, not about what they say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.models.support import SESSION, Outlet, request, step, user

from counterpoint.models.cascade.session import CascadeSession
from counterpoint.models.cascade.stages import Message, Piece, PromptRead, Stages, Writing, Written
from counterpoint.plugins.contract import ResponseRequest
from counterpoint.protocol.config import SessionConfig

#: What one character sounds like, in samples at 24 kHz.
SAMPLES_PER_CHARACTER = 240


def loud(ms: int) -> bytes:
    """Speech, as far as loudness goes: int16 at 16 kHz."""
    samples = 8000 * np.sin(np.arange(16 * ms) / 5)
    return samples.astype("<i2").tobytes()


def silent(ms: int) -> bytes:
    return bytes(32 * ms)


def sound_of(text: str) -> bytes:
    return (text.encode() * SAMPLES_PER_CHARACTER)[: len(text) * SAMPLES_PER_CHARACTER] * 2


class Counted:
    """How often a stage was started, and how many of its calls run."""

    def __init__(self) -> None:
        self.started = 0
        self.running = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        self.started += 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


@dataclass
class FakeTranscription:
    transcriber: FakeTranscriber
    words: str
    fed: bytes = b""
    cancelled: bool = False

    def feed(self, pcm: bytes) -> None:
        self.fed += pcm

    async def text(self) -> str:
        with self.transcriber.calls.call():
            await asyncio.sleep(self.transcriber.delay)
            if self.words == "fails":
                raise RuntimeError("no idea what that was")
            return self.words

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class FakeTranscriber:
    """Utterances say ``words``, in the order in which they begin."""

    words: list[str]
    delay: float = 0.08
    calls: Counted = field(default_factory=Counted)
    begun: list[FakeTranscription] = field(default_factory=list)

    def start(self) -> FakeTranscription:
        words = self.words[min(len(self.begun), len(self.words) - 1)]
        self.begun.append(FakeTranscription(self, words))
        return self.begun[-1]


@dataclass
class FakeLanguageModel:
    """Answers ``answers`` in order, a word at a time; the word "fails" raises."""

    answers: list[str]
    delay: float = 0.02
    calls: Counted = field(default_factory=Counted)
    prompts: list[Sequence[Message]] = field(default_factory=list)
    writings: list[Writing] = field(default_factory=list)
    read: list[Sequence[Message]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    async def stream(self, messages: Sequence[Message], writing: Writing) -> AsyncGenerator[Written]:
        self.prompts.append(messages)
        self.writings.append(writing)
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        with self.calls.call():
            yield PromptRead(sum(len(message.text.split()) for message in messages))
            for word in answer.split()[: writing.max_tokens]:
                await asyncio.sleep(self.delay)
                if word == "fails":
                    raise RuntimeError("out of words")
                yield Piece(f"{word} ")

    async def prefill(self, session: str, messages: Sequence[Message]) -> None:
        self.read.append(messages)
        with self.calls.call():
            await asyncio.sleep(10 * self.delay)

    def release(self, session: str) -> None:
        self.released.append(session)


@dataclass
class FakeSynthesizer:
    """Speaks every character for 10 ms; "unspeakable" raises, "mute" has no sound."""

    delay: float = 0.03
    calls: Counted = field(default_factory=Counted)
    spoken: list[tuple[str, str]] = field(default_factory=list)

    async def synthesize(self, text: str, voice: str) -> bytes:
        self.spoken.append((text, voice))
        with self.calls.call():
            await asyncio.sleep(self.delay)
            if "unspeakable" in text:
                raise RuntimeError("lost my voice")
            return b"" if "mute" in text else sound_of(text)


@dataclass
class Fakes:
    transcriber: FakeTranscriber
    model: FakeLanguageModel
    synthesizer: FakeSynthesizer = field(default_factory=FakeSynthesizer)
    sentences: int | None = None
    open_sessions: set[str] = field(default_factory=set)

    @property
    def running(self) -> int:
        """Calls that run now, in all stages."""
        stages = (self.transcriber, self.model, self.synthesizer)
        return sum(stage.calls.running for stage in stages)

    def stages(self) -> Stages:
        return Stages(self.transcriber, self.model, self.synthesizer, self.sentences)

    async def session(
        self, instructions: str = "", session_id: str = SESSION
    ) -> tuple[CascadeSession, Outlet]:
        session = CascadeSession(session_id, self.stages(), self.open_sessions)
        outlet = Outlet()
        await session.open(SessionConfig(instructions=instructions), outlet)
        return session, outlet


def fakes(words: str | list[str] = "hello there", *answers: str, sentences: int | None = None) -> Fakes:
    said = [words] if isinstance(words, str) else words
    model = FakeLanguageModel(list(answers) or ["Well, that is good. So it is."])
    return Fakes(FakeTranscriber(said), model, sentences=sentences)


def spoken(turn: int = 1, *history: Any, **changes: Any) -> ResponseRequest:
    """The request that answers utterance ``turn``."""
    heard = user(f"u{turn}", input=turn)
    return request(turn, *history, heard, **({"input": turn} | changes))


async def speak(session: CascadeSession, utterance: int = 1, ms: int = 1000) -> None:
    """``ms`` of speech and 100 ms of silence, in pieces of 20 ms."""
    for _ in range(ms // 20):
        await asyncio.sleep(0.02)
        await session.push(step(utterance, loud(20)))
    for _ in range(5):
        await asyncio.sleep(0.02)
        await session.push(step(utterance, silent(20)))


async def commit(session: CascadeSession, utterance: int = 1, **changes: Any) -> None:
    await session.push(step(utterance, silent(20), final=True, **changes))
