"""What an answer is asked for."""

from __future__ import annotations

import pytest

from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import AppendText, CreateResponse
from counterpoint.protocol.tools import Tool

from .driver import MANUAL, Driver, user_text, vad


def test_an_empty_conversation_is_greeted_where_the_model_takes_text() -> None:
    """Invariant 86."""
    for takes_text in (True, False):
        capabilities = Capabilities(interaction=Interaction.TURN, input_rate=24_000, text_input=takes_text)
        driver = Driver(capabilities=capabilities)
        driver.send(CreateResponse(), AppendText(text="x"))
        if takes_text:
            assert len(driver.requests) == 1
        else:
            assert [error.code for error in driver.errors] == [
                ErrorCode.RESPONSE_CREATE_WITHOUT_INPUT,
                ErrorCode.UNSUPPORTED,
            ]


def test_a_transcription_session_refuses_responses() -> None:
    driver = Driver(MANUAL | {"type": "transcription"})
    driver.send(CreateResponse())
    assert [error.code for error in driver.errors] == [ErrorCode.UNSUPPORTED]


def test_the_request_is_the_session_and_its_knobs() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"$schema": "x", "type": "object"}}
    driver = Driver(MANUAL | {"tools": [tool], "tool_choice": "required", "extra_body": {"knob": 1}})
    driver.send(user_text("hi"))
    request = driver.ask()
    assert request.tools == (Tool("f", None, tool["parameters"]),)  # type: ignore[arg-type]
    assert (request.tool_choice, request.extra) == ("required", {"knob": 1})
    assert [item.text for item in request.history] == ["hi"]


def test_options_replace_what_they_name() -> None:
    driver = Driver(MANUAL | {"tools": [{"type": "function", "name": "f"}], "instructions": "long"})
    request = driver.ask(tools=(), tool_choice="none", max_output_tokens=None)
    assert (request.tools, request.tool_choice, request.instructions) == ((), "none", "long")
    assert request.max_output_tokens is None


@pytest.mark.parametrize("said_more", [False, True])
def test_a_prepared_request_equals_the_one_asked_for_unless_something_came_between(said_more: bool) -> None:
    driver = Driver(vad())
    driver.say(600, 0.9)
    driver.say(200, 0.0)
    if said_more:
        driver.send(user_text("and this"))
    driver.say(500, 0.0)
    (prepared,), (asked,) = driver.prepared, driver.requests
    assert (prepared == asked) is not said_more
    assert prepared.fence == asked.fence
