"""Slots: counted by id, so that no race can lose or double one (invariants 137, 139, 140)."""

import pytest

from counterpoint.errors import AdmissionRefused
from counterpoint.plugins.contract import Capabilities, Interaction, PluginLoad
from counterpoint.runtime.slots import Slots, check_step_time


def test_a_full_server_refuses_with_a_hint_when_to_retry() -> None:
    slots = Slots(2)
    slots.take("a")
    slots.take("b")
    with pytest.raises(AdmissionRefused) as refused:
        slots.take("c")
    assert refused.value.retry_after_ms > 0
    assert slots.used == 2


def test_a_closing_session_keeps_its_slot_until_it_is_freed() -> None:
    slots = Slots(1)
    slots.take("a")
    slots.close("a")
    assert (slots.used, slots.closing) == (1, 1)
    with pytest.raises(AdmissionRefused):
        slots.take("b")
    slots.free("a")
    assert (slots.used, slots.closing) == (0, 0)
    slots.take("b")


def test_an_id_that_exists_is_refused_and_keeps_its_slot() -> None:
    slots = Slots(3)
    slots.take("a")
    with pytest.raises(AdmissionRefused):
        slots.take("a")
    assert slots.used == 1


def test_freeing_twice_or_what_never_was_changes_nothing() -> None:
    slots = Slots(2)
    slots.take("a")
    slots.free("a")
    slots.free("a")
    slots.close("b")
    slots.free("b")
    assert (slots.used, slots.closing) == (0, 0)


def test_zero_is_no_limit() -> None:
    slots = Slots(0)
    for number in range(1000):
        slots.take(str(number))
    assert slots.used == 1000


def test_steps_that_take_most_of_their_time_admit_nobody_else() -> None:
    frames = Capabilities(Interaction.FRAME, input_rate=24_000, step_samples=1920)  # 80 ms
    check_step_time(PluginLoad(p95_step_ms=56.0), frames)
    check_step_time(PluginLoad(p95_step_ms=None), frames)
    with pytest.raises(AdmissionRefused) as refused:
        check_step_time(PluginLoad(p95_step_ms=56.1), frames)
    assert refused.value.retry_after_ms > 0


def test_a_model_of_turns_has_no_step_time() -> None:
    check_step_time(PluginLoad(p95_step_ms=1e6), Capabilities(Interaction.TURN))
