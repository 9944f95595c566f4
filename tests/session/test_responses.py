"""The life of a response: its events, its one end, its time limits."""

from __future__ import annotations

import pytest

from counterpoint.limits import Limits
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    ItemEnd,
    Listen,
    ModelEvent,
    TextDelta,
    ToolCall,
    TurnEnd,
    TurnStatus,
    Usage,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CancelResponse, CreateResponse
from counterpoint.protocol.items import (
    FunctionCallOutput,
    InputText,
    ItemReference,
    ItemStatus,
    Message,
    Role,
)
from counterpoint.protocol.response_options import ResponseOptions
from counterpoint.session.effects import AbortResponse, CancelModel, Respond
from counterpoint.session.inputs import ModelHeld, ModelOpened, ModelRaised

from .checks import check
from .driver import Driver, ramp, speak, user_text

SPOKEN = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


def asked(**options: object) -> Driver:
    driver = Driver()
    driver.ask(**options)
    return driver


def test_events_of_a_spoken_answer_come_in_the_contracts_order() -> None:
    driver = asked()
    driver.answer("hi there", 200)
    assert driver.types == SPOKEN
    check(driver.sent)


def test_a_text_answer_has_text_events_only() -> None:
    driver = asked(output_modalities=("text",))
    driver.model(TextDelta("one "), TextDelta("two"), TurnEnd())
    assert [name for name in driver.types if "text" in name] == [
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
    ]
    assert not any("audio" in name for name in driver.types)
    assert driver.only(ev.OutputTextDone, driver.events).text == "one two"
    check(driver.sent)


def test_a_tool_call_has_no_audio_events_and_its_done_carries_the_name() -> None:
    """Case D-12: tool-only."""
    driver = asked()
    driver.model(ToolCall(0, "look_up", '{"q":', final=False), ToolCall(0, "look_up", "1}"), TurnEnd())
    assert [name for name in driver.types if "arguments" in name] == [
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    ]
    assert not any("audio" in name or "part" in name for name in driver.types)
    done = driver.only(ev.ArgumentsDone, driver.events)
    assert (done.name, done.arguments) == ("look_up", '{"q":1}')
    check(driver.sent)


@pytest.mark.parametrize(
    "script",
    [
        [speak("one ", 100), ToolCall(0, "f", "{}"), speak("two ", 100)],
        [ToolCall(0, "f", "{}"), ToolCall(1, "g", "{}")],
        [speak("one ", 100), ItemEnd(), speak("two ", 100)],
        [],
    ],
    ids=["speech-tool-speech", "two-tools", "two-messages", "nothing"],
)
def test_items_come_one_after_the_other_and_equal_those_of_done(script: list[ModelEvent]) -> None:
    """Case D-12."""
    driver = asked()
    driver.model(*script, TurnEnd())
    added = [event.item.id for event in driver.of(ev.OutputItemAdded)]
    assert [item.id for item in driver.done[0].output] == added
    assert driver.done[0].status == "completed"
    check(driver.sent)


def test_parallel_calls_that_the_model_interleaves_are_written_one_after_the_other() -> None:
    driver = asked()
    driver.model(
        ToolCall(0, "f", "{", final=False),
        ToolCall(1, "g", "[", final=False),
        ToolCall(0, "f", "}"),
        ToolCall(1, "g", "]"),
        TurnEnd(),
    )
    assert [(e.name, e.arguments) for e in driver.of(ev.ArgumentsDone)] == [("f", "{}"), ("g", "[]")]
    check(driver.sent)


def test_done_comes_when_the_last_entry_was_handed_over_and_not_before() -> None:
    driver = Driver(eager=False)
    driver.ask()
    driver.answer()
    while len(driver.pending) > 1:
        driver.hand_over(1)
        assert not driver.done
    assert not any(isinstance(entry.event, ev.ResponseDone) for entry in driver.pending)
    driver.hand_over(1)
    assert isinstance(driver.pending[-1].event, ev.ResponseDone)


def test_a_cancel_before_the_last_entry_was_handed_over_is_a_cancel() -> None:
    """Wire, section 5: the model's end of turn closes generation only."""
    driver = Driver(eager=False)
    driver.ask()
    driver.answer()
    driver.hand_over(len(driver.pending) - 1)
    driver.send(CancelResponse())
    driver.hand_over()
    assert driver.done[0].status == "cancelled"


