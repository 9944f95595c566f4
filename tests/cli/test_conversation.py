"""Which answer belongs to a question, and what is waited for."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import numpy as np
import pytest

from counterpoint.cli import conversation
from counterpoint.cli.conversation import FRAME_BYTES, Question, _Exchange, converse
from counterpoint.client import Event
from counterpoint.errors import CounterpointError
from counterpoint.testing.server import running_server

TRANSCRIPTION = "conversation.item.input_audio_transcription."


class Told(_Exchange):
    """An exchange that is told of events by their types."""

    def __init__(self) -> None:
        self.question = Question(bytes(FRAME_BYTES))
        self.question.ended_at = asyncio.get_running_loop().time()
        super().__init__(self.question)

    def all_sent(self) -> None:
        self.question.all_sent_at = asyncio.get_running_loop().time()

    # Methods, because what a property said once is taken for granted by the type checker.

    def is_over(self) -> bool:
        return self.over

    def deadline(self) -> float | None:
        return self.give_up_at

    def tell(self, type: str, **fields: Any) -> None:
        self.follow(Event({"type": type, **fields}))

    def speech(self, item_id: str) -> None:
        self.tell("input_audio_buffer.speech_started", item_id=item_id)
        self.tell("input_audio_buffer.speech_stopped", item_id=item_id)
        self.tell("input_audio_buffer.committed", item_id=item_id)

    def transcript(self, item_id: str, text: str) -> None:
        self.tell(TRANSCRIPTION + "delta", item_id=item_id, delta="not yet")
        self.tell(TRANSCRIPTION + "completed", item_id=item_id, transcript=text)

    def respond(self, response_id: str, text: str, pcm: bytes = b"\1\0") -> None:
        self.tell("response.created", response={"id": response_id})
        delta = base64.b64encode(pcm).decode()
        self.tell("response.output_audio.delta", response_id=response_id, delta=delta)
        self.tell("response.output_audio_transcript.done", response_id=response_id, transcript=text)

    def finish(self, response_id: str, status: str = "completed", **fields: Any) -> None:
        response = {"id": response_id, "status": status, "output": [{"type": "message"}], **fields}
        self.tell("response.done", response=response)


async def test_a_question_and_its_answer() -> None:
    told = Told()
    told.speech("u1")
    told.all_sent()
    told.transcript("u1", "what is it")
    told.respond("r1", "a violin", b"\1\0\2\0")
    assert not told.is_over()
    told.finish("r1")
    assert told.is_over()
    turn = told.turn
    assert (turn.heard, turn.answer, turn.status, turn.audio) == (
        "what is it",
        "a violin",
        "completed",
        b"\1\0\2\0",
    )
    assert list(turn.latency_ms) == ["speech_stopped", "transcript", "first_audio", "answer_done"]


async def test_an_answer_to_a_pause_is_forgotten_and_what_was_understood_adds_up() -> None:
    told = Told()
    told.speech("u1")
    told.transcript("u1", "what is")
    told.respond("r1", "well", b"\1\0")
    told.tell("input_audio_buffer.speech_started", item_id="u2")
    told.finish("r1", "cancelled")
    told.all_sent()
    assert not told.is_over()
    told.speech("u2")
    told.transcript("u2", "a violin")
    told.respond("r2", "an instrument", b"\2\0")
    told.finish("r2")
    assert told.is_over()
    assert (told.turn.heard, told.turn.answer, told.turn.audio) == (
        "what is a violin",
        "an instrument",
        b"\2\0",
    )


async def test_an_answer_that_is_there_before_the_silence_of_the_file_ends_is_the_answer() -> None:
    told = Told()
    told.speech("u1")
    told.transcript("u1", "x")
    told.respond("r1", "yes")
    told.finish("r1")
    assert not told.is_over()
    told.all_sent()
    assert told.is_over()


async def test_speech_after_a_complete_answer_awaits_its_own() -> None:
    told = Told()
    told.speech("u1")
    told.transcript("u1", "x")
    told.respond("r1", "yes")
    told.finish("r1")
    told.speech("u2")
    told.transcript("u2", "y")
    told.all_sent()
    assert not told.is_over()
    told.respond("r2", "no")
    told.finish("r2")
    assert (told.is_over(), told.turn.answer) == (True, "no")


async def test_a_late_transcript_is_waited_for_and_a_failed_one_is_none() -> None:
    told = Told()
    told.all_sent()
    told.speech("u1")
    told.speech("u2")
    told.respond("r1", "yes")
    told.finish("r1")
    told.tell(TRANSCRIPTION + "failed", item_id="u1", error={"message": "x"})
    assert not told.is_over()
    told.transcript("u2", "late")
    assert (told.is_over(), told.turn.heard) == (True, "late")


async def test_listening_on_is_no_answer() -> None:
    told = Told()
    told.all_sent()
    told.respond("r1", "")
    told.finish("r1", output=[])
    assert not told.is_over()


async def test_a_model_that_commits_nothing_can_answer() -> None:
    told = Told()
    told.all_sent()
    told.respond("r1", "yes")
    told.finish("r1")
    assert told.is_over()


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"type": "failed", "error": {"type": "server_error", "code": "model_timeout"}}, "model_timeout"),
        (None, ""),
    ],
)
async def test_a_failed_answer_is_an_error(details: dict[str, Any] | None, said: str) -> None:
    told = Told()
    with pytest.raises(CounterpointError, match=f"the answer failed: .*{said}"):
        told.finish("r1", "failed", status_details=details)


async def test_patience_begins_when_nothing_is_said_on_either_side() -> None:
    told = Told()
    assert told.deadline() is None
    told.all_sent()
    assert told.deadline() is not None
    told.tell("response.created", response={"id": "r1"})
    assert told.deadline() is None
    told.finish("r1", "cancelled")
    assert told.deadline() is not None


def test_speech_ends_with_its_last_audible_sample() -> None:
    pcm = np.zeros(4800, np.int16)
    pcm[1000:2000] = 10_000
    pcm[4000] = 300  # noise of the room
    assert Question(pcm.tobytes())._last_audible == 1999 * 2


async def test_silence_is_answered_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "PATIENCE_S", 0.5)
    async with running_server() as server:
        with pytest.raises(CounterpointError, match="no speech was heard"):
            await converse(server.url, [bytes(48_000)], fast=True)
