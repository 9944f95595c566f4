"""What clients do to items: create, retrieve, delete; results of calls."""

from __future__ import annotations

import pytest

from counterpoint.plugins.contract import Capabilities, Interaction, ToolCall, TurnEnd
from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import ULAW_8K
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AppendAudio,
    CancelResponse,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    Scheduling,
)
from counterpoint.protocol.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    Message,
    OutputAudio,
    Role,
)

from .checks import check
from .driver import MANUAL, Driver, ramp, speak, tone, user_text


def result(call_id: str, output: str = "42", item_id: str = "") -> CreateItem:
    return CreateItem(item=FunctionCallOutput(id=item_id, call_id=call_id, output=output))


def called(*names: str) -> tuple[Driver, list[str]]:
    """A session whose answer was calls of ``names``; and their ids."""
    driver = Driver()
    driver.ask()
    driver.model(*[ToolCall(index, name, "{}") for index, name in enumerate(names)], TurnEnd())
    return driver, [event.call_id for event in driver.of(ev.ArgumentsDone)]


# ---------------------------------------------------------------------- create


def test_a_created_item_is_confirmed_and_keeps_its_id() -> None:
    driver = Driver()
    driver.send(user_text("a", "item_mine"), user_text("b"))
    assert driver.types == ["conversation.item.added", "conversation.item.done"] * 2
    first, second = driver.of(ev.ItemAdded)
    assert (first.item.id, first.previous_item_id) == ("item_mine", None)
    assert second.previous_item_id == "item_mine"
    assert second.item.id


def test_items_go_where_the_client_puts_them() -> None:
    """Case I-07."""
    driver = Driver()
    driver.send(user_text("a", "a"), user_text("c", "c"))
    middle = CreateItem(item=user_text("b", "b").item, previous_item_id="a")
    first = CreateItem(item=user_text("r", "r").item, previous_item_id="root")
    driver.send(middle, first)
    (snapshot,) = driver.machine.snapshot(0)
    assert [item.id for item in snapshot.conversation.items] == ["r", "a", "b", "c"]
    check(driver.sent)


def test_unknown_anchors_and_duplicate_ids_change_nothing() -> None:
    """Cases A-12, I-07."""
    driver = Driver()
    driver.send(user_text("a", "a"))
    driver.send(CreateItem(event_id="e1", item=user_text("b").item, previous_item_id="nope"))
    driver.send(CreateItem(event_id="e2", item=user_text("b", "a").item))
    assert [(error.code, error.param, error.event_id) for error in driver.errors] == [
        (ErrorCode.ITEM_CREATE_INVALID_PREVIOUS_ITEM_ID, "previous_item_id", "e1"),
        (ErrorCode.ITEM_CREATE_DUPLICATE_ITEM_ID, "item.id", "e2"),
    ]
    (snapshot,) = driver.machine.snapshot(0)
    assert len(snapshot.conversation.items) == 1


def test_what_the_model_cannot_take_is_refused() -> None:
    driver = Driver(capabilities=Capabilities(interaction=Interaction.TURN, audio_input=False))
    image = Message(role=Role.USER, content=(InputImage("data:,"),))
    audio = Message(role=Role.USER, content=(InputAudio(b"\0\0"),))
    driver.send(CreateItem(item=image), CreateItem(item=audio))
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.UNSUPPORTED, "item.content[0].type")
    ] * 2


def test_created_audio_reaches_the_model_in_canonical_form_and_comes_back_as_it_was_sent() -> None:
    driver = Driver()
    driver.update(audio={"input": {"format": {"type": "audio/pcmu"}}})
    spoken = Message(id="spoken", role=Role.USER, content=(InputAudio(bytes([0xFF] * 8000)),))
    driver.send(CreateItem(item=spoken))
    request = driver.ask()
    assert len(request.history[0].audio or b"") == 48_000
    driver.send(RetrieveItem(item_id="spoken"))
    retrieved = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(retrieved, Message)
    assert retrieved.content[0] == InputAudio(bytes([0xFF] * 8000))