def test_a_cancel_after_the_last_entry_was_handed_over_finds_nothing_active() -> None:
    """The news of the last entry and the cancel may come in either order."""
    driver = Driver(eager=False)
    driver.ask()
    driver.answer()
    for entry in list(driver.pending):
        driver.pending.popleft()
        assert entry.tag is not None
        driver.machine.accepted(entry.tag, driver.now)
    driver.send(CancelResponse())
    assert [error.code for error in driver.errors] == [ErrorCode.RESPONSE_CANCEL_NOT_ACTIVE]
    driver.hand_over()
    assert driver.done[0].status == "completed"


def test_usage_and_metadata_are_in_done() -> None:
    driver = asked(metadata={"k": "v"})
    driver.model(speak("x ", 100), TurnEnd(usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=2)))
    done = driver.done[0]
    assert done.metadata == {"k": "v"} == driver.of(ev.ResponseCreated)[0].response.metadata
    assert done.usage is not None
    assert (done.usage.total_tokens, done.usage.input_tokens, done.usage.output_tokens) == (10, 7, 3)


def test_a_request_says_how_often_the_model_was_asked_under_its_knobs() -> None:
    """Those that were called off before they reached it count, and a new ``extra_body`` counts anew."""
    driver = Driver({"extra_body": {"knob": 1}})
    for nth in (1, 2):
        assert driver.ask().nth == nth
        driver.send(CancelResponse())
    driver.update(extra_body={"knob": 2})
    assert (driver.ask().nth, driver.requests[-1].number) == (1, 3)


def test_options_hold_for_one_response_only() -> None:
    """Invariant 87."""
    driver = Driver()
    asked_with = driver.ask(
        instructions="rhyme", output_modalities=("text",), voice="alto", max_output_tokens=5
    )
    driver.model(TurnEnd())
    plain = driver.ask()
    assert (asked_with.instructions, asked_with.modalities, asked_with.voice) == ("rhyme", ("text",), "alto")
    assert asked_with.max_output_tokens == 5
    assert (plain.instructions, plain.modalities, plain.voice) == ("", ("audio",), "default")
    assert plain.max_output_tokens is None


@pytest.mark.parametrize(
    ("status", "reason"),
    [(TurnStatus.MAX_OUTPUT_TOKENS, "max_output_tokens"), (TurnStatus.CONTENT_FILTER, "content_filter")],
)
def test_a_model_that_stops_short_leaves_an_incomplete_response(status: TurnStatus, reason: str) -> None:
    driver = asked()
    driver.model(speak("half ", 100), TurnEnd(status))
    done = driver.done[0]
    assert (done.status, done.output[0].status) == ("incomplete", ItemStatus.INCOMPLETE)
    assert done.status_details is not None
    assert done.status_details.reason == reason
    check(driver.sent)


def test_a_failure_ends_the_response_without_an_error_event() -> None:
    """Invariant 56."""
    driver = asked()
    driver.model(speak("half ", 100), Failure("model_failed"))
    done = driver.done[0]
    assert done.status == "failed"
    assert done.status_details is not None
    assert done.status_details.error == ev.StatusError("server_error", "model_failed")
    assert driver.errors == []
    driver.ask()
    driver.answer()
    assert [response.status for response in driver.done] == ["failed", "completed"]
    check(driver.sent)


def test_a_failure_says_what_was_generated_before_it_ends() -> None:
    driver = asked()
    driver.model(speak("all of it ", 300), Failure())
    item = driver.done[0].output[0]
    assert len(driver.audio_of(item.id)) == len(ramp(300))


def test_a_respond_that_raises_fails_its_response_once() -> None:
    """Invariant 27."""
    driver = asked()
    driver.post(ModelRaised(driver.requests[0].fence, "respond"))
    driver.post(ModelRaised(driver.requests[0].fence, "respond"))
    assert [response.status for response in driver.done] == ["failed"]


def test_a_listen_decision_ends_the_response_without_output() -> None:
    """Case D-15: exactly one done, no audio."""
    driver = asked()
    driver.model(Listen())
    assert driver.types == ["response.created", "response.listen", "response.done"]
    assert (driver.done[0].status, driver.done[0].output) == ("completed", ())


