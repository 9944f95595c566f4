"""Making an answer: its length, its parts, and what it counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from tests.models.cascade.fakes import FakeLanguageModel, Fakes, fakes, sound_of
from tests.models.support import request

from counterpoint.models.cascade.answer import Part, Sentence, begin_answer
from counterpoint.models.cascade.stages import Message, Piece, Stages, Writing, Written
from counterpoint.plugins.contract import ResponseRequest, ToolCall, TurnEnd, TurnStatus, Usage
from counterpoint.protocol.tools import Tool
from counterpoint.testing.virtual_time import run

PROMPT = [Message("system", "be kind"), Message("user", "hi")]


async def prompt() -> Sequence[Message]:
    return PROMPT


def parts_of(stages: Fakes, asked: ResponseRequest) -> list[Part]:
    async def main() -> list[Part]:
        return [part async for part in begin_answer(asked, prompt, stages.stages(), "sess")]

    return run(main())


WRITTEN = request(modalities=("text",))


def texts(parts: list[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Sentence)]


def test_the_first_clause_comes_first_and_sentences_after_it() -> None:
    parts = parts_of(fakes("", "Well, you see, it is so. And that is that. Bye."), request(voice="alto"))
    assert parts == [
        Sentence("Well, you see,", sound_of("Well, you see,")),
        Sentence(" it is so.", sound_of("it is so.")),
        Sentence(" And that is that.", sound_of("And that is that.")),
        Sentence(" Bye.", sound_of("Bye.")),
        TurnEnd(TurnStatus.COMPLETED, Usage(input_tokens=3, output_tokens=11)),
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("One is enough. Two are too.", ["One is enough.", " Two are too."]),
        ('He said: "so be it." She did.', ['He said: "so be it."', " She did."]),
        ("One, two, three, four! Five?", ["One, two, three,", " four!", " Five?"]),
    ],
)
def test_an_answer_ends_after_enough_sentences(written: str, said: list[str]) -> None:
    """And the model with it."""
    stages = fakes("", f"{written} " + "More of it. " * 100, sentences=2)
    parts = parts_of(stages, WRITTEN)
    assert texts(parts) == said
    assert stages.running == 0
    end = parts[-1]
    assert isinstance(end, TurnEnd)
    assert end.status is TurnStatus.COMPLETED
    assert end.usage is not None
    assert end.usage.output_tokens < 20


def test_an_answer_that_ends_by_itself_is_whole() -> None:
    assert texts(parts_of(fakes("", "No end in sight", sentences=2), WRITTEN)) == ["No end in sight"]


def test_enough_sentences_within_the_limit_are_no_cut() -> None:
    parts = parts_of(fakes("", "One is enough. Two more.", sentences=1), request(max_output_tokens=4))
    assert texts(parts) == ["One is enough."]
    assert isinstance(parts[-1], TurnEnd)
    assert parts[-1].status is TurnStatus.COMPLETED


class CallingModel(FakeLanguageModel):
    async def stream(self, messages: Sequence[Message], writing: Writing) -> AsyncGenerator[Written]:
        self.writings.append(writing)
        yield Piece("Let me look. ")
        yield ToolCall(0, "look", "{}")


def test_calls_pass_through_and_tools_reach_the_model() -> None:
    """A language model elsewhere may call functions; the embedded one knows none."""
    stages = fakes()
    model = CallingModel([])
    asked = request(tools=(Tool("look"),), tool_choice="required", modalities=("text",), max_output_tokens=50)

    async def main() -> list[Part]:
        answer = begin_answer(asked, prompt, Stages(stages.transcriber, model, stages.synthesizer), "sess")
        return [part async for part in answer]

    parts = run(main())
    assert ToolCall(0, "look", "{}") in parts
    assert texts(parts) == ["Let me look."]
    assert model.writings == [Writing("sess", 50, (Tool("look"),), "required")]
