"""Every command and every model output in every state, against the table that the reference shows."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from tools.conversation_reference import TABLE, Row, Table, read

from counterpoint.plugins.contract import (
    Failure,
    Fence,
    ItemEnd,
    Listen,
    ModelEvent,
    Scope,
    SpeechBoundary,
    StageMetrics,
    StepDone,
    TextDelta,
    ToolCall,
    TurnEnd,
    TurnStatus,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.codec import decode
from counterpoint.protocol.commands import CancelInput, CancelResponse
from counterpoint.protocol.decoding import READERS
from counterpoint.protocol.items import Message, Role
from counterpoint.session.effects import (
    AbortResponse,
    CancelModel,
    CloseModel,
    Effect,
    Emit,
    Forget,
    Prepare,
    Push,
    ReopenModel,
    Reply,
    Respond,
    TruncateModel,
    UpdateModel,
)
from counterpoint.session.inputs import ModelOpened

from .checks import check
from .driver import Driver, speak, type_of
from .states import STATES

EXPECTED = read()

#: What a model says, by the name that the table gives it. Input 1 is the turn that was spoken.
OUTPUTS: dict[str, ModelEvent] = {
    "AudioDelta": speak("three ", 100),
    "TextDelta": TextDelta("three "),
    "ItemEnd": ItemEnd(),
    "ToolCall": ToolCall(0, "f", "{}"),
    "TurnEnd": TurnEnd(),
    "TurnEnd at the limit": TurnEnd(TurnStatus.MAX_OUTPUT_TOKENS),
    "Listen": Listen(),
    "Failure of the answer": Failure(),
    "Failure of the session": Failure(scope=Scope.SESSION),
    "Failure of the session, for good": Failure(scope=Scope.SESSION, retryable=False),
    "UserTranscript": UserTranscript(1, "good day"),
    "UserTranscript, a piece": UserTranscript(1, "good ", final=False),
    "UserTranscript of no turn": UserTranscript(99, "good day"),
    "UserTranscriptFailed": UserTranscriptFailed(1, "too loud"),
    "SpeechBoundary": SpeechBoundary(True, 5),
    "StepDone": StepDone(1),
    "StageMetrics": StageMetrics({"asr": 1.0}),
}

#: How the table calls what the model is asked.
CALLS: dict[type[Effect], str] = {
    AbortResponse: "model.abort",
    CancelModel: "model.cancel",
    CloseModel: "model.close",
    Forget: "model.forget",
    Prepare: "model.prepare",
    Push: "model.push",
    ReopenModel: "model.reopen",
    Respond: "model.respond",
    TruncateModel: "model.truncate",
    UpdateModel: "model.update",
}

COMMANDS = [
    pytest.param(row, form, id=f"{row.name}-{form['type']}") for row in EXPECTED.commands for form in row.send
]


def test_the_table_speaks_of_everything() -> None:
    assert list(EXPECTED.states) == list(STATES)
    sent = {form["type"] for row in EXPECTED.commands for form in row.send}
    assert sent | set(EXPECTED.connection["commands"]) == set(READERS)
    assert [row.name for row in EXPECTED.outputs] == list(OUTPUTS)
    assert {type(output) for output in OUTPUTS.values()} == set(get_args(ModelEvent))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("row", "form"), COMMANDS)
def test_every_command_in_every_state(row: Row, form: dict[str, Any], state: str) -> None:
    """CASE-INV-7: its effect, or exactly one error; the session stays usable (invariant 86)."""
    driver = STATES[state]()
    if row.before is not None:
        send(driver, row.before)
    epoch = driver.machine.epoch
    follows(driver, send(driver, form), row, state, epoch)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("row", EXPECTED.outputs, ids=lambda row: row.name)
def test_every_output_in_every_state(row: Row, state: str) -> None:
    driver = STATES[state]()
    epoch = driver.machine.epoch
    follows(driver, driver.model(OUTPUTS[row.name], fence=newest_fence(driver)), row, state, epoch)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", EXPECTED.stale["outputs"])
def test_stale_output_has_no_effect_in_any_state(name: str, state: str) -> None:
    """(invariants 52, 53, 90)"""
    driver = STATES[state]()
    for fence in (interrupted_fence(driver), Fence("sess_test", driver.machine.epoch, turn=99)):
        assert driver.model(OUTPUTS[name], fence=fence) == []
    still_makes_sense(driver)


def test_the_end_of_a_response_waits_for_the_transport() -> None:
    """What the table calls draining ends with the last entry, and only then."""
    driver = STATES["draining"]()
    driver.hand_over(len(driver.pending) - 1)
    assert driver.types[-1] == "response.output_item.done"
    driver.hand_over()
    driver.hand_over()
    assert driver.types[-2:] == ["conversation.item.done", "response.done"]
    assert driver.done[-1].status == "completed"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("responding draining queued", "responding drowning queued"),
        ('asked = "model.cancel', 'idle = "error response_cancel_not_active"\nasked = "model.cancel'),
        ('queued = "<cut>', '"queued draining" = "<cut>'),
    ],
    ids=["a state that is none", "an exception that is none", "a state named twice"],
)
def test_a_table_that_contradicts_itself_is_refused(old: str, new: str) -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ValueError, match="no state, named twice, or no exception"):
        Table(text.replace(old, new, 1))


# ---------------------------------------------------------------------- in


def send(driver: Driver, form: dict[str, Any]) -> list[Effect]:
    answers = [
        added.item.id
        for added in driver.of(ev.ItemAdded)
        if isinstance(added.item, Message) and added.item.role is Role.ASSISTANT
    ]
    responses = [created.response.id for created in driver.of(ev.ResponseCreated)]
    frame = json.dumps(form)
    frame = frame.replace("$answer", answers[-1] if answers else "item_none")
    frame = frame.replace("$response", responses[-1] if responses else "resp_none")
    return driver.send(decode(frame))


def newest_fence(driver: Driver) -> Fence:
    """Of the newest answer that was asked for; a model that decides for itself has the epoch alone."""
    asked = [request.fence for request in driver.requests]
    return asked[-1] if asked else Fence("sess_test", driver.machine.epoch)


def interrupted_fence(driver: Driver) -> Fence:
    asked = [request.fence for request in driver.requests]
    return asked[0] if asked else Fence("sess_test", driver.machine.epoch - 1)


# ---------------------------------------------------------------------- out


def follows(driver: Driver, effects: list[Effect], row: Row, state: str, epoch: int) -> None:
    """``effects`` are what the table says, and every interruption began an epoch after ``epoch``."""
    words = told(effects)
    assert words == EXPECTED.expected(row, state)
    assert driver.machine.epoch - epoch == words.count("model.cancel")
    still_makes_sense(driver)


def told(effects: list[Effect]) -> list[str]:
    """``effects`` in the words of the table; the log's and the detector's own are left out."""
    words = []
    for effect in effects:
        if isinstance(effect, Emit | Reply):
            words.append(" ".join([type_of(effect.event), *details(effect.event)]))
        elif type(effect) in CALLS:
            words.append(CALLS[type(effect)])
    return words


def details(event: ev.Event) -> list[str]:
    match event:
        case ev.Error(error=error):
            return [word for word in (error.code, error.param) if word]
        case ev.ResponseDone(response=ev.Response(status=status, status_details=None)):
            return [status]
        case ev.ResponseDone(response=ev.Response(status=status, status_details=ev.StatusDetails() as why)):
            return [status, why.reason or (why.error.code if why.error else "")]
        case _:
            return []


def still_makes_sense(driver: Driver) -> None:
    """To a client that reads everything; and one more turn works."""
    driver.hand_over()
    driver.hand_over()
    check(driver.sent)
    if not driver.machine.is_open:
        return
    driver.eager = True
    driver.post(ModelOpened())
    driver.send(CancelInput(), CancelResponse(), CancelResponse())
    driver.ask()
    driver.answer("still here ", 100)
    assert driver.done[-1].status == "completed"
    check(driver.sent)
