"""The words of the user's turns, in whatever order they come."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.plugins.contract import Capabilities, Interaction, UserTranscript, UserTranscriptFailed
from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    DeleteItem,
    RetrieveItem,
)
from counterpoint.protocol.items import InputAudio, Message
from counterpoint.session.effects import Push
from counterpoint.session.transcripts import _EXPECTED

from .driver import MANUAL, Driver, tone, vad

ASKED: dict[str, Any] = {"audio": {"input": {"turn_detection": None, "transcription": {"model": "any"}}}}


def committed(turns: int, patch: dict[str, Any] | None = None, **options: Any) -> tuple[Driver, list[str]]:
    driver = Driver(ASKED if patch is None else patch, **options)
    for _ in range(turns):
        driver.send(AppendAudio(audio=tone(500, 0.5)), CommitAudio())
    return driver, [event.item_id for event in driver.of(ev.InputCommitted)]


def test_transcripts_come_in_any_order_and_name_their_item() -> None:
    """Case J-03: a failure blocks nothing."""
    driver, items = committed(3)
    fence = driver.machine.state.fence()
    driver.model(
        UserTranscript(3, "three"), UserTranscriptFailed(2, "noise"), UserTranscript(1, "one"), fence=fence
    )
    completed = {event.item_id: event.transcript for event in driver.of(ev.TranscriptionCompleted)}
    assert completed == {items[2]: "three", items[0]: "one"}
    assert [event.item_id for event in driver.of(ev.TranscriptionFailed)] == [items[1]]
    assert [text for _, text in _history(driver)] == ["one", None, "three"]


def _history(driver: Driver) -> list[tuple[str | None, str | None]]:
    driver.ask()
    return driver.history()


def test_pieces_add_up_to_the_whole_and_usage_is_the_length_of_the_audio() -> None:
    driver, (item_id,) = committed(1)
    fence = driver.machine.state.fence()
    driver.model(
        UserTranscript(1, "good ", final=False),
        UserTranscript(1, "day", final=False),
        UserTranscript(1, "good day"),
        fence=fence,
    )
    assert "".join(event.delta for event in driver.of(ev.TranscriptionDelta)) == "good day"
    (completed,) = driver.of(ev.TranscriptionCompleted)
    assert (completed.item_id, completed.transcript) == (item_id, "good day")
    assert completed.usage == ev.DurationUsage(0.5)


def test_pieces_that_come_before_the_commit_wait_for_it() -> None:
    driver = Driver(ASKED)
    driver.send(AppendAudio(audio=tone(500, 0.5)))
    driver.model(UserTranscript(1, "early", final=False), fence=driver.machine.state.fence())
    assert driver.sent == []
    driver.send(CommitAudio())
    assert driver.types[-2:] == [
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
    ]


def test_what_was_not_asked_for_is_not_sent_but_known() -> None:
    driver, (item_id,) = committed(1, MANUAL)
    driver.model(UserTranscript(1, "secret"), fence=driver.machine.state.fence())
    assert not any("transcription" in name for name in driver.types)
    driver.send(RetrieveItem(item_id=item_id))
    item = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(item, Message)
    assert isinstance(item.content[0], InputAudio)
    assert item.content[0].transcript == "secret"


@pytest.mark.parametrize("asked", [True, False])
def test_the_model_is_told_whether_a_transcript_is_wanted(asked: bool) -> None:
    driver, _items = committed(1, ASKED if asked else MANUAL)
    assert [effect.step.transcribe for effect in driver.effects if isinstance(effect, Push)][-1] is asked


def test_an_interruption_loses_no_transcript() -> None:
    """Wire, section 6: work on input is fenced by its item."""
    driver, _items = committed(1, duplex=True)
    driver.send(CancelResponse())
    driver.model(UserTranscript(1, "late"), fence=driver.requests[0].fence)
    (entry,) = [entry for entry in driver.sent if isinstance(entry.event, ev.TranscriptionCompleted)]
    assert entry.epoch == 1


def test_transcripts_of_what_is_gone_are_dropped() -> None:
    driver, (item_id,) = committed(1)
    driver.send(AppendAudio(audio=tone(500, 0.5)), ClearAudio(), DeleteItem(item_id=item_id))
    first = len(driver.sent)
    fence = driver.machine.state.fence()
    driver.model(
        UserTranscript(1, "deleted"), UserTranscript(2, "cleared"), UserTranscript(9, "?"), fence=fence
    )
    assert driver.sent[first:] == []


def test_a_transcript_is_complete_once() -> None:
    driver, _items = committed(1)
    fence = driver.machine.state.fence()
    driver.model(
        UserTranscript(1, "one"), UserTranscript(1, "again"), UserTranscriptFailed(1, "no"), fence=fence
    )
    assert len(driver.of(ev.TranscriptionCompleted)) == 1
    assert driver.of(ev.TranscriptionFailed) == []


def test_one_failed_transcript_harms_no_other_turn() -> None:
    """Case I-12."""
    patch = vad()
    patch["audio"]["input"]["transcription"] = {"model": "any"}
    driver = Driver(patch)
    for turn in (1, 2, 3):
        driver.say(600, 0.9)
        driver.say(600, 0.0)
        spoken = UserTranscriptFailed(turn, "broken") if turn == 2 else UserTranscript(turn, f"turn {turn}")
        driver.model(spoken)
        driver.answer("yes", 100)
        driver.wait(1)
    assert [response.status for response in driver.done] == ["completed"] * 3
    assert [event.transcript for event in driver.of(ev.TranscriptionCompleted)] == ["turn 1", "turn 3"]
    assert len(driver.of(ev.TranscriptionFailed)) == 1


def test_utterances_that_nobody_transcribes_do_not_add_up() -> None:
    driver, _items = committed(_EXPECTED + 50, MANUAL)
    assert len(driver.machine._transcripts._utterances) == _EXPECTED


def test_a_model_that_does_not_transcribe_is_expected_to_send_none() -> None:
    deaf = Capabilities(interaction=Interaction.TURN, input_rate=24_000, transcribes=False)
    driver, _items = committed(1, capabilities=deaf)
    assert driver.model(UserTranscript(1, "ghost"), fence=driver.machine.state.fence()) == []
