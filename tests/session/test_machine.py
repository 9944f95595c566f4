"""The machine as a whole: what it ignores, replay of a recording."""

from __future__ import annotations

import pytest

from counterpoint.plugins.contract import (
    Failure,
    TurnEnd,
)
from counterpoint.protocol.commands import (
    AppendAudio,
    CancelResponse,
    CreateResponse,
    Heartbeat,
)
from counterpoint.session.effects import Effect, Emit, Reply
from counterpoint.session.inputs import (
    Attached,
    DeadlineReached,
    Detached,
    Input,
    ModelHeld,
)

from .driver import Driver, speak, tone, user_text, vad
from .states import idle, responding

# ---------------------------------------------------------------------- what the machine ignores


def test_late_news_is_harmless() -> None:
    driver = idle()
    for news in (
        DeadlineReached(),
        ModelHeld(False),
        Attached(False),
        Attached(True),
        Detached(),
        Detached(),
    ):
        assert driver.post(news) == []


# ---------------------------------------------------------------------- the life of ids and turns


def test_epoch_moves_by_one_with_each_interruption_and_keeps_the_turn() -> None:
    """Invariants 6, 7."""
    driver = Driver()
    seen = []
    for outcome in ("cancel", "complete", "cancel", "fail"):
        driver.ask()
        driver.model(speak("x ", 100))
        match outcome:
            case "cancel":
                driver.send(CancelResponse())
            case "complete":
                driver.model(TurnEnd())
            case _:
                driver.model(Failure())
        seen.append((driver.machine.epoch, driver.machine.state.turn_id))
    assert seen == [(1, 1), (1, 2), (2, 2), (2, 3)]


def test_event_ids_are_unique() -> None:
    driver = responding()
    driver.model(TurnEnd())
    ids = [effect.event_id for effect in driver.effects if isinstance(effect, Emit | Reply)]
    assert len(set(ids)) == len(ids)


# ---------------------------------------------------------------------- determinism


def test_a_recorded_session_gives_the_same_effects_again() -> None:
    """Design, "Determinism": the machine is a function of its inputs and their times."""
    recording: list[tuple[Input, float]] = []

    def record(driver: Driver) -> list[Effect]:
        receive = driver.machine.receive

        def recorded(news: Input, now: float) -> list[Effect]:
            recording.append((news, now))
            return receive(news, now)

        driver.machine.receive = recorded  # type: ignore[method-assign]
        driver.say(600, 0.9)
        driver.say(600, 0.0)
        driver.answer("hello there", 500)
        driver.send(user_text("typed"), CreateResponse(), CancelResponse())
        driver.update(instructions="new")
        driver.wait(10)
        return driver.effects

    expected = record(Driver(vad(), opened=False))
    again = Driver(vad(), opened=False)
    effects: list[Effect] = []
    for news, now in recording:
        for effect in again.machine.receive(news, now):
            effects.append(effect)
            if isinstance(effect, Emit) and effect.tag is not None:
                again.machine.accepted(effect.tag, now)
    assert effects == expected


def test_work_per_frame_is_constant() -> None:
    """Invariant 33: a frame of silence leads to one effect, be it frame 10 or frame 3000."""
    driver = Driver(vad())
    frame = AppendAudio(audio=tone(80, 0.0))
    assert {len(driver.send(frame)) for _ in range(3000)} == {1}


def test_commands_about_the_connection_never_come_here() -> None:
    driver = idle()
    with pytest.raises(AssertionError):
        driver.send(Heartbeat())
