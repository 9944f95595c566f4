"""Sounds over an answer that are no turn: real ones, through the real detector and the real recogniser.

The answer is a ramp, so that what is said again can be compared to the sample (wire contract, section 6).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from tests.models.voice.speech import noise, recording

from counterpoint.cli.conversation import OPTIONS, Question, spoken
from counterpoint.client import Event, connect
from counterpoint.models.cascade.embedded import EmbeddedVoice
from counterpoint.models.scripted.content import ramp
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.testing.server import running_server

from .ears import ListeningPlugin
from .microphone import on_the_line

pytestmark = [pytest.mark.voice, pytest.mark.timeout(120)]

ANSWER_S = 3
WORDS = [f"word{number}" for number in range(1, 21)]
#: Made at once and sent as it is played, so that there is a rest to be said again.
ANSWER = {"audio_ms": 1000 * ANSWER_S, "words": len(WORDS), "pace": "burst"}
PACED = {"limits.max_audio_lead_ms": 200}
REPLY = {"audio_ms": 200, "words": 2, "pace": "burst"}
HISTORY = {"echo_history": True, "audio_ms": 200}
DETECTION = {"type": "server_vad", "false_interruption_ms": 1000}
INPUT = {"turn_detection": DETECTION, "transcription": {"model": "default"}}

OFFSET_S = 0.7
PATIENCE_S = 40


class Exchange:
    """One answer with a sound over it, and what is in the history afterwards."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.history: list[dict[str, Any]] = []
        self.played_ms = 0  #: of the first answer, as the server has it

    def of(self, ending: str) -> list[Event]:
        return [event for event in self.seen if event.type.endswith(ending)]

    def audio(self, response_id: str) -> bytes:
        return b"".join(event.audio for event in self.seen if event.response_id == response_id)

    @property
    def responses(self) -> list[dict[str, Any]]:
        return [event.object("response") for event in self.of("response.done")]

    @property
    def words_said(self) -> list[str]:
        texts = [entry["text"] for entry in self.history if entry["role"] == "assistant"]
        return " ".join(texts).split()


async def sound_over_an_answer(engines: VoiceEngines, pcm: bytes, *, then: list[dict[str, Any]]) -> Exchange:
    """Play ``pcm`` over the answer; ``then`` are the scripts of what is said afterwards."""
    voice, exchange = EmbeddedVoice(engines), Exchange()
    config = {"type": "realtime", "audio": {"input": INPUT}, "extra_body": {"script": [ANSWER, *then]}}
    try:
        async with (
            running_server(PACED, plugin=ListeningPlugin(engines, voice)) as server,
            connect(server.url, session=config, options=OPTIONS) as session,
            asyncio.timeout(PATIENCE_S),
        ):
            await session.respond()
            await asyncio.sleep(OFFSET_S)
            async with spoken(session, Question(pcm)):
                async for event in session.events():
                    exchange.seen.append(event)
                    if exchange.responses and exchange.responses[-1]["status"] == "completed":
                        break
            await asyncio.sleep(0.5)  # the end of it is still being played
            exchange.history = json.loads((await (await session.respond()).done()).text)
            # A late report changes nothing, and is answered with the positions in force.
            await session.acknowledge_playback(exchange.responses[0]["id"], 0)
            async for event in session.events():
                if event.type == "playback.acknowledged":
                    exchange.played_ms = event.object("playback")["played_ms"]
                    break
    finally:
        await asyncio.to_thread(voice.stop)
    return exchange


async def test_noise_that_is_no_speech_interrupts_nothing(engines: VoiceEngines) -> None:
    """A knock, and a breath that comes and goes: the answer is one, and whole."""
    knock = noise(0.06, 0.3)
    breath = noise(0.4, 0.2) * np.hanning(round(0.4 * 16_000)).astype(np.float32)
    gap = np.zeros(8000, np.float32)
    exchange = await sound_over_an_answer(
        engines, on_the_line(np.concatenate([knock, gap, breath])), then=[HISTORY]
    )
    (response,) = exchange.responses
    assert exchange.audio(response["id"]) == ramp(1, 0, ANSWER_S * SESSION_RATE)
    assert exchange.of("speech_started") == []
    assert exchange.words_said == WORDS


@pytest.mark.parametrize("sound", ["okay", "a syllable"])
async def test_what_turns_out_to_say_nothing_is_followed_by_the_rest_of_the_answer(
    engines: VoiceEngines, sound: str
) -> None:
    """An acknowledgement, and a scrap of a recording without a word: nothing is lost or said twice."""
    sounds = {
        "okay": engines.tts.synthesize("Okay.").tobytes(),
        "a syllable": on_the_line(recording("ill_disposed")[4800:8000]),
    }
    exchange = await sound_over_an_answer(engines, sounds[sound], then=[HISTORY])
    first, second = exchange.responses
    assert [first["status"], second["status"]] == ["cancelled", "completed"]
    created = exchange.of("response.created")[-1]
    assert created.object("duplex")["continues"] == first["id"]
    heard, rest = exchange.audio(first["id"]), exchange.audio(second["id"])
    at = ANSWER_S * SESSION_RATE - len(rest) // 2
    assert 0 < at <= len(heard) // 2
    assert at * 1000 // SESSION_RATE == exchange.played_ms
    assert heard == ramp(1, 0, len(heard) // 2)
    assert rest == ramp(1, at, len(rest) // 2)
    assert exchange.of("input_audio_buffer.committed") == []
    assert exchange.words_said == WORDS


async def test_words_are_a_turn_however_few(engines: VoiceEngines) -> None:
    """Half a second of a recording says something: it is answered, and nothing is said again."""
    exchange = await sound_over_an_answer(
        engines, on_the_line(recording("ill_disposed")[:9600]), then=[REPLY, HISTORY]
    )
    first, second = exchange.responses
    assert [first["status"], second["status"]] == ["cancelled", "completed"]
    assert exchange.audio(second["id"]) == ramp(2, 0, len(exchange.audio(second["id"])) // 2)
    (told,) = exchange.of("input_audio_transcription.completed")
    assert told.string("transcript") == "He was."
    assert [entry["role"] for entry in exchange.history] == ["assistant", "user", "assistant"]
