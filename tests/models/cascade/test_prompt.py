"""Prompts: what is kept, what is dropped, and that they grow at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tests.models.cascade.fakes import fakes
from tests.models.support import assistant, user

from counterpoint.models.cascade.prompt import MANNER, conversation, is_unheard
from counterpoint.models.cascade.stages import Message, ToolUse
from counterpoint.plugins.contract import HistoryItem
from counterpoint.testing.virtual_time import run


def prompt_for(
    history: Sequence[HistoryItem],
    instructions: str = "",
    *,
    ahead: bool = False,
    turns: int = 2,
    tools: bool = False,
) -> list[Message]:
    async def words(item: HistoryItem) -> str:
        return item.text or ""

    stages = replace(fakes().stages(), turns=turns, tools=tools)
    return run(conversation(history, instructions, words, stages, turn_to_come=ahead))


def turns(count: int) -> list[HistoryItem]:
    """``count`` turns of which the newest is not answered."""
    items = [item for n in range(count) for item in (user(f"u{n}", f"q{n}"), assistant(f"a{n}", f"r{n}"))]
    return items[:-1]


def said(messages: list[Message]) -> list[str]:
    return [message.text for message in messages[1:]]


def test_instructions_stand_in_front() -> None:
    assert prompt_for([], "Speak like a pirate.") == [Message("system", f"{MANNER} Speak like a pirate.")]
    assert prompt_for([]) == [Message("system", MANNER)]


def test_two_or_three_turns_are_kept() -> None:
    assert said(prompt_for(turns(1))) == ["q0"]
    assert said(prompt_for(turns(3))) == ["q0", "r0", "q1", "r1", "q2"]
    assert said(prompt_for(turns(4))) == ["q2", "r2", "q3"]
    assert said(prompt_for(turns(5))) == ["q2", "r2", "q3", "r3", "q4"]
    assert said(prompt_for(turns(400)))[0] == "q398"


def test_what_was_read_ahead_is_the_beginning_of_the_next_prompt() -> None:
    """Nothing that was read has to be read again."""
    for count in range(1, 12):
        history = turns(count)
        read = prompt_for([*history, assistant("a", "the answer")], ahead=True)
        prompt = prompt_for([*history, assistant("a", "the answer"), user("u", "the next")])
        assert prompt[:-1] == read


def test_every_other_prompt_only_adds_to_the_one_before() -> None:
    prompts = [prompt_for(turns(count)) for count in range(2, 20)]
    grown = [after[: len(before)] == before for before, after in pairwise(prompts)]
    assert grown == [True, False] * 8 + [True]


def test_calls_and_items_without_words_are_left_out() -> None:
    history = [
        user("u0", "q0"),
        HistoryItem("c", "function_call", call_id="x", name="f", arguments="{}"),
        HistoryItem("o", "function_call_output", call_id="x", output="5"),
        assistant("a0", "  "),
        user("u1", " q1 "),
    ]
    assert said(prompt_for(history)) == ["q0", "q1"]


def call(call_id: str) -> HistoryItem:
    return HistoryItem(f"item_{call_id}", "function_call", call_id=call_id, name="look", arguments="{}")


def result(call_id: str, output: str) -> HistoryItem:
    return HistoryItem(f"item_of_{call_id}", "function_call_output", call_id=call_id, output=output)


def test_a_call_is_told_with_its_result_to_a_model_that_knows_tools() -> None:
    """One without the other makes a prompt that language models refuse."""
    history = [user("u", "q"), call("a"), call("b"), call("c"), result("b", ""), result("a", "5")]
    told = prompt_for([*history, result("unknown", "7")], tools=True)
    assert told[1:] == [
        Message("user", "q"),
        Message("assistant", "", ToolUse("b", "look", "{}", "")),
        Message("assistant", "", ToolUse("a", "look", "{}", "5")),
    ]
    assert not is_unheard(told)


def test_a_larger_model_is_told_more_turns() -> None:
    assert said(prompt_for(turns(7), turns=4))[0] == "q0"
    assert said(prompt_for(turns(8), turns=4))[0] == "q4"


def test_what_the_system_said_is_never_dropped() -> None:
    history = [HistoryItem("s", "message", "system", "the user is called Anna"), *turns(9)]
    assert said(prompt_for(history))[0] == "the user is called Anna"


def test_only_a_user_who_spoke_last_can_be_unheard() -> None:
    assert is_unheard(prompt_for([*turns(2), user("u", "")]))
    assert not is_unheard(prompt_for(turns(2)))
    assert not is_unheard(prompt_for([user("u", ""), assistant("a", "Sorry?")]))
    assert not is_unheard(prompt_for([]))