@pytest.mark.parametrize(
    "fence",
    [Fence("sess_test", 0, 7), Fence("sess_test", 3, 1), Fence("other", 0, 1), Fence("sess_test", 0, 0)],
    ids=["unknown-turn", "other-epoch", "other-session", "no-turn"],
)
def test_output_of_no_running_response_is_dropped(fence: Fence) -> None:
    """Invariants 2 and 52."""
    driver = asked()
    assert driver.model(speak("ghost ", 100), TurnEnd(), Failure(), Listen(), fence=fence) == []


def test_text_that_is_complete_does_not_end_an_answer_whose_audio_is_to_come() -> None:
    """(invariants 44, 55)"""
    driver = asked()
    driver.model(TextDelta("all of it"), AudioDelta(ramp(100)), AudioDelta(ramp(100, 2400)))
    assert not driver.done
    driver.model(TurnEnd())
    assert driver.audio_of(driver.done[0].output[0].id) == ramp(200)


def test_output_after_the_end_of_the_turn_is_dropped() -> None:
    """Invariant 53."""
    driver = Driver(eager=False)
    driver.ask()
    driver.answer()
    assert driver.model(speak("more ", 100), TurnEnd()) == []


# ---------------------------------------------------------------------- creating


def test_a_second_create_is_refused_and_harms_nothing() -> None:
    """Cases D-01, G-01; invariant 86."""
    driver = asked()
    driver.send(CreateResponse(event_id="c2"))
    (error,) = driver.errors
    assert (error.code, error.event_id) == (ErrorCode.CONVERSATION_ALREADY_HAS_ACTIVE_RESPONSE, "c2")
    driver.answer()
    assert [response.status for response in driver.done] == ["completed"]
    assert len(driver.requests) == 1


def test_out_of_band_responses_run_beside_the_active_one_and_leave_the_conversation_alone() -> None:
    driver = asked()
    active = driver.requests[-1].fence
    side = driver.ask(out_of_band=True, metadata={"topic": "classify"})
    assert side.out_of_band
    driver.model(speak("side ", 100), TurnEnd(), fence=side.fence)
    driver.model(speak("main ", 100), TurnEnd(), fence=active)
    side_done, main_done = driver.done
    assert (side_done.conversation_id, side_done.metadata) == (None, {"topic": "classify"})
    assert main_done.conversation_id is not None
    listed = {event.item.id for event in driver.of(ev.ItemAdded)}
    assert side_done.output[0].id not in listed
    assert main_done.output[0].id in listed
    driver.ask()
    assert ("assistant", "side") not in driver.history()
    check(driver.sent)


def test_cancelling_an_out_of_band_response_ends_that_one_and_leaves_the_epoch() -> None:
    driver = asked()
    side = driver.ask(out_of_band=True)
    driver.model(speak("side ", 100), fence=side.fence)
    side_id = driver.of(ev.ResponseCreated)[-1].response.id
    effects = driver.send(CancelResponse(response_id=side_id))
    assert driver.only(AbortResponse, effects).fence == side.fence
    assert not [effect for effect in effects if isinstance(effect, CancelModel)]
    assert driver.machine.epoch == 0
    assert [(response.id, response.status) for response in driver.done] == [(side_id, "cancelled")]
    driver.model(speak("main ", 100), TurnEnd(), fence=driver.requests[0].fence)
    assert driver.done[1].status == "completed"
    check(driver.sent)


def test_an_interruption_leaves_out_of_band_responses_running() -> None:
    driver = asked()
    side = driver.ask(out_of_band=True)
    driver.send(CancelResponse())
    driver.model(speak("side ", 100), TurnEnd(), fence=side.fence)
    assert [response.status for response in driver.done] == ["cancelled", "completed"]
    check(driver.sent)


def test_given_input_takes_the_place_of_the_conversation() -> None:
    driver = Driver()
    driver.send(user_text("in the conversation", "item_a"))
    inline = Message(role=Role.USER, content=(InputText("inline"),))
    request = driver.ask(input=(ItemReference("item_a"), inline), out_of_band=True)
    assert [item.text for item in request.history] == ["in the conversation", "inline"]
    request = driver.ask(input=())
    assert request.history == ()


