"""Random interleavings of everything that can happen to a session (CASE-INV-1 to 11, as far as a machine can
break them).

Every command and every output of a model, turn-based or native, at any time, of anything: stale, twice,
unknown. What holds of slots, tasks and connections at the end (CASE-INV-9) is shown by the simulator;
here, that a session which ended holds nothing and asks for nothing any more.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import ClearAudio, Command, CreateItem
from counterpoint.session.commands import Commands
from counterpoint.session.effects import CloseModel, Discard, Effect, Emit, EndSession, Reply
from counterpoint.session.inputs import (
    Attached,
    CleanedUp,
    CloseRequested,
    CommandReceived,
    CommandRefused,
    Detached,
    Input,
    TurnChecked,
)
from counterpoint.session.playback import PlaybackLedger
from counterpoint.session.responses import Responses
from counterpoint.testing.invariants.violation import Violation

from .checks import check
from .driver import MANUAL, TURN_MODEL, Driver, vad
from .listener import Listener
from .random_commands import RandomCommands
from .random_model import RandomModel

NATIVE = Capabilities(
    Interaction.FRAME,
    input_rate=SESSION_RATE,
    step_samples=1920,
    tools=True,
    images=True,
    voices=("default", "alto"),
)
MODELS = (
    TURN_MODEL,
    NATIVE,
    Capabilities(Interaction.UNIT, input_rate=16_000, step_samples=16_000, truncate=False, text_input=False),
    Capabilities(Interaction.TURN, text_alignment="proportional", barge_in=False, transcribes=False),
)
SEMANTIC: dict[str, Any] = {
    "audio": {"input": {"turn_detection": {"type": "semantic_vad", "detector": "amp"}}}
}
CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    MANUAL,
    vad(idle_timeout_ms=2000),
    vad(interrupt_response=False),
    vad(create_response=False),
    vad(false_interruption_ms=900),
    vad() | {"overlap_policy": "graded"},
    vad() | {"overlap_policy": "barge_in_on_speech"},
    SEMANTIC,
)
LIMITS = (
    Limits(),
    Limits(
        response_timeout_s=2.0,
        max_response_s=1.0,
        max_session_s=60.0,
        max_turn_s=3.0,
        max_pending_turns=2,
        max_pending_input_bytes=100_000,
    ),
)
STEPS = 250


class Interleaving:
    """One session; the seed decides all that happens to it."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        capabilities, patch = rng.choice(MODELS), dict(rng.choice(CONFIGURATIONS))
        policy = rng.choice(("ack_only", "ack_only", "commit_all_on_done", "auto"))
        self.driver = Driver(
            patch | {"playback_commit_policy": policy},
            capabilities=capabilities,
            limits=rng.choice(LIMITS),
            duplex=rng.random() < 0.7,
            turn_model=rng.random() < 0.7,
            eager=rng.random() < 0.3,
            detects=rng.random() < 0.5,
            opened=False,
        )
        self.model = RandomModel(rng, native=capabilities.interaction.native)
        self.listener = Listener(self.driver, acknowledges=policy == "ack_only", turns=self.model.turns)
        self.commands = RandomCommands(rng, self.listener)
        self.heard = 0

    def run(self, steps: int = STEPS) -> int:
        """Returns how many steps were made: a session may end before."""
        often = {self.say: 5, self.be_model: 6, self.hand_over: 3, self.detect: 2, self.pass_time: 1}
        kinds = [kind for kind, times in often.items() for _ in range(times)]
        made = 0
        while made < steps and self.end is None:
            self.rng.choice(kinds)()
            self.perceive()
            made += 1
        self.finish()
        return made

    # ------------------------------------------------------------------ steps

    def post(self, news: Input) -> None:
        self.driver.post(news)

    def perceive(self) -> None:
        """Model and client take in what the step led to."""
        self.listener.listen()
        for effect in self.driver.effects[self.heard :]:
            self.model.hears(effect)
        self.heard = len(self.driver.effects)

    def say(self) -> None:
        if not self.attached:
            return self.post(Attached(extended=True))
        command, event_id, lasting = self.commands.next()
        if isinstance(command, ProtocolError):
            self.listener.says(event_id, "refused", lasting=lasting)
            return self.post(CommandRefused(command, command.client_event_seq))
        self.listener.says(event_id, type(command).__name__, command, lasting=lasting)
        return self.post(CommandReceived(command, extended=True, cost=len(getattr(command, "audio", b""))))

    def be_model(self) -> None:
        """Also once the session closes: nobody can stop a model from talking."""
        if not self.driver.machine.is_open and self.rng.random() < 0.3:
            return self.post(CleanedUp(ok=self.rng.random() < 0.8))
        news = self.model.next(self.driver.machine.epoch)
        if news is not None:
            self.post(news)
        return None

    def hand_over(self) -> None:
        if self.attached:
            self.driver.hand_over(self.rng.choice((1, 3, 10, None)))

    def detect(self) -> None:
        """Of speech in time, late, or when it was asked already; of a turn, also when nobody asked."""
        if self.driver.chunks:
            self.driver.detect()
        elif self.driver.checks:
            check = self.rng.choice((self.driver.checks[0].check, self.driver.checks.popleft().check, 99))
            self.post(TurnChecked(check, self.rng.random()))

    def pass_time(self) -> None:
        self.driver.wait(self.rng.choice((0.02, 0.1, 0.5, 3.0)))
        if self.rng.random() < 0.1:
            self.post(Detached())
        if self.rng.random() < 0.01:
            self.post(CloseRequested("admin"))

    @property
    def attached(self) -> bool:
        return self.driver.machine.state.attached

    @property
    def end(self) -> EndSession | None:
        return next(
            (effect for effect in reversed(self.driver.effects) if isinstance(effect, EndSession)), None
        )

    # ------------------------------------------------------------------ the end

    def finish(self) -> None:
        driver = self.driver
        self.post(Attached(extended=True))
        while driver.chunks:
            driver.detect()
        if driver.machine.is_open:
            driver.hand_over()
            self.post(CommandReceived(ClearAudio(), extended=True))
            assert driver.machine.held_input_bytes == 0, "invariant 143"
        self.post(CloseRequested("admin"))
        self.post(CleanedUp(ok=True))
        driver.hand_over()
        self.listener.listen()
        self.listener.finish()
        self.is_over()
        check(driver.sent)

    def is_over(self) -> None:
        """CASE-INV-9, invariants 32, 124 and 143: one end, after which nothing is held, asked for or due."""
        driver, machine = self.driver, self.driver.machine
        closing = next(i for i, effect in enumerate(driver.effects) if isinstance(effect, CloseModel))
        late = driver.effects[closing + 1 :]
        assert all(isinstance(effect, Emit | Reply | Discard | EndSession) for effect in late)
        assert driver.types[-1] in ("session.closed", "session.expired")
        assert len(driver.of(ev.SessionClosed)) + len(driver.of(ev.SessionExpired)) == 1
        assert not driver.pending
        assert (machine.held_input_bytes, machine.busy, machine.next_deadline()) == (0, False, None)
        assert [type(effect) for effect in late].count(EndSession) == 1


