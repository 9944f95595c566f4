"""Reading scripts: defaults, every key, and what is refused with which name."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.models.scripted.script import (
    DEFAULT_SCRIPT,
    Call,
    Lifecycle,
    Message,
    Pace,
    lifecycle_of,
    read_scripts,
)


def read_one(script: dict[str, Any]) -> Any:
    (read,) = read_scripts({"script": script})
    return read


def test_no_script_is_no_script() -> None:
    assert read_scripts({}) == ()
    assert read_scripts({"script": None}) == ()
    assert read_scripts({"script": []}) == ()


def test_defaults_are_those_of_the_contract() -> None:
    script = read_one({})
    text = "word1 word2 word3 word4 word5 word6 word7 word8 word9 word10"
    assert script == DEFAULT_SCRIPT
    assert script.parts == (Message(1000, text),)
    assert (script.chunk_ms, script.pace, script.stall_first_ms) == (80, Pace.REALTIME, 0)
    assert script.fail_at_chunk is None
    assert [script.hang, script.listen, script.echo_input, script.echo_history] == [False] * 4


def test_words_make_the_text_unless_there_is_a_text() -> None:
    assert read_one({"words": 2}).parts == (Message(1000, "word1 word2"),)
    assert read_one({"words": 2, "text": "hello"}).parts == (Message(1000, "hello"),)
    assert read_one({"words": 0}).parts == (Message(1000, ""),)


def test_items_in_order_with_the_scripts_values_where_they_have_none() -> None:
    script = read_one(
        {
            "audio_ms": 200,
            "words": 1,
            "items": [
                {"type": "message", "text": "hi"},
                {"type": "function_call", "name": "look", "arguments": '{"at": 1}'},
                {"audio_ms": 40},
            ],
        }
    )
    assert script.parts == (Message(200, "hi"), Call("look", '{"at": 1}'), Message(40, "word1"))


def test_tool_calls_stand_alone_unless_something_is_said_too() -> None:
    calls = [{"name": "a"}, {"name": "b", "arguments": "[]"}]
    assert read_one({"tool_calls": calls}).parts == (Call("a", "{}"), Call("b", "[]"))
    assert read_one({"tool_calls": calls, "audio_ms": 80, "text": "so"}).parts[0] == Message(80, "so")
    both = read_one({"tool_calls": calls, "items": [{"text": "first"}]})
    assert [type(part) for part in both.parts] == [Message, Call, Call]


def test_lifecycle_is_the_models_default_changed_by_the_script() -> None:
    server = Lifecycle(open_delay_ms=5, fail_open=True)
    scripts = read_scripts({"script": [{"fail_open": False}, {"cleanup_delay_ms": 7, "fail_open": True}]})
    assert lifecycle_of((), server) == server
    assert lifecycle_of(scripts, server) == Lifecycle(open_delay_ms=5, cleanup_delay_ms=7)


@pytest.mark.parametrize(
    ("script", "param"),
    [
        ("say hello", ""),
        ({"audio_mss": 1}, ".audio_mss"),
        ({"audio_ms": -1}, ".audio_ms"),
        ({"audio_ms": "long"}, ".audio_ms"),
        ({"audio_ms": True}, ".audio_ms"),
        ({"chunk_ms": 0}, ".chunk_ms"),
        ({"pace": "slow"}, ".pace"),
        ({"hang": 1}, ".hang"),
        ({"fail_at_chunk": -1}, ".fail_at_chunk"),
        ({"open_delay_ms": 1e12}, ".open_delay_ms"),
        ({"items": {}}, ".items"),
        ({"items": [{"type": "poem"}]}, ".items[0].type"),
        ({"items": [{"text": "a"}, {"rhyme": "b"}]}, ".items[1].rhyme"),
        ({"items": [{"type": "function_call"}]}, ".items[0].name"),
        ({"tool_calls": [{"name": "a", "arguments": {}}]}, ".tool_calls[0].arguments"),
        ([{}, {"words": "two"}], "[1].words"),
        ([{}, 5], "[1]"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(script: Any, param: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_scripts({"script": script})
    assert refused.value.param == f"session.extra_body.script{param}"