def test_unknown_references_are_refused_with_param() -> None:
    driver = Driver()
    driver.send(CreateResponse(options=ResponseOptions(input=(ItemReference("nope"),))))
    driver.send(CreateResponse(options=ResponseOptions(input=(FunctionCallOutput(call_id="c", output="1"),))))
    assert [error.param for error in driver.errors] == ["response.input[0].id", "response.input[0].call_id"]
    assert driver.requests == []


# ---------------------------------------------------------------------- time limits


def test_a_silent_model_fails_its_response() -> None:
    """Case D-08: hang."""
    driver = Driver(limits=Limits(response_timeout_s=5))
    driver.ask()
    driver.wait(4.9)
    assert driver.done == []
    effects = driver.wait(0.2)
    assert driver.only(AbortResponse, effects).fence == driver.requests[0].fence
    details = driver.done[0].status_details
    assert details is not None
    assert details.error is not None
    assert (driver.done[0].status, details.error.code) == ("failed", "model_timeout")
    driver.ask()
    driver.answer()
    assert driver.done[1].status == "completed"


def test_output_moves_the_timeout() -> None:
    driver = Driver(limits=Limits(response_timeout_s=5))
    driver.ask()
    for _ in range(4):
        driver.wait(4)
        driver.model(speak("word ", 100))
    assert driver.done == []


@pytest.mark.parametrize("extra_s", [0.0, 30.0])
def test_time_in_which_the_model_is_held_back_does_not_count(extra_s: float) -> None:
    driver = Driver(limits=Limits(response_timeout_s=5, max_response_s=20))
    driver.ask()
    driver.wait(4)
    driver.post(ModelHeld(True))
    driver.wait(extra_s)
    assert driver.done == []
    driver.post(ModelHeld(False))
    driver.wait(0.9)
    assert driver.done == []
    driver.wait(0.2)
    assert driver.done[0].status == "failed"


def test_time_in_which_the_model_opens_does_not_count() -> None:
    driver = Driver(limits=Limits(response_timeout_s=5), opened=False)
    driver.ask()
    driver.wait(60)
    assert driver.done == []
    driver.post(ModelOpened())
    driver.wait(4.9)
    assert driver.done == []
    driver.wait(0.2)
    assert driver.done[0].status == "failed"


def test_an_endless_model_is_stopped_in_time() -> None:
    """Case D-08: endless."""
    driver = Driver(limits=Limits(max_response_s=10))
    driver.ask()
    for _ in range(12):
        driver.wait(1)
        driver.model(speak("on ", 100))
    assert driver.done[0].status == "incomplete"
    assert driver.done[0].status_details is not None
    assert driver.done[0].status_details.reason == "max_output_tokens"
    assert [effect for effect in driver.effects if isinstance(effect, AbortResponse)]


def test_an_endless_model_is_stopped_by_the_length_of_its_audio() -> None:
    driver = Driver(limits=Limits(max_response_s=2))
    driver.ask()
    for _ in range(30):
        driver.model(AudioDelta(ramp(100), "on "))
    assert driver.done[0].status == "incomplete"
    assert len(driver.audio_of(driver.done[0].output[0].id)) == len(ramp(2100))
    check(driver.sent)


def test_a_limit_of_zero_is_none() -> None:
    driver = Driver(limits=Limits(response_timeout_s=0, max_response_s=0))
    driver.ask()
    assert driver.machine.next_deadline() is None


def test_response_numbers_count_from_one_over_all_kinds_of_response() -> None:
    """No answer has the number of another, of its epoch or not (invariant 5)."""
    driver = Driver()
    driver.ask()
    driver.model(Listen())
    driver.ask()
    driver.send(CancelResponse())
    driver.ask(out_of_band=True)
    driver.ask()
    assert [request.number for request in driver.requests] == [1, 2, 3, 4]
    assert [request.fence.turn for request in driver.requests] == [1, 2, 3, 4]
    assert [request.fence.epoch for request in driver.requests] == [0, 0, 1, 1]
    assert len([effect for effect in driver.effects if isinstance(effect, Respond)]) == 4
