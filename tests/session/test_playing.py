"""What clients say of playback: acknowledgements, truncation, clearing."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.plugins.contract import Capabilities, Interaction, TurnEnd
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckPlayback,
    CancelResponse,
    ClearOutput,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from counterpoint.protocol.items import Message, OutputAudio
from counterpoint.session.effects import CancelModel, Discard, TruncateModel

from .checks import check
from .driver import MANUAL, Driver, speak, user_text

WORDS = " ".join(f"word{number}" for number in range(1, 21))


def answered(ms: int = 3700, patch: dict[str, Any] | None = None) -> tuple[Driver, str]:
    """A session after a whole answer of 20 words; and its item."""
    driver = Driver(patch)
    driver.ask()
    driver.answer(WORDS, ms)
    return driver, driver.done[0].output[0].id


def truncate(driver: Driver, item_id: str, ms: int, content_index: int = 0) -> None:
    driver.send(TruncateItem(item_id=item_id, content_index=content_index, audio_end_ms=ms))


# ---------------------------------------------------------------------- truncation


@pytest.mark.parametrize("output", [{}, {"format": {"type": "audio/pcmu"}}], ids=["pcm", "pcmu"])
def test_truncation_in_the_order_of_case_f_01(output: dict[str, Any]) -> None:
    driver, item_id = answered(patch=MANUAL | {"audio": {**MANUAL["audio"], "output": output}})
    for ms in (3760, 3701, -1):
        truncate(driver, item_id, ms)
    truncate(driver, item_id, 1000, content_index=9)
    assert [error.param for error in driver.errors] == ["audio_end_ms"] * 3 + ["content_index"]
    assert driver.of(ev.ItemTruncated) == []
    for ms in (3700, 1500, 2000, 1500):
        truncate(driver, item_id, ms)
    assert [event.audio_end_ms for event in driver.of(ev.ItemTruncated)] == [3700, 1500, 1500]
    assert len(driver.errors) == 5


def test_truncation_really_truncates() -> None:
    """Case F-03."""
    driver, item_id = answered(4000)
    truncate(driver, item_id, 1000)
    driver.send(RetrieveItem(item_id=item_id))
    item = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(item, Message)
    part = item.content[0]
    assert isinstance(part, OutputAudio)
    assert len(part.audio or b"") == 48_000
    assert part.transcript is not None
    assert len(part.transcript.split()) <= 5
    (seen,) = driver.ask().history
    assert seen.text is not None
    assert part.transcript.startswith(seen.text.strip())
    assert driver.only(TruncateModel).samples == 24_000


def test_an_item_that_is_being_spoken_ends_its_response_first() -> None:
    driver = Driver()
    driver.ask()
    driver.model(speak(WORDS, 4000))
    item_id = driver.of(ev.OutputItemAdded)[0].item.id
    truncate(driver, item_id, 5000)
    assert driver.done == []
    truncate(driver, item_id, 1000)
    assert driver.done[0].status_details == ev.StatusDetails(type="cancelled", reason="client_cancelled")
    assert driver.types[-2:] == ["response.done", "conversation.item.truncated"]
    check(driver.sent)


def test_truncation_at_zero_before_the_first_frame() -> None:
    """Case F-02."""
    driver = Driver(eager=False)
    driver.ask()
    driver.model(speak("unheard ", 200))
    driver.hand_over(4)
    assert driver.types[-1] == "response.content_part.added"
    item_id = driver.of(ev.OutputItemAdded)[0].item.id
    truncate(driver, item_id, 0)
    driver.hand_over()
    assert driver.errors == []
    assert driver.of(ev.ItemTruncated)[0].audio_end_ms == 0
    assert driver.ask().history == ()
    check(driver.sent)


def test_items_without_spoken_answers_cannot_be_truncated() -> None:
    """Case F-10."""
    driver = Driver()
    driver.send(user_text("hi", "u"))
    driver.ask(output_modalities=("text",))
    driver.answer()
    for item_id in ("u", driver.done[0].output[0].id, "nope"):
        truncate(driver, item_id, 0)
    assert [error.param for error in driver.errors] == ["item_id"] * 3
    assert {error.code for error in driver.errors} == {ErrorCode.ITEM_TRUNCATE_INVALID_ITEM_ID}


# ---------------------------------------------------------------------- acknowledgements


def test_an_acknowledgement_is_answered_with_the_positions_in_force() -> None:
    driver, item_id = answered(2000)
    response_id = driver.done[0].id
    driver.send(AckPlayback(item_id=item_id, played_ms=700))
    driver.send(AckPlayback(response_id=response_id, played_ms=500))
    driver.send(AckPlayback(response_id=response_id, played_ms=9000))
    played = [event.playback.played_ms for event in driver.of(ev.PlaybackAcknowledged)]
    assert played == [700, 700, 2000]
    assert driver.of(ev.PlaybackAcknowledged)[-1].history_committed
    assert driver.machine.describe()["playback"]["played_ms"] == 2000


def test_acknowledgements_of_what_is_not_there_are_ignored() -> None:
    """Case F-07, invariant 117."""
    driver, item_id = answered()
    driver.send(
        AckPlayback(item_id="nope", played_ms=1),
        AckPlayback(response_id="nope", played_ms=1),
        AckPlayback(item_id=item_id, response_id="nope", played_ms=1),
        DeleteItem(item_id=item_id),
        AckPlayback(item_id=item_id, played_ms=1),
    )
    assert driver.of(ev.PlaybackAcknowledged) == []
    assert driver.errors == []


def test_the_history_holds_what_was_acknowledged() -> None:
    """CASE-INV-11."""
    driver, item_id = answered(4000, MANUAL | {"playback_commit_policy": "ack_only"})
    driver.wait(10)
    assert driver.ask().history == ()
    driver.model(TurnEnd())
    driver.send(AckPlayback(item_id=item_id, played_ms=2000))
    (seen,) = driver.ask().history
    assert 9 <= len((seen.text or "").split()) <= 10


def test_an_acknowledgement_that_truncates_ends_playback_there() -> None:
    driver, item_id = answered(4000)
    driver.send(AckPlayback(item_id=item_id, played_ms=1000, truncate=True))
    assert driver.types[-3:] == [
        "output_audio_buffer.cleared",
        "conversation.item.truncated",
        "playback.acknowledged",
    ]
    assert driver.of(ev.ItemTruncated)[0].audio_end_ms == 1000
    driver.send(AckPlayback(item_id=item_id, played_ms=3000))
    assert driver.of(ev.PlaybackAcknowledged)[-1].playback.played_ms == 1000


def test_a_client_that_truncates_what_an_interruption_has_cut_is_not_wrong() -> None:
    """Stock clients truncate, by their own clock, at ``speech_started``: when the server has done it already.

    What is in force is told again; only a place beyond what was ever sent is an error.
    """
    driver, item_id = answered(4000)
    driver.send(AckPlayback(item_id=item_id, played_ms=1000, truncate=True))
    for ms in (1030, 4000, 600, 4001):
        truncate(driver, item_id, ms)
    assert [event.audio_end_ms for event in driver.of(ev.ItemTruncated)] == [1000, 1000, 1000, 600]
    assert [error.param for error in driver.errors] == ["audio_end_ms"]


def test_what_comes_late_for_an_answer_leaves_the_next_one_alone() -> None:
    """A client's own turn-taking truncates and cancels when the next answer sounds already."""
    driver, item_id = answered(4000)
    driver.ask()
    driver.model(speak("next ", 2000))
    truncate(driver, item_id, 1000)
    driver.send(CancelResponse(response_id=driver.done[0].id))
    assert [(event.item_id, event.audio_end_ms) for event in driver.of(ev.ItemTruncated)] == [(item_id, 1000)]
    assert [error.code for error in driver.errors] == [ErrorCode.RESPONSE_CANCEL_NOT_ACTIVE]
    assert (driver.machine.epoch, len(driver.done)) == (0, 1)


