"""Input of stepped models: units, step numbers, silence (invariants 34, 62-66, 68-71)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.audio.resample import StreamingResampler
from counterpoint.plugins.contract import Capabilities, Fence, Interaction, StepDone, StepInput, StepKind
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.commands import AppendAudio, ClearAudio, CommitAudio
from counterpoint.session.effects import Push
from counterpoint.session.inputs import Attached, DeadlineReached, Detached, StageOutput
from counterpoint.session.steps import JITTER_S

from .driver import Driver, ramp, tone, vad

#: 80 ms units, at another rate than the session's.
FRAME = Capabilities(Interaction.FRAME, input_rate=16_000, step_samples=1280, images=True)
#: 100 ms units, at the session's rate.
PLAIN = Capabilities(Interaction.FRAME, input_rate=SESSION_RATE, step_samples=2400)
PERIOD = 0.1


def steps(driver: Driver) -> list[StepInput]:
    return [effect.step for effect in driver.effects if isinstance(effect, Push)]


def silent(driver: Driver) -> list[StepInput]:
    return [step for step in steps(driver) if step.kind is StepKind.SILENCE]


def receive(driver: Driver, step: int) -> None:
    driver.post(StageOutput(Fence("sess_test", 0), StepDone(step)))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_units_are_the_input_at_the_models_rate_however_it_was_cut(pieces_ms: list[int]) -> None:
    """(invariants 34, 37)"""
    driver = Driver(capabilities=FRAME)
    pcm = ramp(sum(pieces_ms))
    at = 0
    for ms in pieces_ms:
        driver.send(AppendAudio(audio=pcm[at : at + ms * 48]))
        at += ms * 48
    units = steps(driver)
    assert all(len(step.audio) == 2560 and step.real_samples == 1280 for step in units)
    assert [step.step for step in units] == list(range(1, len(units) + 1))
    resampler = StreamingResampler(SESSION_RATE, 16_000)
    whole = resampler.process(pcm)
    assert b"".join(step.audio for step in units) == whole[: len(whole) // 2560 * 2560]


def test_a_detector_changes_nothing_of_what_the_model_hears() -> None:
    heard = []
    for patch in ({"audio": {"input": {"turn_detection": None}}}, vad()):
        driver = Driver(patch, capabilities=PLAIN)
        driver.say(500, 0.01)
        driver.say(1000, 0.9)
        driver.say(1500, 0.01)
        heard.append([step.audio for step in steps(driver)])
    assert heard[0] == heard[1]
    assert len(heard[0]) == 30


def test_a_late_append_is_not_silence() -> None:
    driver = Driver(capabilities=PLAIN)
    driver.send(AppendAudio(audio=tone(100, 0.9)))
    driver.wait(0.1 + JITTER_S - 0.001)
    assert not silent(driver)
    driver.send(AppendAudio(audio=tone(100, 0.9)))
    driver.wait(0.1 + JITTER_S - 0.001)
    assert not silent(driver)


def test_a_client_that_sends_long_pieces_is_not_silent_between_them() -> None:
    driver = Driver(capabilities=PLAIN)
    for _ in range(5):
        driver.send(AppendAudio(audio=tone(1000, 0.9)))
        driver.wait(1.0)
    assert not silent(driver)
    assert len(steps(driver)) == 50


def test_silence_follows_on_a_chain_that_does_not_drift() -> None:
    """(invariants 62, 70)"""
    driver = Driver(capabilities=PLAIN)
    first = driver.now + JITTER_S
    for k in range(200):
        deadline = driver.machine.next_deadline()
        assert deadline is not None
        assert deadline == pytest.approx(first + k * PERIOD, abs=1e-9)
        driver.now = deadline + (k % 7) * 0.01  # woken late
        driver.post(DeadlineReached())
        receive(driver, k + 1)
    assert len(silent(driver)) == 200
    assert all(step.audio == bytes(4800) and step.real_samples == 0 for step in silent(driver))


def test_more_than_a_period_late_one_unit_makes_up_for_all() -> None:
    """(invariant 63)"""
    driver = Driver(capabilities=PLAIN)
    driver.now += JITTER_S + 5 * PERIOD
    driver.post(DeadlineReached())
    assert len(silent(driver)) == 1
    assert driver.machine.next_deadline() == pytest.approx(driver.now + PERIOD)


def test_one_unit_of_silence_waits_at_most() -> None:
    """(invariant 66)"""
    driver = Driver(capabilities=PLAIN)
    driver.wait(5.0)
    assert len(silent(driver)) == 1
    receive(driver, 1)
    driver.wait(PERIOD)
    assert len(silent(driver)) == 2


def test_a_unit_that_was_begun_is_completed_with_silence() -> None:
    """(invariant 35)"""
    driver = Driver(capabilities=PLAIN)
    driver.send(AppendAudio(audio=tone(40, 0.9)))
    driver.wait(0.04 + JITTER_S)
    [step] = steps(driver)
    assert step.kind is StepKind.USER
    assert step.audio == tone(40, 0.9) + bytes(60 * 48)
    assert step.real_samples == 960


def test_an_append_ends_the_silence() -> None:
    """(invariant 64)"""
    driver = Driver(capabilities=PLAIN)
    driver.wait(JITTER_S)
    assert len(silent(driver)) == 1
    receive(driver, 1)
    driver.say(1000, 0.9, cut_ms=20)
    assert len(silent(driver)) == 1
    assert [step.step for step in steps(driver)] == list(range(1, 12))


def test_a_session_without_a_client_stands_still() -> None:
    """(invariant 68)"""
    driver = Driver(capabilities=PLAIN)
    driver.post(Detached())
    driver.wait(10.0)
    assert not steps(driver)
    driver.post(Attached(True))
    driver.wait(JITTER_S - 0.01)
    assert not steps(driver)
    driver.wait(0.01)
    assert len(silent(driver)) == 1


def test_nothing_is_stepped_before_the_model_is_open() -> None:
    driver = Driver(capabilities=PLAIN, opened=False)
    driver.wait(10.0)
    assert not steps(driver)


def test_a_clear_drops_the_unit_that_is_not_whole() -> None:
    driver = Driver(capabilities=PLAIN)
    driver.send(AppendAudio(audio=tone(50, 0.9)), ClearAudio(), AppendAudio(audio=tone(100, 0.5)))
    assert [step.audio for step in steps(driver)] == [tone(100, 0.5)]


def test_images_go_with_the_unit_that_their_append_completes() -> None:
    """(invariant 41)"""
    driver = Driver(capabilities=FRAME)
    driver.send(
        AppendAudio(audio=tone(40, 0.9), video_frames=("data:image/png;base64,aa",)),
        AppendAudio(audio=tone(400, 0.9)),
    )
    assert [step.images for step in steps(driver)][:2] == [("data:image/png;base64,aa",), ()]


def test_a_session_of_hours_keeps_only_the_newest_for_a_commit() -> None:
    driver = Driver(capabilities=PLAIN)
    for _ in range(40):
        driver.send(AppendAudio(audio=tone(1000, 0.9)))
    assert driver.machine.held_input_bytes == 30 * SESSION_RATE * 2
    assert not driver.errors
    driver.send(CommitAudio())
    assert driver.machine.held_input_bytes == 0
    assert not driver.requests, "the model decides when to speak"
    assert "conversation.item.added" in driver.types
