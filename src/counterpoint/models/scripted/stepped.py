"""The scripted model in steps: it hears every unit, and speaks when it has heard enough.

Owns: ``ScriptedSteps``, a ``StepModel`` whose every sample is known beforehand.
Does not own: what an answer says (``content``), the plugins around it (``native``).
Here because: a native model is tested like a turn-based one, by the position of each sample.

After ``speak_after`` loud units in a row, or when it is asked by text, it says its next script, one unit of
audio a step, and hears nothing meanwhile. Forced to listen it stops, and counts anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from counterpoint.plugins.contract import (
    AudioDelta,
    Fence,
    Listen,
    ResponseRequest,
    StepInput,
    TextDelta,
    TurnEnd,
)
from counterpoint.plugins.step_model import Row, StepEvent
from counterpoint.protocol.config import SessionConfig

from . import content
from .answer import ScriptedFailure
from .playbook import Playbook
from .script import DEFAULT_SCRIPT, Script

#: Mean amplitude, of full scale, from which a unit is loud.
LOUD: Final = 0.05


@dataclass
class _Speech:
    """What is being said, and how much of it was."""

    script: Script
    events: Iterator[content.Said]
    end: TurnEnd
    chunk: int = 0


@dataclass
class _Slot:
    playbook: Playbook = field(default_factory=Playbook)
    answers: int = 0
    loud: int = 0  #: units in a row
    speech: _Speech | None = None


class ScriptedSteps:
    """``step_ms`` is the length of a unit. With ``says_listen`` each unit without speech is a ``Listen``."""

    def __init__(self, batch_size: int, step_ms: int, speak_after: int, *, says_listen: bool) -> None:
        self.batch_size = batch_size
        self._step_ms = step_ms
        self._speak_after = speak_after
        self._says_listen = says_listen
        self._slots: dict[int, _Slot] = {}

    def warm_up(self) -> None:
        """Arithmetic is always warm."""

    def reset(self, slots: Sequence[int], configs: Sequence[SessionConfig]) -> None:
        for number, config in zip(slots, configs, strict=True):
            slot = self._slots[number] = _Slot()
            slot.playbook.read(config.extra_body)

    def update(self, slot: int, config: SessionConfig) -> None:
        self._slots[slot].playbook.read(config.extra_body)

    def release(self, slots: Sequence[int]) -> None:
        for number in slots:
            self._slots.pop(number, None)

    def step(self, rows: Sequence[Row]) -> Sequence[Sequence[StepEvent]]:
        for row in rows:  # before any slot has moved
            _fail_as_scripted(self._slots[row.slot].speech)
        return [self._step(self._slots[row.slot], row.input) for row in rows]

    def _step(self, slot: _Slot, heard: StepInput) -> list[StepEvent]:
        if heard.force_listen:
            slot.speech, slot.loud = None, 0
        if slot.speech is None and not self._is_moved(slot, heard):
            return [Listen()] if self._says_listen else []
        if slot.speech is None:
            slot.speech = self._begin(slot, heard.fence)
        if slot.speech.script.listen:
            slot.speech = None
            return [Listen("scripted")]
        return _say(slot)

    def _is_moved(self, slot: _Slot, heard: StepInput) -> bool:
        """Whether what was heard makes the model speak."""
        samples = np.frombuffer(heard.audio, "<i2").astype(np.int32)
        is_loud = bool(samples.size) and float(np.abs(samples).mean()) >= LOUD * 32768
        slot.loud = slot.loud + 1 if is_loud else 0
        return bool(heard.text) or slot.loud >= self._speak_after

    def _begin(self, slot: _Slot, fence: Fence) -> _Speech:
        slot.answers += 1
        slot.loud = 0
        script = slot.playbook.next_for_answer() or DEFAULT_SCRIPT
        request = ResponseRequest(fence, slot.answers, (), "", ("audio",), "")
        answer = content.Answer(script.parts)
        end = TurnEnd(answer.status, content.usage(answer, request))
        return _Speech(script, content.events(answer, request, self._step_ms), end)


def _say(slot: _Slot) -> list[StepEvent]:
    """The next unit of speech; the turn ends in the step after the last."""
    said: list[StepEvent] = []
    speech = slot.speech
    assert speech is not None
    speech.chunk += 1
    for event in speech.events:
        said.append(event)
        if isinstance(event, AudioDelta | TextDelta):
            return said
    slot.speech = None
    return [*said, speech.end]


def _fail_as_scripted(speech: _Speech | None) -> None:
    if speech is not None and speech.chunk == speech.script.fail_at_chunk:
        raise ScriptedFailure(f"chunk {speech.chunk}")
