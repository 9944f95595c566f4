"""The scripted model as a plugin: ``--model scripted``.

Owns: its capabilities, its options, the call log of all its sessions.
Does not own: what a session does with a script (``session``).
Here because: it is made, validated and shared like every other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from counterpoint.plugins.authoring import read_options, with_known_voice
from counterpoint.plugins.contract import Capabilities, Interaction, PluginLoad
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.config import SessionConfig

from .call_log import CallLog
from .script import Lifecycle, read_scripts
from .session import ScriptedSession

#: Input arrives at the session's own rate, so that ``echo_input`` gives back the very bytes.
_CAPABILITIES: Final = Capabilities(
    Interaction.TURN,
    input_rate=SESSION_RATE,
    output_rate=SESSION_RATE,
    images=True,
    tools=True,
    knobs=("script",),
)


class ScriptedPlugin:
    """A ``ModelPlugin``. Its options are those of ``Lifecycle``, for sessions whose script does not say."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._lifecycle = read_options(options, Lifecycle)
        self._log = CallLog()
        self._open_sessions: set[str] = set()

    @property
    def call_log(self) -> list[dict[str, Any]]:
        """The newest calls into the model, oldest first, each with its request and loop time."""
        return self._log.entries()

    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        read_scripts(config.extra_body)
        return with_known_voice(config, _CAPABILITIES)

    async def start(self) -> None:
        """There is nothing to load."""

    def create_session(self, session_id: str) -> ScriptedSession:
        return ScriptedSession(session_id, self._lifecycle, self._log, self._open_sessions)

    def load(self) -> PluginLoad:
        return PluginLoad(sessions=len(self._open_sessions))

    async def stop(self) -> None:
        """There is nothing to give back."""

    def detectors(self) -> Sequence[object]:
        return ()
