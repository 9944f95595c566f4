"""A scripted model that listens with the embedded voice.

Owns: the plugin: the neural detectors and the recogniser in front, answers whose every sample is known.
Does not own: the answers (``models.scripted``), hearing (``models.cascade.hearing``).
Here because: whose audio a client got can be proven only of a ramp, and interrupting only by real speech.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from counterpoint.models.cascade.detectors import SileroDetector, SmartTurnModel
from counterpoint.models.cascade.embedded import EmbeddedVoice
from counterpoint.models.cascade.hearing import Hearing
from counterpoint.models.cascade.stages import INPUT_RATE
from counterpoint.models.scripted.call_log import CallLog
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.models.scripted.script import Lifecycle
from counterpoint.models.scripted.session import ScriptedSession
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.plugins.contract import Capabilities, Outlet, StepInput
from counterpoint.protocol.config import SessionConfig


class ListeningPlugin(ScriptedPlugin):
    """A ``ModelPlugin``; ``voice`` is stopped by whoever made it."""

    def __init__(self, engines: VoiceEngines, voice: EmbeddedVoice) -> None:
        super().__init__({})
        self._engines = engines
        self._voice = voice

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), input_rate=INPUT_RATE)

    def detectors(self) -> Sequence[object]:
        return SileroDetector(self._engines.vad), SmartTurnModel(self._engines.turn_end)

    def create_session(self, session_id: str) -> ListeningSession:
        return ListeningSession(session_id, self._voice)


class ListeningSession(ScriptedSession):
    """Recognises what it is told, and answers by its script."""

    _hearing: Hearing

    def __init__(self, session_id: str, voice: EmbeddedVoice) -> None:
        super().__init__(session_id, Lifecycle(), CallLog(), set())
        self._transcriber = voice.stages.transcriber

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        await super().open(config, outlet)
        self._hearing = Hearing(self._transcriber, outlet.emit)

    async def push(self, step: StepInput) -> None:
        self._hearing.feed(step)
        if step.final and step.transcribe:
            self._hearing.tell(step.input, failure=True)

    async def forget(self, input: int) -> None:
        self._hearing.forget(input)

    async def close(self) -> None:
        await super().close()
        await self._hearing.close()
