"""The machine as a whole: what it ignores, random sessions, replay of a recording."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    ItemEnd,
    ModelEvent,
    TextDelta,
    ToolCall,
    TurnEnd,
    UserTranscript,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import (
    AckPlayback,
    AppendAudio,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearAudio,
    ClearOutput,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Heartbeat,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from counterpoint.protocol.response_options import ResponseOptions
from counterpoint.session.effects import Effect, Emit, Reply
from counterpoint.session.inputs import (
    Attached,
    CloseRequested,
    DeadlineReached,
    Detached,
    Input,
    ModelHeld,
)

from .checks import check
from .driver import MANUAL, Driver, ramp, speak, tone, user_text, vad
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


# ---------------------------------------------------------------------- random sessions


class RandomSession:
    """Anything at any time; what a client gets must make sense all the same."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        patch = self.rng.choice(
            [
                MANUAL,
                vad(idle_timeout_ms=2000),
                vad(interrupt_response=False),
                vad(false_interruption_ms=900),
                vad() | {"overlap_policy": "graded"},
            ]
        )
        self.driver = Driver(patch, duplex=self.rng.random() < 0.7, eager=self.rng.random() < 0.3)
        self.said = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.rng.choice((self.client, self.client, self.model, self.model, self.transport, self.time))()
        self.finish()

    def client(self) -> None:
        driver, rng = self.driver, self.rng
        items = [event.item.id for event in driver.of(ev.ItemAdded)] or ["nope"]
        responses = [event.response.id for event in driver.of(ev.ResponseCreated)] or ["nope"]
        commands: list[Callable[[], Command]] = [
            lambda: AppendAudio(audio=tone(rng.choice((20, 100, 300)), rng.choice((0.0, 0.9)))),
            lambda: AppendAudio(audio=tone(600, rng.choice((0.0, 0.9)))),
            CommitAudio,
            ClearAudio,
            CancelInput,
            lambda: user_text("hello"),
            lambda: CreateItem(item=user_text("mid").item, previous_item_id=rng.choice(items)),
            lambda: DeleteItem(item_id=rng.choice(items)),
            lambda: RetrieveItem(item_id=rng.choice(items)),
            lambda: TruncateItem(item_id=rng.choice(items), content_index=0, audio_end_ms=rng.randrange(900)),
            CreateResponse,
            CreateResponse,
            lambda: CreateResponse(options=ResponseOptions(out_of_band=True)),
            CancelResponse,
            lambda: CancelResponse(response_id=rng.choice(responses)),
            BargeIn,
            ClearOutput,
            lambda: ClearOutput(response_id=rng.choice(responses)),
            lambda: AckPlayback(item_id=rng.choice(items), played_ms=rng.randrange(2000)),
            lambda: UpdateSession(patch=rng.choice((MANUAL, vad(), {"instructions": "x"}))),
        ]
        driver.send(rng.choice(commands)())

    def model(self) -> None:
        if not self.driver.requests:
            return
        outputs: list[Callable[[], ModelEvent]] = [
            lambda: AudioDelta(ramp(self.rng.choice((20, 200)), self.said), "word "),
            lambda: TextDelta("text "),
            ItemEnd,
            lambda: ToolCall(self.rng.randrange(2), "f", "{", final=self.rng.random() < 0.5),
            TurnEnd,
            TurnEnd,
            Failure,
            lambda: UserTranscript(self.rng.randrange(1, 9), self.rng.choice(("said", ""))),
        ]
        fence = self.rng.choice(self.driver.requests[-3:]).fence
        self.driver.model(self.rng.choice(outputs)(), fence=fence)

    def transport(self) -> None:
        self.driver.hand_over(self.rng.choice((1, 3, 10, None)))

    def time(self) -> None:
        self.driver.wait(self.rng.choice((0.05, 0.5, 3.0)))
        if self.rng.random() < 0.2:
            self.driver.post(self.rng.choice((Detached(), Attached(True))))

    def finish(self) -> None:
        driver = self.driver
        driver.hand_over()
        check(driver.sent)
        driver.send(ClearAudio())
        assert driver.machine.held_input_bytes == 0
        driver.post(CloseRequested("client_closed"))
        driver.clean_up()
        driver.hand_over()
        check(driver.sent)
        assert len(driver.of(ev.ResponseCreated)) == len(driver.done), "CASE-INV-2"
        assert driver.types[-1] == "session.closed"
        assert len(driver.of(ev.SessionClosed)) == 1


@pytest.mark.parametrize("seed", range(150))
def test_random_sessions_make_sense_to_their_client(seed: int) -> None:
    RandomSession(seed).run(120)


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
