"""False interruptions: noise that cut an answer short does not keep it short."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.plugins.contract import (
    Capabilities,
    Interaction,
    TurnEnd,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import AckPlayback, AppendText, CreateResponse
from counterpoint.session.effects import Emit, Forget, Push

from .checks import check
from .driver import Driver, ramp, speak, vad

WORDS = "one two three four five six seven eight nine ten "


def interrupted(ms: int = 400, *, ended: bool = False, **options: Any) -> Driver:
    """An answer of 4 s, interrupted after 1 s by a sound of ``ms`` that is over."""
    driver = Driver(vad(false_interruption_ms=800), **options)
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.model(speak(WORDS, 4000))
    if ended:
        driver.model(TurnEnd())
    driver.wait(0.9)
    driver.say(ms, 0.9)
    driver.say(600, 0.0)
    return driver


def hear(driver: Driver, text: str, input: int = 2) -> None:
    driver.model(UserTranscript(input, text), fence=driver.machine.state.fence())


def continuation(driver: Driver) -> Emit:
    (entry,) = [
        entry
        for entry in driver.sent
        if isinstance(entry.event, ev.ResponseCreated)
        and entry.duplex
        and isinstance(entry.duplex.continues, str)
    ]
    return entry


@pytest.mark.parametrize("words", ["", "  ", "mm-hmm", "Yeah."])
@pytest.mark.parametrize("ended", [False, True], ids=["generating", "playing"])
def test_noise_and_acknowledgements_are_taken_back(words: str, ended: bool) -> None:
    """Wire, section 6: no item, and a new response with what had not been heard."""
    driver = interrupted(ended=ended)
    assert len(driver.of(ev.SpeechStopped)) == 2
    assert len(driver.of(ev.InputCommitted)) == 1
    hear(driver, words)
    assert len(driver.of(ev.InputCommitted)) == 1
    assert driver.only(Forget).input == 2
    assert len(driver.requests) == 1, "the model is not asked again"
    first, second = driver.done
    entry = continuation(driver)
    assert entry.duplex is not None
    assert entry.duplex.continues == first.id
    assert (second.status, second.output[0].status.value) == ("completed", "completed")
    again = driver.audio_of(second.output[0].id)
    heard = len(ramp(4000)) - len(again)
    assert again == ramp(4000)[heard:]
    assert heard / 48 == pytest.approx(1000, abs=150)
    check(driver.sent)


def test_history_has_every_word_once_when_the_rest_was_heard() -> None:
    driver = interrupted()
    hear(driver, "")
    driver.wait(5)
    driver.ask()
    said = "".join(text or "" for role, text in driver.history() if role == "assistant")
    assert said == WORDS


def test_words_make_a_turn() -> None:
    driver = interrupted()
    hear(driver, "wait a moment")
    assert len(driver.of(ev.InputCommitted)) == 2
    assert len(driver.requests) == 2
    assert driver.history()[-1] == ("user", "wait a moment")
    check(driver.sent)


def test_longer_speech_is_not_doubted() -> None:
    driver = interrupted(1000)
    assert len(driver.of(ev.InputCommitted)) == 2


def test_speech_that_interrupted_nothing_is_not_doubted() -> None:
    driver = Driver(vad(false_interruption_ms=800))
    driver.say(400, 0.9)
    driver.say(600, 0.0)
    assert len(driver.of(ev.InputCommitted)) == 1


def test_pending_text_makes_it_a_turn() -> None:
    driver = Driver(vad(false_interruption_ms=800))
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.model(speak(WORDS, 4000))
    driver.send(AppendText(text="look"))
    driver.say(300, 0.9)
    driver.say(600, 0.0)
    assert len(driver.of(ev.InputCommitted)) == 2


def test_off_by_default() -> None:
    driver = Driver(vad())
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.model(speak(WORDS, 4000))
    driver.say(300, 0.9)
    driver.say(600, 0.0)
    assert len(driver.of(ev.InputCommitted)) == 2


def test_the_words_are_asked_for_whether_the_client_wants_them_or_not() -> None:
    driver = interrupted()
    final = [effect.step for effect in driver.effects if isinstance(effect, Push) and effect.step.final]
    assert [step.transcribe for step in final] == [False, True]
    hear(driver, "wait a moment")
    assert not any("transcription" in name for name in driver.types)


@pytest.mark.parametrize("how", ["late", "failed", "speech goes on"])
def test_without_a_verdict_it_is_a_turn(how: str) -> None:
    driver = interrupted()
    match how:
        case "late":
            driver.wait(2.1)
        case "failed":
            driver.model(UserTranscriptFailed(2, "?"), fence=driver.machine.state.fence())
        case _:
            driver.say(300, 0.9)
    assert len(driver.of(ev.InputCommitted)) == 2
    hear(driver, "")
    assert len(driver.done) == (2 if how == "speech goes on" else 1)
    check(driver.sent)


def test_a_model_that_does_not_transcribe_leaves_it_to_the_length() -> None:
    deaf = Capabilities(interaction=Interaction.TURN, input_rate=24_000, transcribes=False)
    driver = interrupted(capabilities=deaf)
    assert len(driver.of(ev.InputCommitted)) == 1
    continuation(driver)


def test_an_answer_that_was_started_meanwhile_is_not_disturbed() -> None:
    driver = interrupted()
    driver.send(CreateResponse())
    hear(driver, "")
    assert len(driver.requests) == 2
    assert len(driver.done) == 1


def test_an_answer_that_was_heard_whole_is_not_said_again() -> None:
    driver = Driver(vad(false_interruption_ms=800))
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.answer(WORDS, 1000)
    driver.send(AckPlayback(item_id=driver.done[0].output[0].id, played_ms=1000))
    driver.say(300, 0.9)
    driver.say(600, 0.0)
    assert len(driver.of(ev.InputCommitted)) == 2


def test_what_is_said_again_can_be_interrupted_like_any_answer() -> None:
    driver = interrupted()
    driver.eager = False
    hear(driver, "")
    driver.hand_over(6)
    driver.say(1200, 0.9)
    driver.hand_over()
    assert [response.status for response in driver.done] == ["cancelled", "cancelled"]
    check(driver.sent)