@pytest.mark.parametrize(
    ("scheduling", "done", "asked"),
    [(Scheduling.SILENT, 0, 1), (Scheduling.WHEN_IDLE, 0, 1), (Scheduling.INTERRUPT, 1, 2)],
)
def test_scheduling_says_when_a_created_item_is_answered(
    scheduling: Scheduling, done: int, asked: int
) -> None:
    driver = Driver()
    driver.ask()
    driver.model(speak("one ", 1000))
    driver.send(CreateItem(item=user_text("now what", "late").item, scheduling=scheduling))
    assert (len(driver.done), len(driver.requests)) == (done, asked)
    driver.model(TurnEnd())
    assert len(driver.requests) == (1 if scheduling is Scheduling.SILENT else 2)
    check(driver.sent)


def test_a_transcription_session_schedules_nothing() -> None:
    driver = Driver(MANUAL | {"type": "transcription"})
    driver.send(CreateItem(item=user_text("x").item, scheduling=Scheduling.WHEN_IDLE))
    assert [(error.code, error.param) for error in driver.errors] == [(ErrorCode.UNSUPPORTED, "scheduling")]
    assert driver.sent == []


# ---------------------------------------------------------------------- retrieve and delete


def test_retrieve_carries_the_audio_and_events_do_not() -> None:
    driver = Driver()
    driver.ask()
    driver.answer("hello", 200)
    item = driver.done[0].output[0]
    driver.send(RetrieveItem(item_id=item.id))
    retrieved = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(retrieved, Message)
    assert retrieved.content == (OutputAudio(ramp(200), "hello"),)
    assert isinstance(item, Message)
    assert item.content == (OutputAudio(transcript="hello"),)


def test_retrieved_user_audio_is_in_the_sessions_format() -> None:
    driver = Driver()
    driver.send(AppendAudio(audio=tone(1000, 0.5)), CommitAudio())
    driver.update(audio={"input": {"format": {"type": "audio/pcmu"}}})
    driver.send(RetrieveItem(item_id=driver.of(ev.InputCommitted)[0].item_id))
    item = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(item, Message)
    part = item.content[0]
    assert isinstance(part, InputAudio)
    assert len(part.audio or b"") == ULAW_8K.bytes_per_second


def test_unknown_items_cannot_be_retrieved_or_deleted() -> None:
    driver = Driver()
    driver.send(RetrieveItem(item_id="nope"), DeleteItem(item_id="nope"))
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.ITEM_RETRIEVE_INVALID_ITEM_ID, "item_id"),
        (ErrorCode.ITEM_DELETE_INVALID_ITEM_ID, "item_id"),
    ]


def test_a_deleted_item_is_gone_from_history() -> None:
    driver = Driver()
    driver.send(user_text("secret", "a"), user_text("plain", "b"), DeleteItem(item_id="a"))
    assert driver.types[-1] == "conversation.item.deleted"
    assert [item.text for item in driver.ask().history] == ["plain"]
    check(driver.sent)


def test_deleting_an_item_of_the_running_response_ends_that_first() -> None:
    """Case I-07."""
    driver = Driver()
    driver.ask()
    driver.model(speak("one ", 200))
    item_id = driver.of(ev.OutputItemAdded)[0].item.id
    driver.send(DeleteItem(item_id=item_id))
    assert driver.types[-2:] == ["response.done", "conversation.item.deleted"]
    driver.model(speak("two ", 200), TurnEnd())
    assert driver.types[-1] == "conversation.item.deleted"
    check(driver.sent)


# ---------------------------------------------------------------------- calls and results


def test_results_of_parallel_calls_enter_history_in_call_order() -> None:
    """Case G-01."""
    driver, (first, second) = called("f", "g")
    driver.send(result(second, "two"), result(first, "one"), CreateResponse(), CreateResponse())
    assert [error.code for error in driver.errors] == [ErrorCode.CONVERSATION_ALREADY_HAS_ACTIVE_RESPONSE]
    assert [(item.type, item.output) for item in driver.requests[1].history] == [
        ("function_call", None),
        ("function_call_output", "one"),
        ("function_call", None),
        ("function_call_output", "two"),
    ]