@pytest.mark.parametrize("seed", range(100))
def test_whatever_happens_makes_sense_to_the_client(seed: int) -> None:
    Interleaving(seed).run()


def uncut_history(patch: pytest.MonkeyPatch) -> None:
    """A model is given its answers as it gave them, heard or not."""
    patch.setattr(PlaybackLedger, "heard", lambda self, item_id, now: None)


def output_of_no_fence(patch: pytest.MonkeyPatch) -> None:
    """What a cancelled answer still says is said in the one after it."""
    patch.setattr(Responses, "fresh", lambda self, fence: self.active)


def nothing_discarded(patch: pytest.MonkeyPatch) -> None:
    """An interruption leaves in line what was not handed over."""
    patch.setattr(Driver, "_perform", _perform_all_but(Discard, Driver._perform))


def refused_and_done(patch: pytest.MonkeyPatch) -> None:
    """A command has its effect, and an error too."""
    apply = Commands.apply

    def apply_and_refuse(self: Commands, command: Command, *, extended: bool) -> None:
        apply(self, command, extended=extended)
        if isinstance(command, CreateItem):
            raise ProtocolError(ErrorCode.UNSUPPORTED, "changed my mind")

    patch.setattr(Commands, "apply", apply_and_refuse)


def _perform_all_but(kind: type[Effect], perform: Callable[[Driver, Effect], None]) -> Any:
    def selective(driver: Driver, effect: Effect) -> None:
        if not isinstance(effect, kind):
            perform(driver, effect)

    return selective


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (uncut_history, "CASE-INV-11"),
        (output_of_no_fence, "CASE-INV-6"),
        (nothing_discarded, "CASE-INV-2|older epoch"),
        (refused_and_done, "CASE-INV-7"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_machine_with_a_fault_is_found_out(
    fault: Callable[[pytest.MonkeyPatch], None], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that finds nothing may be blind."""
    fault(monkeypatch)
    with pytest.raises(Violation, match=rule):
        search(seeds=100)


def search(seeds: int) -> None:
    for seed in range(seeds):
        with contextlib.suppress(AssertionError):  # of the machine's own, or of the end of a run
            Interleaving(seed).run()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_steps_make_sense_to_the_client() -> None:
    made, seed = 0, 1000
    while made < 100_000:
        made += Interleaving(seed).run()
        seed += 1
