"""The scripted model in steps."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterpoint.models.scripted.answer import ScriptedFailure
from counterpoint.models.scripted.content import ramp
from counterpoint.models.scripted.stepped import ScriptedSteps
from counterpoint.plugins.contract import AudioDelta, Fence, Listen, StepInput, ToolCall, TurnEnd
from counterpoint.plugins.step_model import Row, StepEvent
from counterpoint.protocol.config import SessionConfig

LOUD = (20_000).to_bytes(2, "little") * 1920
QUIET = bytes(3840)


def config(*scripts: dict[str, Any]) -> SessionConfig:
    return msgspec.structs.replace(SessionConfig(), extra_body={"script": list(scripts)} if scripts else {})


def model(*scripts: dict[str, Any], says_listen: bool = False, slots: int = 1) -> ScriptedSteps:
    made = ScriptedSteps(slots, 80, 3, says_listen=says_listen)
    made.reset(range(slots), [config(*scripts)] * slots)
    return made


def hear(steps: ScriptedSteps, *units: bytes, slot: int = 0, **fields: Any) -> list[StepEvent]:
    said: list[StepEvent] = []
    for audio in units:
        said += steps.step([Row(slot, StepInput(Fence("s", 0), 0, audio, **fields))])[0]
    return said


def pcm(said: list[StepEvent]) -> bytes:
    return b"".join(event.pcm for event in said if isinstance(event, AudioDelta))


def test_it_speaks_after_enough_loud_units_in_a_row() -> None:
    steps = model({"audio_ms": 200, "text": "good day"})
    assert hear(steps, LOUD, LOUD, QUIET, LOUD, LOUD) == []
    said = hear(steps, LOUD, QUIET, QUIET, QUIET)
    assert pcm(said) == ramp(1, 0, 4800)
    assert "".join(event.text for event in said if isinstance(event, AudioDelta)) == "good day"
    assert isinstance(said[-1], TurnEnd)


def test_each_answer_has_a_ramp_of_its_own() -> None:
    steps = model({"audio_ms": 80}, {"audio_ms": 160})
    said = hear(steps, LOUD, LOUD, LOUD, QUIET, LOUD, LOUD, LOUD, QUIET, QUIET)
    assert pcm(said) == ramp(1, 0, 1920) + ramp(2, 0, 3840)


def test_a_unit_model_says_that_it_listens() -> None:
    assert hear(model(says_listen=True), QUIET, LOUD) == [Listen(), Listen()]


def test_forced_to_listen_it_stops_and_counts_anew() -> None:
    steps = model()
    assert pcm(hear(steps, LOUD, LOUD, LOUD, QUIET))
    assert hear(steps, LOUD, force_listen=True) == []
    assert hear(steps, LOUD) == []
    assert hear(steps, LOUD) != []


def test_a_text_is_answered_without_a_sound() -> None:
    steps = model({"audio_ms": 80})
    assert pcm(hear(steps, QUIET, text="hello")) == ramp(1, 0, 1920)


def test_a_script_may_call_a_tool() -> None:
    steps = model({"tool_calls": [{"name": "now"}]})
    said = hear(steps, QUIET, text="what time is it")
    assert [type(event) for event in said] == [ToolCall, TurnEnd]


def test_a_script_may_decide_to_listen() -> None:
    assert hear(model({"listen": True}), LOUD, LOUD, LOUD) == [Listen("scripted")]


def test_a_scripted_failure_moves_no_slot() -> None:
    steps = model({"audio_ms": 800, "fail_at_chunk": 1}, slots=2)
    hear(steps, LOUD, LOUD, LOUD)
    hear(steps, QUIET, slot=1, text="you too")
    for _ in range(2):
        with pytest.raises(ScriptedFailure):
            steps.step(
                [Row(1, StepInput(Fence("s", 0), 0, QUIET)), Row(0, StepInput(Fence("s", 0), 0, QUIET))]
            )
    steps.reset([0], [config({"audio_ms": 80})])
    assert hear(steps, QUIET) == []


def test_a_released_slot_holds_nothing() -> None:
    steps = model()
    steps.release([0])
    steps.release([0])
    assert not steps._slots