def test_a_result_is_taken_once() -> None:
    """Cases G-02, G-03."""
    driver, (call_id,) = called("f")
    driver.send(result("nope"), result(call_id), result(call_id))
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.UNKNOWN_FUNCTION_CALL_OUTPUT, "item.call_id"),
        (ErrorCode.DUPLICATE_FUNCTION_CALL_OUTPUT, "item.call_id"),
    ]
    assert len(driver.of(ev.ItemAdded)) == 2


def test_a_result_that_cannot_be_placed_does_not_answer_the_call() -> None:
    driver, (call_id,) = called("f")
    misplaced = CreateItem(item=result(call_id).item, previous_item_id="nope")
    driver.send(misplaced, result(call_id))
    assert [error.code for error in driver.errors] == [ErrorCode.ITEM_CREATE_INVALID_PREVIOUS_ITEM_ID]
    assert isinstance(driver.of(ev.ItemAdded)[-1].item, FunctionCallOutput)


@pytest.mark.parametrize("completed", [False, True])
def test_a_call_stays_answerable_once_its_arguments_were_announced(completed: bool) -> None:
    """Case G-04, invariant 97: whatever the epoch; a call that never completed is stale."""
    driver = Driver()
    driver.ask()
    driver.model(ToolCall(0, "f", "{", final=False))
    if completed:
        driver.model(ToolCall(0, "f", "}"))
    driver.send(CancelResponse())
    call_id = driver.of(ev.ArgumentsDelta)[0].call_id
    driver.send(result(call_id))
    if completed:
        assert driver.errors == []
        assert [item.type for item in driver.ask().history] == ["function_call", "function_call_output"]
    else:
        assert [error.code for error in driver.errors] == [ErrorCode.STALE_FUNCTION_CALL_OUTPUT]
        assert driver.ask().history == ()
    assert len(driver.requests) == 2, "a late result starts nothing"
    check(driver.sent)


def test_a_call_announced_in_the_moment_of_the_cancel_is_incomplete_and_answerable() -> None:
    """Case G-05: arguments handed over, the item's end not. Nobody is told to run it after the cancel."""
    driver = Driver(eager=False)
    driver.ask()
    driver.model(ToolCall(0, "f", "{}"))
    while not driver.of(ev.ArgumentsDone):
        driver.hand_over(1)
    driver.send(CancelResponse())
    driver.hand_over()
    assert [item.status.value for item in driver.done[0].output] == ["incomplete"]
    driver.send(result(driver.of(ev.ArgumentsDone)[0].call_id))
    assert driver.errors == []
    assert [item.type for item in driver.ask().history] == ["function_call", "function_call_output"]


def test_a_result_for_a_deleted_call_is_late() -> None:
    driver, (call_id,) = called("f")
    driver.send(DeleteItem(item_id=driver.done[0].output[0].id), result(call_id))
    assert [error.code for error in driver.errors] == [ErrorCode.LATE_FUNCTION_CALL_OUTPUT]


@pytest.mark.parametrize("call_too", [False, True])
def test_a_result_among_the_input_of_a_response_comes_with_its_call(call_too: bool) -> None:
    """Case G-02: the call is one of the conversation, or an entry before the result."""
    driver, (call_id,) = called("f")
    if call_too:
        call_id = "mine"
    answer = FunctionCallOutput(call_id=call_id, output="1")
    entries = (FunctionCall(call_id=call_id, name="f", arguments="{}"), answer) if call_too else (answer,)
    history = driver.ask(input=entries).history
    assert [(item.type, item.call_id) for item in history] == [
        ("function_call", call_id),
        ("function_call_output", call_id),
    ]


def test_a_restored_call_can_be_answered() -> None:
    driver = Driver()
    call = FunctionCall(id="restored", call_id="call_9", name="f", arguments="{}")
    driver.send(CreateItem(item=call), result("call_9"))
    assert driver.errors == []
    assert [item.type for item in driver.ask().history] == ["function_call", "function_call_output"]


def test_calls_of_out_of_band_responses_cannot_be_answered_in_the_conversation() -> None:
    driver = Driver()
    driver.ask(out_of_band=True)
    driver.model(ToolCall(0, "f", "{}"), TurnEnd())
    driver.send(result(driver.of(ev.ArgumentsDone)[0].call_id))
    assert [error.code for error in driver.errors] == [ErrorCode.UNKNOWN_FUNCTION_CALL_OUTPUT]
