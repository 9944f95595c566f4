"""A conversation by file with the embedded voice: three recorded turns, the second answer talked over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.models.voice.speech import RECORDINGS, heard, word_errors, words

from counterpoint.cli.conversation import INPUT, OPTIONS, Question, spoken
from counterpoint.client import Event, Session, connect
from counterpoint.models.cascade.session import CascadeSession
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.plugins.contract import ResponseRequest
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.testing.server import running_server

from .microphone import said

pytestmark = [pytest.mark.voice, pytest.mark.timeout(120)]

PATIENCE_S = 60
#: The second answer is heard for so long when the third turn begins.
LISTENED_S = 0.5
#: Speech is made faster than it sounds: an answer is only talked over if it is sent as it is played.
PACED = {"limits.max_audio_lead_ms": 200}
NAMES = list(RECORDINGS)
UNDERSTOOD = "input_audio_transcription.completed"


class Talk:
    """What one client was told, and when."""

    def __init__(self, session: Session) -> None:
        self._events = session.events()
        self.seen: list[tuple[float, Event]] = []

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                event = await anext(self._events)
                self.seen.append((asyncio.get_running_loop().time(), event))

    def of(self, kind: str, response_id: str | None = None) -> list[Event]:
        return [
            event
            for _, event in self.seen
            if event.type.endswith(kind) and response_id in (None, event.response_id)
        ]

    def time_of(self, event: Event) -> float:
        return next(at for at, each in self.seen if each is event)

    def ended(self, answers: int) -> bool:
        return len(self.of("response.done")) == answers

    def speaks(self, answers: int) -> bool:
        """So many answers began to sound."""
        return len({event.response_id for event in self.of("output_audio.delta")}) == answers


async def test_three_turns_the_second_answer_interrupted(
    engines: VoiceEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every turn is understood and answered aloud; history keeps of the second answer what was heard."""
    requests = remembered(engines, monkeypatch)
    config: dict[str, Any] = {"type": "realtime", "audio": {"input": INPUT}}
    async with (
        running_server(PACED, model="cascade") as server,
        connect(server.url, session=config, options=OPTIONS) as session,
    ):
        talk = Talk(session)
        async with spoken(session, Question(said(NAMES[0]))):
            await talk.until(lambda: talk.ended(1))
        async with spoken(session, Question(said(NAMES[1]))):
            await talk.until(lambda: talk.speaks(2))
            await asyncio.sleep(LISTENED_S)
        async with spoken(session, Question(said(NAMES[2]))):
            await talk.until(lambda: talk.ended(3) and len(talk.of(UNDERSTOOD)) == 3)
    for name, told in zip(NAMES, talk.of(UNDERSTOOD), strict=True):
        assert word_errors(RECORDINGS[name], told.string("transcript").replace("10", "ten")) <= 2
    ends = [event.object("response") for event in talk.of("response.done")]
    assert [end["status"] for end in ends] == ["completed", "cancelled", "completed"]
    for end in ends:
        assert audio_of(talk.of("output_audio.delta", end["id"]))
    check_history(talk, engines, requests[-1])


def check_history(talk: Talk, engines: VoiceEngines, request: ResponseRequest) -> None:
    """The third answer is given to a conversation with those words of the second that sounded."""
    assert [item.role for item in request.history] == ["user", "assistant", "user", "assistant", "user"]
    first, second, _ = [event.object("response") for event in talk.of("response.done")]
    whole, kept = request.history[1].text, request.history[3].text
    assert whole == transcript_of(first)
    assert kept is not None
    assert transcript_of(second).startswith(kept)
    assert kept != transcript_of(second)
    deltas = talk.of("output_audio.delta", second["id"])
    cut = talk.of("speech_started")[-1]
    played_s = talk.time_of(cut) - talk.time_of(deltas[0])
    pcm = audio_of(deltas)[: 2 * round(played_s * SESSION_RATE)]
    sounded = words(engines.asr.transcribe(heard(np.frombuffer(pcm, "<i2"))))
    # Recognition hears half a word as one, or not at all.
    assert abs(len(words(kept)) - len(sounded)) <= 2


def transcript_of(response: dict[str, Any]) -> str:
    return "".join(part["transcript"] for item in response["output"] for part in item["content"])


def audio_of(deltas: list[Event]) -> bytes:
    return b"".join(event.audio for event in deltas)


def remembered(engines: VoiceEngines, monkeypatch: pytest.MonkeyPatch) -> list[ResponseRequest]:
    """What the cascade is asked, on engines that are loaded already."""
    requests: list[ResponseRequest] = []
    respond = CascadeSession.respond

    async def remember(session: CascadeSession, request: ResponseRequest) -> None:
        requests.append(request)
        await respond(session, request)

    monkeypatch.setattr(VoiceEngines, "load", lambda *_, **__: engines)
    monkeypatch.setattr(CascadeSession, "respond", remember)
    return requests
