"""The scripted model as native plugins: ``--model scripted-frame`` and ``--model scripted-unit``.

Owns: their capabilities and options.
Does not own: what they say (``stepped``), slots and steps (``plugins``).
Here because: a client that works with a model of 80 ms frames and with one of 1 s units works with any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec

from counterpoint.plugins.authoring import read_options
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.plugins.step_plugin import StepPlugin
from counterpoint.plugins.step_worker import StepWorker, ThreadWorker
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.config import SessionConfig

from .script import read_scripts
from .stepped import ScriptedSteps

_Positive = Annotated[int, msgspec.Meta(ge=1)]

FRAME_MS: Final = 80
UNIT_MS: Final = 1000


class FrameOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``model.*`` of ``scripted-frame``."""

    slots: _Positive = 16
    #: Loud frames in a row after which it speaks.
    speak_after: _Positive = 5


class UnitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``model.*`` of ``scripted-unit``."""

    slots: _Positive = 16
    #: Loud units in a row after which it speaks.
    speak_after: _Positive = 1


class _Scripted(StepPlugin):
    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        read_scripts(config.extra_body)
        return super().validate(config, current)


class ScriptedFrames(_Scripted):
    """Steps of 80 ms in and out at 24 kHz; a frame in which it listens says nothing."""

    def __init__(
        self, options: Mapping[str, Any], *, worker: Callable[[], StepWorker] = ThreadWorker
    ) -> None:
        read = read_options(options, FrameOptions)
        super().__init__(
            _capabilities(Interaction.FRAME, SESSION_RATE, FRAME_MS, read.slots),
            lambda: ScriptedSteps(read.slots, FRAME_MS, read.speak_after, says_listen=False),
            worker=worker,
        )


class ScriptedUnits(_Scripted):
    """Steps of 1 s, in at 16 kHz and out at 24 kHz; it says of each unit that it listens, or speaks."""

    def __init__(
        self, options: Mapping[str, Any], *, worker: Callable[[], StepWorker] = ThreadWorker
    ) -> None:
        read = read_options(options, UnitOptions)
        super().__init__(
            _capabilities(Interaction.UNIT, 16_000, UNIT_MS, read.slots),
            lambda: ScriptedSteps(read.slots, UNIT_MS, read.speak_after, says_listen=True),
            worker=worker,
        )


def _capabilities(interaction: Interaction, rate: int, step_ms: int, slots: int) -> Capabilities:
    return Capabilities(
        interaction,
        input_rate=rate,
        output_rate=SESSION_RATE,
        step_samples=rate * step_ms // 1000,
        tools=True,
        transcribes=False,
        truncate=False,
        max_sessions=slots,
        knobs=("script",),
    )
