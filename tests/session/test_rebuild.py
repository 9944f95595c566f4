"""A model side that is lost is replaced (invariant 79)."""

from __future__ import annotations

from counterpoint.plugins.contract import AudioDelta, Failure, Fence, Scope, StepInput, StepKind, TurnEnd
from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import AppendAudio
from counterpoint.session.effects import CloseModel, Effect, Push, ReopenModel
from counterpoint.session.inputs import ModelOpened, ModelOpenFailed, StageOutput

from .driver import TURN_MODEL, Driver, ramp, tone, user_text
from .test_native import native, says

LOST = Failure(scope=Scope.SESSION)


def reopened(effects: list[Effect]) -> list[StepInput]:
    """The steps for the new model side."""
    kinds = [type(effect) for effect in effects]
    after = effects[kinds.index(ReopenModel) + 1 :]
    return [effect.step for effect in after if isinstance(effect, Push)]


def lose(driver: Driver, epoch: int = 0) -> list[Effect]:
    return driver.post(StageOutput(Fence("sess_test", epoch), LOST))


def test_the_answer_fails_and_the_conversation_goes_on() -> None:
    driver = native()
    says(driver, AudioDelta(ramp(80), "one"))
    lose(driver)
    [failed] = driver.done
    assert failed.status == "failed"
    assert driver.machine.epoch == 1
    assert driver.machine.is_open
    assert not driver.errors
    driver.post(ModelOpened())
    says(driver, AudioDelta(ramp(80), "late"), epoch=0)
    says(driver, AudioDelta(ramp(80), "two"), TurnEnd(), epoch=1)
    assert [response.status for response in driver.done] == ["failed", "completed"]


def test_the_new_model_is_told_what_was_said_before_it_hears_anything() -> None:
    driver = native()
    driver.send(user_text("who are you"))
    says(driver, AudioDelta(ramp(400), "your friend"), TurnEnd())
    driver.wait(1.0)
    effects = lose(driver)
    effects += driver.send(AppendAudio(audio=tone(80, 0.9)))
    told, heard = reopened(effects)
    assert told.kind is StepKind.PREFILL
    assert told.text == "user: who are you\nassistant: your friend"
    assert heard.kind is StepKind.USER
    assert heard.fence == Fence("sess_test", 1)


def test_nothing_is_silent_for_a_model_that_is_not_there() -> None:
    driver = native()
    lose(driver)
    assert not [effect for effect in driver.wait(10.0) if isinstance(effect, Push)]
    driver.post(ModelOpened())
    assert [effect for effect in driver.wait(1.0) if isinstance(effect, Push)]


def test_a_loss_between_answers_ends_none() -> None:
    driver = native()
    lose(driver)
    assert not driver.of(ev.ResponseDone)
    assert driver.machine.epoch == 1


def test_the_old_model_is_lost_only_once() -> None:
    driver = native()
    lose(driver)
    driver.post(ModelOpened())
    assert not lose(driver, epoch=0)
    assert driver.machine.epoch == 1


def test_a_model_that_is_lost_again_and_again_ends_the_session() -> None:
    driver = native()
    for epoch in range(3):
        assert [effect for effect in lose(driver, epoch) if isinstance(effect, ReopenModel)]
        driver.post(ModelOpened())
    effects = lose(driver, epoch=3)
    assert [effect for effect in effects if isinstance(effect, CloseModel)]
    assert driver.clean_up().reason == "failed"


def test_losses_that_are_far_apart_are_survived() -> None:
    driver = native()
    for epoch in range(6):
        assert [effect for effect in lose(driver, epoch) if isinstance(effect, ReopenModel)]
        driver.post(ModelOpened())
        driver.wait(30.0)


def test_a_model_that_does_not_come_back_ends_the_session() -> None:
    driver = native()
    lose(driver)
    driver.post(ModelOpenFailed("gone"))
    assert [error.code for error in driver.errors] == ["session_open_failed"]
    assert driver.clean_up().reason == "failed"


def test_what_is_not_to_be_repeated_ends_the_session() -> None:
    driver = native()
    says(driver, Failure(scope=Scope.SESSION, retryable=False))
    assert driver.clean_up().reason == "failed"


def test_a_model_of_turns_needs_no_retelling() -> None:
    """Each of its answers is asked for with the whole history."""
    driver = Driver(capabilities=TURN_MODEL)
    assert reopened(lose(driver)) == []
    driver.post(ModelOpened())
    assert driver.machine.is_open