# ---------------------------------------------------------------------- clearing


def test_clear_after_the_response_cuts_what_was_not_played() -> None:
    """Case E-04 (a), invariant 99."""
    driver, item_id = answered(8000)
    driver.send(AckPlayback(item_id=item_id, played_ms=1000))
    effects = driver.send(ClearOutput())
    assert driver.only(Discard, effects).items == frozenset()
    assert driver.types[-2:] == ["output_audio_buffer.cleared", "conversation.item.truncated"]
    assert driver.machine.epoch == 0
    driver.send(CreateResponse())
    assert driver.errors == []
    (seen,) = driver.requests[-1].history
    assert len((seen.text or "").split()) == 2


def test_clear_during_the_response_ends_it_and_its_epoch() -> None:
    driver = Driver()
    driver.ask()
    driver.model(speak(WORDS, 4000))
    effects = driver.send(ClearOutput())
    assert driver.only(CancelModel, effects).new.epoch == 1
    cleared = driver.of(ev.OutputCleared)
    assert [event.response_id for event in cleared] == [driver.done[0].id]
    assert driver.done[0].status_details == ev.StatusDetails(type="cancelled", reason="client_cancelled")
    check(driver.sent)


def test_clear_of_another_response_leaves_the_active_one() -> None:
    driver, _item_id = answered(8000)
    driver.ask()
    driver.model(speak("next ", 200))
    driver.send(ClearOutput(response_id=driver.done[0].id))
    assert [event.response_id for event in driver.of(ev.OutputCleared)] == [driver.done[0].id]
    assert (driver.machine.epoch, len(driver.done)) == (0, 1)


def test_clear_of_an_out_of_band_response_ends_that_one() -> None:
    driver = Driver()
    driver.ask(out_of_band=True)
    driver.model(speak("aside ", 2000))
    response_id = driver.of(ev.ResponseCreated)[0].response.id
    driver.send(ClearOutput(response_id=response_id))
    assert [(response.id, response.status) for response in driver.done] == [(response_id, "cancelled")]
    assert driver.machine.epoch == 0


def test_clear_when_all_was_heard_or_nothing_is_known_does_nothing() -> None:
    driver, _item_id = answered(500)
    driver.wait(2)
    driver.send(ClearOutput(), ClearOutput(response_id="nope"), ClearOutput(response_id=driver.done[0].id))
    assert driver.of(ev.OutputCleared) == []
    assert driver.errors == []


def test_a_model_that_cannot_forget_refuses_truncation() -> None:
    """Case I-08; a turn-based model is told the history and needs no such ability."""
    for interaction, refused in ((Interaction.REMOTE, True), (Interaction.TURN, False)):
        capabilities = Capabilities(interaction=interaction, input_rate=24_000, truncate=False)
        driver = Driver(capabilities=capabilities)
        assert driver.machine.describe()["capabilities"]["supports_audio_truncate"] is not refused
        driver.ask()
        driver.answer(WORDS, 1000)
        truncate(driver, driver.done[0].output[0].id, 500)
        assert [error.code for error in driver.errors] == [ErrorCode.UNSUPPORTED] * refused
