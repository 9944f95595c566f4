"""The embedded voice as stages, with engines that only count: cutting, gating, fitting, stopping."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.cascade.fakes import loud, silent

from counterpoint.models.cascade.embedded import (
    EmbeddedLanguageModel,
    EmbeddedSynthesizer,
    EmbeddedTranscriber,
    quietest,
)
from counterpoint.models.cascade.loudness import samples_of
from counterpoint.models.cascade.stages import Message, Piece, PromptRead, Writing
from counterpoint.models.cascade.worker import Worker
from counterpoint.models.voice import llm
from counterpoint.models.voice.cancellation import Cancelled, never, stop_if
from counterpoint.models.voice.tts import DEFAULT_VOICE


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("engine")
    yield worker
    worker.stop()


class CountingAsr:
    """Says how many tenths of a second each clip had."""

    def __init__(self) -> None:
        self.clips: list[int] = []

    def transcribe(self, audio: NDArray[np.float32], cancelled: Cancelled = never) -> str:
        self.clips.append(len(audio))
        return f"{len(audio) // 1600}"


class EndlessLlm:
    """One token per character; writes "so " until it is stopped."""

    context_tokens = 600

    def __init__(self) -> None:
        self.prompts: list[list[llm.Message]] = []
        self.asked: dict[str, Any] = {}
        self.written = 0
        self.ended = threading.Event()
        self.released: list[str] = []

    def count_tokens(self, messages: Sequence[llm.Message]) -> int:
        return sum(len(message.text) for message in messages)

    def prefill(self, session: str, messages: list[llm.Message], cancelled: Cancelled = never) -> int:
        self.prompts.append(messages)
        return 0

    def generate(self, session: str, messages: list[llm.Message], **asked: Any) -> Iterator[str]:
        self.prompts.append(messages)
        self.asked = asked
        try:
            for _ in range(asked["max_tokens"]):
                stop_if(asked["cancelled"])
                self.written += 1
                yield "so "
        finally:
            self.ended.set()

    def release(self, session: str) -> None:
        self.released.append(session)


class ToneTts:
    def __init__(self) -> None:
        self.voices: list[str] = []

    def synthesize(self, text: str, voice: str, cancelled: Cancelled = never) -> NDArray[np.int16]:
        self.voices.append(voice)
        return np.full(len(text), 258, np.int16)


async def words_of(worker: Worker, *pieces: bytes) -> tuple[str, list[int]]:
    asr = CountingAsr()
    transcription = EmbeddedTranscriber(cast(Any, asr), worker).start()
    for piece in pieces:
        transcription.feed(piece)
    return await transcription.text(), asr.clips


async def test_a_short_clip_is_recognised_whole(worker: Worker) -> None:
    assert await words_of(worker, loud(500), loud(400)) == ("9", [14_400])


@pytest.mark.parametrize("pcm", [b"", silent(3000), loud(200), loud(200) + silent(3000)])
async def test_recognition_is_not_asked_about_silence_or_a_click(worker: Worker, pcm: bytes) -> None:
    """It would invent words."""
    assert await words_of(worker, pcm) == ("", [])


@pytest.mark.parametrize("chunk", [640, 32_000, 10**9])
async def test_long_input_is_cut_in_its_pauses(worker: Worker, chunk: int) -> None:
    """The words do not depend on how the audio came, and no clip is longer than ten seconds."""
    pcm = loud(7000) + silent(400) + loud(7000) + silent(400) + loud(7000)
    pieces = [pcm[start : start + chunk] for start in range(0, len(pcm), chunk)]
    text, clips = await words_of(worker, *pieces)
    assert sum(clips) == len(pcm) // 2
    assert max(clips) <= 160_000
    assert text == " ".join(str(clip // 1600) for clip in clips)
    assert [7000 < 1000 * clip / 16_000 < 7800 for clip in clips] == [True, True, True]


async def test_words_can_be_asked_for_again_after_more(worker: Worker) -> None:
    asr = CountingAsr()
    transcription = EmbeddedTranscriber(cast(Any, asr), worker).start()
    transcription.feed(loud(1000))
    assert await transcription.text() == "10"
    transcription.feed(loud(1000))
    assert await transcription.text() == "20"
    transcription.cancel()


def test_the_quietest_place_is_the_middle_of_a_pause() -> None:
    samples = samples_of(loud(6000) + silent(200) + loud(4000))
    assert abs(quietest(samples, 80_000, 160_000) - 6100 * 16) <= 50 * 16


async def test_an_answer_is_a_prompts_size_and_its_pieces(worker: Worker) -> None:
    engine = EndlessLlm()
    model = EmbeddedLanguageModel(cast(Any, engine), worker)
    messages = [Message("system", "s"), Message("user", "hi")]
    written = [item async for item in model.stream(messages, Writing("one", max_tokens=3))]
    (prompt,) = engine.prompts
    assert written == [PromptRead(engine.count_tokens(prompt)), Piece("so "), Piece("so "), Piece("so ")]
    assert (prompt[0], prompt[-1]) == (llm.Message("system", "s"), llm.Message("user", "hi"))


async def test_an_answer_ends_where_the_context_would(worker: Worker) -> None:
    engine = EndlessLlm()
    model = EmbeddedLanguageModel(cast(Any, engine), worker)
    messages = [Message("system", "s" * 1000), Message("user", "u" * 1000)]
    written = [item async for item in model.stream(messages, Writing("one", max_tokens=10_000))]
    assert isinstance(written[0], PromptRead)
    assert written[0].tokens + len(written) - 1 <= engine.context_tokens
    await model.prefill("one", messages)
    assert engine.prompts[0] == engine.prompts[1]
    model.release("one")
    assert engine.released == ["one"]


async def test_a_closed_answer_stops_at_its_next_token(worker: Worker) -> None:
    engine = EndlessLlm()
    model = EmbeddedLanguageModel(cast(Any, engine), worker)
    async with aclosing(model.stream([Message("system", "s")], Writing("one"))) as written:
        await anext(written)
    await worker.run(lambda cancelled: engine.ended.wait(5))
    assert engine.written <= 120


async def test_a_voice_that_does_not_exist_is_the_default_one(worker: Worker) -> None:
    engine = ToneTts()
    voice = EmbeddedSynthesizer(cast(Any, engine), worker)
    assert await voice.synthesize("hello", "bass") == b"\x02\x01" * 5
    await voice.synthesize("hello", "marin")
    assert engine.voices == ["bass", DEFAULT_VOICE]
