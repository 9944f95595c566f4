"""The cascade as a plugin: ``--model cascade``, the default.

Owns: its options, loading the embedded voice once for all sessions, what it lends for detection.
Does not own: installing the voice (``models.voice.install``), what a session does (``session``).
Here because: it is made, validated and shared like every other model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from counterpoint.errors import PluginError
from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.files import find_files, require_runtime
from counterpoint.models.voice.tts import DEFAULT_VOICE, VOICES
from counterpoint.plugins.authoring import read_options, with_known_voice
from counterpoint.plugins.contract import Capabilities, Interaction, PluginLoad
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.config import SessionConfig

from .detectors import SileroDetector, SmartTurnModel
from .embedded import EmbeddedVoice
from .session import CascadeSession
from .stages import INPUT_RATE

log = structlog.get_logger(__name__)

#: An unknown voice becomes the first.
_CAPABILITIES: Final = Capabilities(
    Interaction.TURN,
    input_rate=INPUT_RATE,
    output_rate=SESSION_RATE,
    voices=(DEFAULT_VOICE, *(voice for voice in VOICES if voice != DEFAULT_VOICE)),
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``model.*`` of the cascade."""

    #: Where the weights of the voice are; where they were installed to, if not given.
    directory: str | None = None
    #: A GGUF file to run instead of the language model that ships; its chat format must be ChatML.
    llm: str | None = None


class CascadePlugin:
    """A ``ModelPlugin``. Raises ``ConfigurationError`` when the voice is not installed."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = read_options(options, Options)
        self._directory = Path(self._options.directory) if self._options.directory else None
        require_runtime()
        find_files(self._directory)
        self._engines: VoiceEngines | None = None
        self._voice: EmbeddedVoice | None = None
        self._open_sessions: set[str] = set()

    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        return with_known_voice(config, _CAPABILITIES)

    async def start(self) -> None:
        self._engines = await asyncio.to_thread(self._load)
        self._voice = EmbeddedVoice(self._engines)

    def create_session(self, session_id: str) -> CascadeSession:
        if self._voice is None:
            raise PluginError("the cascade has not been started")
        return CascadeSession(session_id, self._voice.stages, self._open_sessions)

    def load(self) -> PluginLoad:
        return PluginLoad(sessions=len(self._open_sessions), healthy=self._voice is not None)

    async def stop(self) -> None:
        if self._voice is not None:
            await asyncio.to_thread(self._voice.stop)
            self._voice = self._engines = None

    def detectors(self) -> Sequence[object]:
        """Of a started plugin."""
        if self._engines is None:
            raise PluginError("the cascade has not been started")
        return SileroDetector(self._engines.vad), SmartTurnModel(self._engines.turn_end)

    def _load(self) -> VoiceEngines:
        llm = Path(self._options.llm) if self._options.llm else None
        engines = VoiceEngines.load(self._directory, lambda name: log.info("loading", engine=name), llm=llm)
        engines.warm_up()
        return engines
