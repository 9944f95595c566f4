"""People interrupt an answer: recorded speech in real time, over sockets, through the real detectors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.models.voice.speech import RECORDINGS, recording, word_errors

from counterpoint.cli.conversation import INPUT, OPTIONS, Question, spoken
from counterpoint.client import Event, connect
from counterpoint.models.cascade.embedded import EmbeddedVoice
from counterpoint.models.scripted.content import ramp
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.testing.server import running_server

from .ears import ListeningPlugin
from .microphone import said

pytestmark = [pytest.mark.voice, pytest.mark.timeout(120)]

#: Moments of an answer at which somebody begins to speak; the steps fall anywhere in its 80 ms chunks.
OFFSETS_S = [0.3 + 0.137 * number for number in range(20)]
SCRIPT = [{"audio_ms": 20_000, "words": 60}, {"audio_ms": 200, "words": 2}]
PATIENCE_S = 60


async def interrupt(url: str, name: str, offset_s: float) -> list[Event]:
    """Everything that one client is told, until its interruption was understood and answered."""
    config: dict[str, Any] = {"type": "realtime", "audio": {"input": INPUT}, "extra_body": {"script": SCRIPT}}
    seen: list[Event] = []
    async with connect(url, session=config, options=OPTIONS) as session, asyncio.timeout(PATIENCE_S):
        question = Question(said(name))
        await session.respond()
        await asyncio.sleep(offset_s)
        async with spoken(session, question):
            async for event in session.events():
                seen.append(event)
                if question.all_sent_at is not None and is_settled(seen):
                    return seen
    raise AssertionError("the session ended")


def is_settled(seen: list[Event]) -> bool:
    """Every committed input was understood, and the newest answer was not cut."""
    types = [event.type for event in seen]
    ends = [event.object("response")["status"] for event in seen if event.type == "response.done"]
    committed = types.count("input_audio_buffer.committed")
    return 0 < committed == len(transcripts(seen)) and ends[-1:] == ["completed"]


def transcripts(seen: list[Event]) -> list[str]:
    """What was understood, by turn."""
    ending = "input_audio_transcription.completed"
    return [event.string("transcript") for event in seen if event.type.endswith(ending)]


def as_spoken(text: str) -> str:
    """Recognition writes the one number of the recordings now as a word, now in digits."""
    return text.replace("10", "ten")


def check_cut(seen: list[Event]) -> None:
    """The first answer is its own ramp to the cut, and silent after it; one chunk at most crosses."""
    first, second = [event.response_id for event in seen if event.type == "response.created"]
    types = [(event.type, event.response_id) for event in seen]
    decision = next(at for at, (kind, _) in enumerate(types) if kind.endswith("speech_started"))
    end = types.index(("response.done", first))
    assert seen[end].object("response")["status"] == "cancelled"
    audio = [at for at, kind in enumerate(types) if kind == ("response.output_audio.delta", first)]
    assert sum(at > decision for at in audio) <= 1
    assert audio
    assert audio[-1] < end
    pcm = audio_of(seen, first)
    assert pcm == ramp(1, 0, len(pcm) // 2)
    # The answer to the interruption is another ramp: nothing of the first is told as its own.
    pcm = audio_of(seen, second)
    assert pcm == ramp(2, 0, len(pcm) // 2)


def audio_of(seen: list[Event], response_id: str) -> bytes:
    return b"".join(event.audio for event in seen if event.response_id == response_id)


async def test_speech_over_an_answer_cuts_it_and_is_understood_whole(engines: VoiceEngines) -> None:
    """At 20 moments of the answer: no old audio after its end, every word of the interruption in one turn."""
    voice = EmbeddedVoice(engines)
    names = [list(RECORDINGS)[number % len(RECORDINGS)] for number in range(len(OFFSETS_S))]
    try:
        async with running_server(plugin=ListeningPlugin(engines, voice)) as server:
            told = await asyncio.gather(
                *(interrupt(server.url, name, at) for name, at in zip(names, OFFSETS_S, strict=True))
            )
    finally:
        await asyncio.to_thread(voice.stop)
    alone = {name: as_spoken(engines.asr.transcribe(recording(name))) for name in RECORDINGS}
    for name, seen in zip(names, told, strict=True):
        check_cut(seen)
        (words,) = transcripts(seen)
        assert word_errors(alone[name], as_spoken(words)) == 0, name
