"""The cascade with its real voice, on recordings of people.

The bounds on time are several times what was measured on two busy cores (0.3 to 0.8 s).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.models.support import SESSION, Outlet, assistant, now, request, step, user
from tests.models.voice.speech import RECORDINGS, heard, recording, word_error_rate, word_errors

from counterpoint.models.cascade.embedded import EmbeddedVoice
from counterpoint.models.cascade.session import CascadeSession
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.plugins.contract import (
    AudioDelta,
    Fence,
    HistoryItem,
    ResponseRequest,
    TurnEnd,
    UserTranscript,
)
from counterpoint.protocol.config import SessionConfig

pytestmark = pytest.mark.voice

PIECE = 640  # 20 ms


@pytest.fixture
async def voice(engines: VoiceEngines) -> AsyncIterator[EmbeddedVoice]:
    voice = EmbeddedVoice(engines)
    yield voice
    await asyncio.to_thread(voice.stop)


async def open_session(voice: EmbeddedVoice, session_id: str = SESSION) -> tuple[CascadeSession, Outlet]:
    session, outlet = CascadeSession(session_id, voice.stages, set()), Outlet()
    await session.open(SessionConfig(), outlet)
    return session, outlet


def pcm_of(name: str) -> bytes:
    return (recording(name) * 32767).astype("<i2").tobytes()


def spoken(turn: int) -> ResponseRequest:
    return request(turn, user(f"u{turn}", input=turn), input=turn, voice="mezzo")


async def say(session: CascadeSession, utterance: int, pcm: bytes) -> None:
    for start in range(0, len(pcm), PIECE):
        await session.push(step(utterance, pcm[start : start + PIECE]))


async def test_a_conversation_is_understood_and_answered_aloud(
    voice: EmbeddedVoice, engines: VoiceEngines
) -> None:
    """Every answer sounds like its transcript, judged by recognition itself."""
    session, outlet = await open_session(voice)
    history: list[HistoryItem] = []
    transcripts = []
    answers = []
    for turn, (name, expected) in enumerate(RECORDINGS.items(), start=1):
        await say(session, turn, pcm_of(name) + bytes(3200))
        asked = request(turn, *history, user(f"u{turn}", input=turn), input=turn, voice="mezzo")
        await session.prepare(asked)
        await session.push(step(turn, bytes(3200), final=True, transcribe=True))
        await session.respond(asked)
        end = await outlet.ended(turn)
        assert end.usage is not None
        assert end.usage.output_tokens > 0
        (words,) = [event.text for event in outlet.of(UserTranscript) if event.input == turn]
        transcripts.append((expected, words))
        history += [user(f"u{turn}", words), assistant(f"a{turn}", outlet.text(turn))]
        sound = np.frombuffer(outlet.pcm(turn), "<i2")
        answers.append((outlet.text(turn), engines.asr.transcribe(heard(sound))))
    assert word_error_rate(transcripts) < 0.2
    assert word_error_rate(answers) < 0.3
    await session.close()


@pytest.mark.parametrize("name", RECORDINGS)
async def test_the_first_sound_comes_soon_after_the_end_of_speech(voice: EmbeddedVoice, name: str) -> None:
    session, outlet = await open_session(voice)
    await say(session, 1, pcm_of(name))
    speech_ended_at = now()
    await asyncio.sleep(0.1)
    await session.push(step(1, bytes(3200)))
    await session.prepare(spoken(1))
    await asyncio.sleep(0.1)
    await session.push(step(1, bytes(3200), final=True))
    await session.respond(spoken(1))
    await outlet.until(lambda: bool(outlet.of(AudioDelta)))
    assert now() - speech_ended_at < 4
    await session.close()


async def test_a_cancel_frees_the_engines_within_a_step(voice: EmbeddedVoice) -> None:
    """Another session is served at once, and of the cancelled answer nothing more is heard."""
    session, outlet = await open_session(voice)
    other, heard_by_other = await open_session(voice, "sess_other")
    await session.respond(request(1, user("u", "Tell me about the sea."), voice="mezzo"))
    await outlet.until(lambda: bool(outlet.of(AudioDelta)))
    await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
    said = len(outlet.said)
    await other.respond(request(1, user("u", "What is the capital of France?"), voice="alto"))
    await heard_by_other.ended(1)
    assert "Paris" in heard_by_other.text()
    assert len(outlet.said) == said
    await session.close()
    await other.close()


async def test_two_sessions_at_once_are_each_answered_for_themselves(voice: EmbeddedVoice) -> None:
    sessions = [await open_session(voice, f"sess_{name}") for name in RECORDINGS]
    threads = threading.active_count()
    for (session, _), name in zip(sessions, RECORDINGS, strict=True):
        await say(session, 1, pcm_of(name))
        await session.push(step(1, bytes(3200), final=True, transcribe=True))
        await session.respond(spoken(1))
    for (session, outlet), expected in zip(sessions, RECORDINGS.values(), strict=True):
        assert isinstance(await outlet.ended(1), TurnEnd)
        (told,) = outlet.of(UserTranscript)
        assert word_errors(expected, told.text) <= 2
        await session.close()
    assert threading.active_count() <= threads + 5


async def test_a_long_speech_is_understood_to_its_end(voice: EmbeddedVoice) -> None:
    """Half a minute, cut in its pauses while it arrives."""
    session, outlet = await open_session(voice)
    names = list(RECORDINGS) * 4
    for name in names:
        await say(session, 1, pcm_of(name) + bytes(9600))
    await session.push(step(1, final=True, transcribe=True))
    await outlet.until(lambda: bool(outlet.of(UserTranscript)))
    expected = " ".join(RECORDINGS[name] for name in names)
    assert word_error_rate([(expected, outlet.of(UserTranscript)[0].text)]) < 0.25
    await session.close()


async def test_silence_is_not_understood_as_words(voice: EmbeddedVoice) -> None:
    session, outlet = await open_session(voice)
    await session.push(step(1, bytes(64_000), final=True, transcribe=True))
    await session.respond(spoken(1))
    await outlet.ended(1)
    assert [event.text for event in outlet.of(UserTranscript)] == [""]
    assert outlet.text() == "Sorry, I did not catch that."
    await session.close()


async def test_instructions_of_any_length_are_answered(voice: EmbeddedVoice) -> None:
    session, outlet = await open_session(voice)
    rules = "You work for a shop that sells flowers. " * 500
    await session.respond(request(1, user("u", "What do you sell?"), instructions=rules, voice="mezzo"))
    await outlet.ended(1)
    assert outlet.pcm()
    await session.close()
