"""The cascade as a plugin: ``--model cascade``, the default.

Owns: its options, what of it is loaded and started, what it lends for detection.
Does not own: making stages of options (``assembly``), what a session does (``session``).
Here because: it is made, validated and shared like every other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from counterpoint.errors import PluginError
from counterpoint.models.voice.tts import DEFAULT_VOICE, VOICES
from counterpoint.plugins.authoring import read_options, with_known_voice
from counterpoint.plugins.contract import Capabilities, Interaction, PluginLoad
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.config import SessionConfig

from .assembly import Assembly, Options
from .session import CascadeSession
from .stages import INPUT_RATE, Stages

_EMBEDDED_VOICES: Final = (DEFAULT_VOICE, *(voice for voice in VOICES if voice != DEFAULT_VOICE))


class CascadePlugin:
    """A ``ModelPlugin``. Raises ``ConfigurationError`` where a stage cannot be had."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        read = read_options(options, Options)
        self._assembly = Assembly(read)
        self._capabilities = Capabilities(
            Interaction.TURN,
            input_rate=INPUT_RATE,
            output_rate=SESSION_RATE,
            tools=read.remote_llm is not None,
            voices=_EMBEDDED_VOICES if read.tts is None else read.tts.voices,
        )
        self._stages: Stages | None = None
        self._open_sessions: set[str] = set()

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        """An unknown voice becomes the first."""
        return with_known_voice(config, self._capabilities)

    async def start(self) -> None:
        self._stages = await self._assembly.start()

    def create_session(self, session_id: str) -> CascadeSession:
        if self._stages is None:
            raise PluginError("the cascade has not been started")
        return CascadeSession(session_id, self._stages, self._open_sessions)

    def load(self) -> PluginLoad:
        return PluginLoad(sessions=len(self._open_sessions), healthy=self._stages is not None)

    async def stop(self) -> None:
        self._stages = None
        await self._assembly.stop()

    def detectors(self) -> Sequence[object]:
        """Of a started plugin."""
        if self._stages is None:
            raise PluginError("the cascade has not been started")
        return self._assembly.detectors()
