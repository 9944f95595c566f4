"""A recogniser and a voice elsewhere: what they are sent, and what is made of their answers."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from tests.models.cascade.fakes import loud, silent
from tests.models.cascade.remote.openai_server import OpenAIServer, Reply, serving

from counterpoint.models.cascade.failing import StageFailed
from counterpoint.models.cascade.remote.server import Server, ServerOptions
from counterpoint.models.cascade.remote.speech import RemoteSynthesizer, SpeechOptions
from counterpoint.models.cascade.remote.transcription import RemoteTranscriber, TranscriptionOptions

OptionsT = TypeVar("OptionsT", bound=ServerOptions)
StageT = TypeVar("StageT")


@asynccontextmanager
async def stage(
    name: str,
    make: Callable[[Server, OptionsT], StageT],
    kind: type[OptionsT],
    *replies: Reply,
    **options: Any,
) -> AsyncIterator[tuple[StageT, OpenAIServer]]:
    async with serving(*replies) as remote:
        chosen = kind(url=remote.url, model="tiny", **options)
        server = Server(name, chosen)
        await server.start()
        try:
            yield make(server, chosen), remote
        finally:
            await server.stop()


def words(text: str) -> Reply:
    return Reply([json.dumps({"text": text}).encode()], headers={"Content-Type": "application/json"})


def recogniser(*replies: Reply, **options: Any) -> Any:
    return stage("asr", RemoteTranscriber, TranscriptionOptions, *replies, **options)


def voice(*replies: Reply, **options: Any) -> Any:
    return stage("tts", RemoteSynthesizer, SpeechOptions, *replies, **options)


async def test_an_utterance_is_sent_whole_as_a_file() -> None:
    async with recogniser(words(" Hello there. "), language="en") as (transcriber, remote):
        utterance = transcriber.start()
        utterance.feed(loud(200))
        utterance.feed(silent(100))
        assert await utterance.text() == "Hello there."
    (asked,) = remote.asked
    assert asked.path == "/v1/audio/transcriptions"
    file = asked.body.pop("file")
    assert asked.body == {"model": "tiny", "response_format": "json", "language": "en"}
    with wave.open(io.BytesIO(file)) as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (16_000, 1, 2)
        assert reader.readframes(reader.getnframes()) == loud(200) + silent(100)


async def test_silence_is_not_sent() -> None:
    """Recognisers of this kind invent words for it."""
    async with recogniser(words("Thank you for watching!")) as (transcriber, remote):
        utterance = transcriber.start()
        utterance.feed(silent(2000))
        assert await utterance.text() == ""
    assert not remote.asked


@pytest.mark.parametrize("body", [b"", b"words", b"[]", b'{"words": "x"}'])
async def test_an_answer_without_words_fails(body: bytes) -> None:
    async with recogniser(Reply([body]), retries=0) as (transcriber, _):
        utterance = transcriber.start()
        utterance.feed(loud(200))
        with pytest.raises(StageFailed) as failed:
            await utterance.text()
    assert failed.value.code == "asr_broken"


async def test_recognition_is_tried_again() -> None:
    async with recogniser(Reply(status=503), words("Hello.")) as (transcriber, remote):
        utterance = transcriber.start()
        utterance.feed(loud(200))
        assert await utterance.text() == "Hello."
    assert len(remote.asked) == 2


async def test_a_sentence_comes_back_as_sound_in_a_voice_that_there_is() -> None:
    pcm = bytes(range(200))
    async with voice(Reply([pcm[:33], pcm[33:]]), voices=("amy", "bob")) as (synthesizer, remote):
        assert await synthesizer.synthesize("Hello.", "bob") == pcm
        assert await synthesizer.synthesize("Hello.", "marin") == pcm
    assert [asked.body["voice"] for asked in remote.asked] == ["bob", "amy"]
    assert remote.asked[0].path == "/v1/audio/speech"
    assert remote.asked[0].body == {
        "model": "tiny",
        "input": "Hello.",
        "voice": "bob",
        "response_format": "pcm",
    }


async def test_sound_of_another_rate_is_brought_to_the_session_s() -> None:
    async with voice(Reply([bytes(2 * 4800)]), rate=16_000) as (synthesizer, _):
        assert abs(len(await synthesizer.synthesize("Hello.", "x")) // 2 - 7200) < 10


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply([b"abc"]), "tts_broken"),
        (Reply([b"{}"], headers={"Content-Type": "application/json"}), "tts_broken"),
        (Reply([b"ab"], cut=True), "tts_broken"),
        (Reply(status=429), "tts_overloaded"),
    ],
)
async def test_what_is_no_sound_fails(reply: Reply, code: str) -> None:
    async with voice(reply, retries=0) as (synthesizer, _):
        with pytest.raises(StageFailed) as failed:
            await synthesizer.synthesize("Hello.", "x")
    assert failed.value.code == code


@pytest.mark.parametrize("begun", [(), (b"ab",)])
async def test_a_stage_that_nobody_waits_for_leaves_its_server(begun: tuple[bytes, ...]) -> None:
    """Seen from the server, before its first byte and after it."""
    async with voice(Reply(begun, hang=True)) as (synthesizer, remote):
        speaking = asyncio.create_task(synthesizer.synthesize("Hello.", "x"))
        await remote.reached.wait()
        speaking.cancel()
        await asyncio.wait([speaking])
        await remote.left.wait()
