"""What a model that decides for itself says (invariants 45-53, 59, 61; wire contract, section 5)."""

from __future__ import annotations

import pytest

from counterpoint.limits import Limits
from counterpoint.plugins.contract import (
    AudioDelta,
    Capabilities,
    Failure,
    Fence,
    Interaction,
    Listen,
    ModelEvent,
    StepDone,
    TextDelta,
    TurnEnd,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.commands import BargeIn, CancelResponse, CreateResponse
from counterpoint.protocol.response_options import ResponseOptions
from counterpoint.session.effects import AbortResponse, CancelModel, Prepare
from counterpoint.session.inputs import StageOutput

from .driver import MANUAL, Driver, ramp, user_text, vad

NATIVE = Capabilities(
    Interaction.FRAME, input_rate=SESSION_RATE, step_samples=1920, tools=True, truncate=False
)


def native(patch: dict[str, object] | None = None, **changes: object) -> Driver:
    return Driver(MANUAL if patch is None else patch, **({"capabilities": NATIVE} | changes))  # type: ignore[arg-type]


def says(driver: Driver, *events: ModelEvent, epoch: int = 0) -> None:
    for event in events:
        driver.post(StageOutput(Fence("sess_test", epoch), event))


def told(driver: Driver) -> list[str]:
    return [type_ for type_ in driver.types if type_.startswith("response.")]


def test_the_first_output_opens_a_response_and_the_end_of_turn_ends_it() -> None:
    """(invariant 49)"""
    driver = native()
    says(driver, AudioDelta(ramp(80), "good "), AudioDelta(ramp(80, 1920), "day"), TurnEnd())
    assert told(driver) == [
        "response.created",
        "response.speak",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    [done] = driver.done
    assert done.status == "completed"
    assert driver.audio_of(done.output[0].id) == ramp(160)
    assert not driver.requests, "nobody asked"


def test_each_turn_of_the_model_is_a_response_of_its_own() -> None:
    driver = native()
    for text in ("one", "two", "three"):
        says(driver, AudioDelta(ramp(80), text), TurnEnd())
    assert [response.status for response in driver.done] == ["completed"] * 3
    assert len({response.id for response in driver.done}) == 3


def test_listening_in_a_response_ends_it() -> None:
    driver = native()
    says(driver, AudioDelta(ramp(80), "hm"), Listen("turn_over"))
    [listen] = driver.of(ev.ResponseListen)
    assert (listen.response_id, listen.reason) == (driver.done[0].id, "turn_over")
    assert told(driver)[-1] == "response.done"


def test_listening_within_the_turn_is_no_event() -> None:
    """(invariant 45)"""
    driver = native()
    says(driver, AudioDelta(ramp(80), "well"), Listen(end_of_turn=False))
    before = len(driver.events)
    says(driver, Listen(end_of_turn=False))
    assert len(driver.events) == before
    says(driver, AudioDelta(ramp(80), " then"), TurnEnd())
    assert len(driver.done) == 1


def test_outside_a_response_listening_is_told_once() -> None:
    """(invariants 48, 58)"""
    driver = native()
    says(driver, *[Listen()] * 50, Listen("buffering"), Listen("buffering"))
    assert [(type(event.response_id), event.reason) for event in driver.of(ev.ResponseListen)] == [
        (type(ev.ResponseListen(reason="").response_id), "listen"),
        (type(ev.ResponseListen(reason="").response_id), "buffering"),
    ]
    says(driver, AudioDelta(ramp(80), "yes"), TurnEnd(), Listen(), Listen())
    assert len(driver.of(ev.ResponseListen)) == 3


def test_padding_opens_nothing() -> None:
    """(invariant 61)"""
    driver = native()
    before = len(driver.events)
    says(driver, TextDelta(""), AudioDelta(b""), TurnEnd(), StepDone(1))
    assert len(driver.events) == before


def test_the_next_turn_waits_until_the_response_before_it_is_handed_over() -> None:
    """(invariant 51)"""
    driver = native(eager=False)
    says(driver, AudioDelta(ramp(80), "one"), TurnEnd(), AudioDelta(ramp(80), "two"), TurnEnd())
    assert driver.machine.busy
    for _ in range(3):
        driver.hand_over()
    kinds = [type_ for type_ in driver.types if type_ in ("response.created", "response.done")]
    assert kinds == ["response.created", "response.done"] * 2
    assert [response.output[0].content[0].transcript for response in driver.done] == ["one", "two"]  # type: ignore[union-attr]


def test_a_client_that_takes_nothing_does_not_make_the_session_grow() -> None:
    driver = native(eager=False)
    says(driver, AudioDelta(ramp(80), "one"), TurnEnd())
    for step in range(2000):
        says(driver, AudioDelta(ramp(80), "x"), StepDone(step + 1))
    assert len(driver.machine._native._waiting) <= 1500  # type: ignore[union-attr]


def test_output_of_an_older_epoch_is_dropped() -> None:
    """(invariants 52, 90)"""
    driver = native()
    says(driver, AudioDelta(ramp(80), "one"))
    driver.send(CancelResponse())
    assert driver.done[0].status == "cancelled"
    assert driver.only(CancelModel).new == Fence("sess_test", 1)
    before = len(driver.events)
    says(driver, AudioDelta(ramp(80), "late"), TurnEnd())
    assert len(driver.events) == before
    says(driver, AudioDelta(ramp(80), "new"), TurnEnd(), epoch=1)
    assert [response.status for response in driver.done] == ["cancelled", "completed"]


def test_output_of_another_session_is_dropped_however_alike_their_ids_are() -> None:
    """(invariant 2)"""
    driver = native()
    for session_id in ("sess_tes", "sess_test2", "other"):
        assert driver.post(StageOutput(Fence(session_id, 0), AudioDelta(ramp(80), "ghost"))) == []
    assert not told(driver)


def test_what_waited_is_of_its_epoch_too() -> None:
    driver = native(eager=False)
    says(driver, AudioDelta(ramp(80), "one"), TurnEnd(), AudioDelta(ramp(80), "two"))
    driver.send(CancelResponse())
    driver.hand_over()
    driver.hand_over()
    assert [response.status for response in driver.done] == ["cancelled"]
    assert len(driver.of(ev.ResponseCreated)) == 1


def test_by_default_the_model_hears_the_user_and_nobody_interrupts_it() -> None:
    """Detection only informs (invariant 110; wire contract, sections 4 and 6)."""
    driver = native(vad(silence_duration_ms=200))
    says(driver, AudioDelta(ramp(80), "one"))
    driver.say(1000, 0.9)
    driver.say(1000, 0.01)
    says(driver, AudioDelta(ramp(80), "two"), TurnEnd())
    assert [type_ for type_ in driver.types if type_.startswith("input")] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
    ]
    assert [response.status for response in driver.done] == ["completed"]
    assert "conversation.item.added" not in driver.types[: driver.types.index("response.created")]
    assert not driver.requests
    assert not [effect for effect in driver.effects if isinstance(effect, Prepare)]


def test_the_overlap_policy_may_interrupt() -> None:
    """(invariants 92, 103)"""
    driver = native(vad() | {"overlap_policy": "barge_in_on_speech"})
    says(driver, AudioDelta(ramp(80), "one"))
    driver.say(400, 0.9)
    assert driver.done[0].status == "cancelled"
    assert driver.types.index("input_audio_buffer.speech_started") < driver.types.index("response.done")
    assert driver.machine.epoch == 1


@pytest.mark.parametrize("policy", ["listen_only", "graded"])
def test_the_other_policies_leave_it_to_the_model(policy: str) -> None:
    driver = native(vad() | {"overlap_policy": policy})
    says(driver, AudioDelta(ramp(80), "one"))
    driver.say(3000, 0.9)
    assert not driver.done
    assert {event.reason for event in driver.of(ev.OverlapDecision)} == {"model_decides"}


def test_the_client_interrupts_by_name() -> None:
    driver = native()
    says(driver, AudioDelta(ramp(80), "one"))
    driver.send(BargeIn())
    assert driver.done[0].status_details is not None
    assert driver.done[0].status == "cancelled"


def test_a_greeting_is_asked_for_and_keeps_its_fence() -> None:
    """(invariant 86)"""
    driver = native()
    driver.send(user_text("say hello"))
    request = driver.ask()
    says(driver, AudioDelta(ramp(80), "unasked"))  # of a step before the request: it waits
    driver.model(AudioDelta(ramp(80), "hello"), TurnEnd())
    assert [item.content[0].transcript for item in driver.done[0].output] == ["hello"]  # type: ignore[union-attr]
    assert request.history[-1].text == "say hello"
    assert told(driver)[:2] == ["response.created", "response.speak"]
    assert len(driver.of(ev.ResponseCreated)) == 2, "what waited is said after it"


def test_a_model_that_listens_when_it_is_asked_gives_an_empty_response() -> None:
    driver = native()
    driver.ask()
    driver.model(Listen())
    assert driver.done[0].output == ()
    assert driver.done[0].status == "completed"
    assert driver.of(ev.ResponseListen)[0].response_id == driver.done[0].id
    assert not driver.of(ev.ResponseSpeak)


def test_a_model_without_text_cannot_be_asked() -> None:
    driver = native(capabilities=Capabilities(Interaction.UNIT, step_samples=16_000, text_input=False))
    driver.send(CreateResponse(options=ResponseOptions()))
    assert [error.code for error in driver.errors] == ["response_create_without_input"]


def test_there_is_no_second_voice() -> None:
    driver = native()
    driver.send(CreateResponse(options=ResponseOptions(out_of_band=True)))
    assert [error.code for error in driver.errors] == ["unsupported"]
    says(driver, AudioDelta(ramp(80), "still here"), TurnEnd())
    assert len(driver.done) == 1


def test_a_response_that_is_too_long_is_ended_and_the_rest_of_it_is_not_another() -> None:
    driver = native(limits=Limits(max_response_s=1.0))
    for step in range(20):
        says(driver, AudioDelta(ramp(80), "x"), StepDone(step + 1))
    assert [response.status for response in driver.done] == ["incomplete"]
    assert driver.only(AbortResponse).fence.turn == 1
    says(driver, StepDone(21), AudioDelta(ramp(80), "again"), TurnEnd())
    assert [response.status for response in driver.done] == ["incomplete", "completed"]


def test_what_is_left_of_a_response_that_was_ended_is_no_other_though_it_waits() -> None:
    """Receipts are taken in their order: what was said before them is not of a turn after them."""
    driver = native(limits=Limits(max_response_s=1.0))
    says(driver, *[AudioDelta(ramp(80), "x")] * 15)
    driver.ask()
    says(driver, AudioDelta(ramp(80), "the rest"), StepDone(1), StepDone(2), StepDone(3))
    driver.model(AudioDelta(ramp(80), "asked"), TurnEnd())
    assert [response.status for response in driver.done] == ["incomplete", "completed"]
    says(driver, AudioDelta(ramp(80), "new"), TurnEnd())
    assert len(driver.done) == 3


def test_a_failed_turn_fails_its_response_and_the_next_works() -> None:
    driver = native()
    says(driver, AudioDelta(ramp(80), "one"), Failure())
    says(driver, AudioDelta(ramp(80), "two"), TurnEnd())
    assert [response.status for response in driver.done] == ["failed", "completed"]


def test_many_turns_leave_nothing_behind() -> None:
    """One stream of the model stays usable after any number of turns (invariant 54)."""
    driver = native()
    for _ in range(300):
        says(driver, AudioDelta(ramp(20), "x"), TurnEnd(), StepDone(1))
    assert not driver.machine.busy
    assert driver.machine.state.turn_id == 301
