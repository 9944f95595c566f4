"""What an answer consists of: the ramp, even marks, calls, token counts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.models.support import assistant, request, user

from counterpoint.models.scripted import content
from counterpoint.models.scripted.script import read_scripts
from counterpoint.plugins.contract import (
    AudioDelta,
    HistoryItem,
    ItemEnd,
    ModelEvent,
    TextDelta,
    ToolCall,
    TurnStatus,
)
from counterpoint.protocol.tools import NamedTool, Tool


def answer_to(script: dict[str, Any], turn: int = 1, heard: bytes = b"", **changes: Any) -> content.Answer:
    (read,) = read_scripts({"script": script})
    return content.plan(read, request(turn, **changes), heard)


def events_of(script: dict[str, Any], turn: int = 1, heard: bytes = b"", **changes: Any) -> list[ModelEvent]:
    (read,) = read_scripts({"script": script})
    asked = request(turn, **changes)
    return list(content.events(content.plan(read, asked, heard), asked, read.chunk_ms))


def samples_of(events: list[ModelEvent]) -> list[int]:
    pcm = b"".join(event.pcm for event in events if isinstance(event, AudioDelta))
    return [int(sample) for sample in np.frombuffer(pcm, "<i2")]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AudioDelta | TextDelta))


@pytest.mark.parametrize("audio_ms", [1237, 80, 1, 0])
@pytest.mark.parametrize("chunk_ms", [80, 7, 5000])
def test_the_ramp_is_complete_whatever_the_chunks(audio_ms: int, chunk_ms: int) -> None:
    """Sample i of response k is (k * 7919 + i) mod 32768, to the last sample (case D-14)."""
    events = events_of({"audio_ms": audio_ms, "chunk_ms": chunk_ms}, turn=5)
    assert samples_of(events) == [(5 * 7919 + i) % 32768 for i in range(audio_ms * 24)]


def test_the_ramp_runs_on_over_the_items_of_a_response() -> None:
    items = [{"audio_ms": 100}, {"type": "function_call", "name": "f"}, {"audio_ms": 50}, {"audio_ms": 30}]
    events = events_of({"items": items}, turn=2)
    assert samples_of(events) == [(2 * 7919 + i) % 32768 for i in range(180 * 24)]


def test_text_is_whole_and_marks_are_even() -> None:
    events = events_of({"audio_ms": 4000, "words": 20, "chunk_ms": 90})
    text = " ".join(f"word{n}" for n in range(1, 21))
    assert text_of(events) == text
    samples = chars = 0
    for event in events:
        assert isinstance(event, AudioDelta)
        (mark,) = event.marks
        assert (mark.samples, mark.chars) == (len(event.pcm) // 2, len(event.text))
        samples, chars = samples + mark.samples, chars + mark.chars
        assert chars == len(text) * samples // 96_000


def test_a_written_answer_has_text_and_no_audio() -> None:
    events = events_of({"text": "only written"}, modalities=("text",))
    assert all(isinstance(event, TextDelta) for event in events)
    assert text_of(events) == "only written"


def test_a_message_without_audio_is_written_whole() -> None:
    assert events_of({"audio_ms": 0, "text": "hi"}) == [TextDelta("hi")]
    assert events_of({"audio_ms": 0, "words": 0}) == []


def test_messages_in_a_row_are_parted_and_calls_part_themselves() -> None:
    call = {"type": "function_call", "name": "f"}
    events = events_of({"audio_ms": 10, "items": [{}, {}, call, {}]})
    kinds = [type(event) for event in events]
    assert kinds == [AudioDelta, ItemEnd, AudioDelta, ToolCall, AudioDelta]


def test_arguments_come_in_pieces_that_make_the_whole() -> None:
    """A call can be interrupted half-way (case G-04)."""
    arguments = json.dumps({"city": "Aachen", "when": "tomorrow"})
    calls = [{"name": "weather", "arguments": arguments}, {"name": "none", "arguments": ""}]
    events = [event for event in events_of({"tool_calls": calls}) if isinstance(event, ToolCall)]
    first = [event for event in events if event.index == 0]
    assert "".join(event.arguments for event in first) == arguments
    assert [event.final for event in first] == [False] * (len(first) - 1) + [True]
    assert len(first) > 2
    assert events[-1] == ToolCall(1, "none", "{}", final=True)


def test_echo_of_the_input_is_byte_exact() -> None:
    heard = np.random.default_rng(1).integers(-32768, 32767, 4801, dtype=np.int16).tobytes()
    events = events_of({"echo_input": True, "chunk_ms": 30}, heard=heard)
    assert b"".join(event.pcm for event in events if isinstance(event, AudioDelta)) == heard


def test_echo_of_the_history_is_the_history() -> None:
    history = (
        user("u1", "hello"),
        user("u2", None, input=2),
        assistant("a1", "gr\u00fc\u00df"),
        HistoryItem("c1", "function_call", call_id="x", name="f", arguments='{"a":1}'),
        HistoryItem("o1", "function_call_output", call_id="x", output="42"),
    )
    assert json.loads(text_of(events_of({"echo_history": True}, history=history))) == [
        {"id": "u1", "type": "message", "role": "user", "text": "hello"},
        {"id": "u2", "type": "message", "role": "user", "text": None},
        {"id": "a1", "type": "message", "role": "assistant", "text": "gr\u00fc\u00df"},
        {"id": "c1", "type": "function_call", "role": None, "text": '{"a":1}'},
        {"id": "o1", "type": "function_call_output", "role": None, "text": "42"},
    ]


def test_echo_of_the_history_shows_the_instructions_in_force() -> None:
    """Case I-06."""
    entries = json.loads(text_of(events_of({"echo_history": True}, instructions="be brief")))
    assert entries == [{"id": None, "type": "message", "role": "system", "text": "be brief"}]


def test_an_echo_of_echoes_keeps_its_size() -> None:
    """Each history quotes the answer before it, twice as long: forty of them would fill any memory."""
    history = [user("u1", "hello")]
    for turn in range(40):
        text = text_of(events_of({"echo_history": True}, history=tuple(history)))
        assert len(text) < 2 * content.MAX_HISTORY_CHARS
        if len(history[-1].text or "") < content.MAX_HISTORY_CHARS:
            assert json.loads(text)[-1]["text"] == history[-1].text, "the newest is there"
        history.append(assistant(f"a{turn}", text))


def test_more_words_than_asked_for_are_cut_with_their_audio() -> None:
    answer = answer_to({"audio_ms": 1000, "words": 10}, max_output_tokens=4)
    assert answer.status is TurnStatus.MAX_OUTPUT_TOKENS
    assert answer.parts[0].text == "word1 word2 word3 word4"  # type: ignore[union-attr]
    assert answer.parts[0].audio_ms == 400  # type: ignore[union-attr]
    assert answer_to({"words": 10}, max_output_tokens=10).status is TurnStatus.COMPLETED


def test_usage_counts_words() -> None:
    asked = request(1, user("u", "one two"), assistant("a", "three"), instructions="be brief")
    (script,) = read_scripts({"script": {"words": 7}})
    usage = content.usage(content.plan(script, asked, b""), asked)
    assert (usage.input_tokens, usage.output_tokens) == (5, 7)


WEATHER = Tool(
    "weather",
    parameters={
        "$schema": "any",
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"enum": ["C", "F"]},
            "exact": {"type": "boolean"},
            "at": {"type": "array"},
            "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            "optional": {"type": "string"},
        },
        "required": ["city", "days", "unit", "exact", "at", "where"],
    },
)


def test_sample_call_fills_the_required_properties() -> None:
    call = content.sample_call(request(tools=(WEATHER, Tool("other"))))
    assert call is not None
    assert call.name == "weather"
    assert json.loads(call.arguments) == {
        "city": "sample",
        "days": 1,
        "unit": "C",
        "exact": True,
        "at": [],
        "where": {"lat": 1},
    }


def test_sample_call_is_the_chosen_tool() -> None:
    call = content.sample_call(request(tools=(WEATHER, Tool("other")), tool_choice=NamedTool("other")))
    assert call is not None
    assert (call.name, call.arguments) == ("other", "{}")


def test_no_sample_call_without_tools_or_when_forbidden_or_made() -> None:
    made = HistoryItem("c1", "function_call", call_id="x", name="weather", arguments="{}")
    assert content.sample_call(request()) is None
    assert content.sample_call(request(tools=(WEATHER,), tool_choice="none")) is None
    assert content.sample_call(request(1, made, tools=(WEATHER,))) is None
