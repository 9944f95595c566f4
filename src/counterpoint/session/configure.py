"""How the configuration of a running session changes.

Owns: ``session.update``: the candidate, the checks that need the session's state, the swap.
Does not own: merging and form (``protocol.config``), what the model accepts (``validate``).
Here because: an update is acknowledged with what is really in force, or refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Capabilities
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import UpdateSession
from counterpoint.protocol.config import OverlapPolicy, SessionConfig, locked, merge
from counterpoint.protocol.events import SessionUpdated

from .effects import UpdateModel
from .input import InputLine
from .out import Out
from .plan import Validate
from .playback import PlaybackLedger
from .state import RunState

_INTERRUPTING = (OverlapPolicy.BARGE_IN_ON_SPEECH, OverlapPolicy.GRADED)


class Configuring:
    def __init__(
        self,
        state: RunState,
        out: Out,
        ledger: PlaybackLedger,
        input: InputLine,
        validate: Validate,
        locked: dict[str, Any],
        describe: Callable[[], dict[str, Any]],
    ) -> None:
        self._state = state
        self._out = out
        self._ledger = ledger
        self._input = input
        self._validate = validate
        self._locked = locked
        self._describe = describe

    def update(self, command: UpdateSession, *, extended: bool) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        current = self._state.config
        asked = merge(current, command.patch, extended=extended or command.extensions)
        candidate = locked(asked, self._locked)
        self._check(current, candidate)
        self._apply(current, self._validate(candidate, current))
        self._out.emit(SessionUpdated(session=self._describe()))

    def _check(self, current: SessionConfig, candidate: SessionConfig) -> None:
        if candidate.model != current.model:
            raise _refuse("session.model", "a session keeps its model")
        if candidate.type is not current.type:
            raise _refuse("session.type", "a session keeps its type")
        if candidate.overlap_policy in _INTERRUPTING and not self._state.capabilities.barge_in:
            raise _refuse("session.overlap_policy", "the model cannot be interrupted", ErrorCode.UNSUPPORTED)
        if self._state.spoke and candidate.audio.output.voice != current.audio.output.voice:
            raise _refuse("session.audio.output.voice", "the voice cannot change after audio was generated")

    def _apply(self, current: SessionConfig, config: SessionConfig) -> None:
        if config == current:
            return
        self._state.config = config
        self._out.do(UpdateModel(config))
        if config.playback_commit_policy is not current.playback_commit_policy:
            self._ledger.set_policy(config.playback_commit_policy, self._state.now)
        if config.audio.input.turn_detection != current.audio.input.turn_detection:
            self._input.reconfigure()


def in_force(validate: Validate, capabilities: Capabilities) -> Validate:
    """``validate``, and what follows from the model's capabilities alone."""

    def checked(candidate: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        return as_able(validate(candidate, current), capabilities)

    return checked


def as_able(config: SessionConfig, capabilities: Capabilities) -> SessionConfig:
    """``config`` as far as the model can do it: who cannot speak writes."""
    if capabilities.audio_output:
        return config
    return msgspec.structs.replace(config, output_modalities=("text",))


def _refuse(param: str, message: str, code: ErrorCode = ErrorCode.INVALID_EVENT) -> ProtocolError:
    return ProtocolError(code, f"{param}: {message}", param=param)
