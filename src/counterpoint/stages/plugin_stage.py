"""A whole plugin as a stage: its sessions are the stage's requests.

Owns: the commands that a session knows beyond input, and how each reaches the plugin's session.
Does not own: the plugin, the sessions' other end (``placed_plugin``).
Here because: a plugin's author writes one class, and its user says where it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from counterpoint.plugins.contract import (
    Fence,
    ModelEvent,
    ModelSession,
    PluginLoad,
    ResponseRequest,
    StepInput,
)
from counterpoint.plugins.loading import load_plugin
from counterpoint.protocol.config import SessionConfig

from .stage import StageOutlet


@dataclass(frozen=True, slots=True)
class Setup:
    session_id: str
    config: SessionConfig


@dataclass(frozen=True, slots=True)
class Prepare:
    request: ResponseRequest


@dataclass(frozen=True, slots=True)
class Respond:
    request: ResponseRequest


@dataclass(frozen=True, slots=True)
class Cancel:
    old: Fence
    new: Fence


@dataclass(frozen=True, slots=True)
class AbortAnswer:
    fence: Fence


@dataclass(frozen=True, slots=True)
class Forget:
    input: int


@dataclass(frozen=True, slots=True)
class Truncate:
    fence: Fence
    heard_chars: int
    heard_samples: int


@dataclass(frozen=True, slots=True)
class Update:
    config: SessionConfig


Command = Prepare | Respond | Cancel | AbortAnswer | Forget | Truncate | Update


class PluginStage:
    """``options``: ``name``, as ``load_plugin`` takes it, and its ``options``."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._plugin = load_plugin(options["name"], options["options"])
        self._sessions: dict[str, ModelSession] = {}
        self._outlet: StageOutlet | None = None

    async def start(self, outlet: StageOutlet) -> None:
        self._outlet = outlet
        await self._plugin.start()

    async def open(self, request: str, setup: Setup) -> None:
        assert self._outlet is not None
        session = self._plugin.create_session(setup.session_id)
        self._sessions[request] = session
        await session.open(setup.config, _SessionOutlet(self._outlet, request))

    async def process(self, request: str, unit: StepInput) -> None:
        await self._sessions[request].push(unit)

    async def control(self, request: str, command: Command) -> None:
        session = self._sessions[request]
        match command:
            case Prepare():
                await session.prepare(command.request)
            case Respond():
                await session.respond(command.request)
            case Cancel(old, new):
                await session.cancel(old, new)
            case AbortAnswer(fence):
                await session.abort(fence)
            case Forget():
                await session.forget(command.input)
            case Truncate():
                await session.truncate(command.fence, command.heard_chars, command.heard_samples)
            case Update(config):
                await session.update(config)
            case _:
                assert_never(command)

    async def abort(self, request: str) -> None:
        """A session that is worked on no more is one that closes."""
        await self.close(request)

    async def close(self, request: str) -> None:
        if (session := self._sessions.get(request)) is not None:
            await session.close()
            self._sessions.pop(request, None)

    def load(self) -> PluginLoad:
        return self._plugin.load()

    async def stop(self) -> None:
        await self._plugin.stop()


class _SessionOutlet:
    """``plugins.contract.Outlet`` of one session."""

    def __init__(self, outlet: StageOutlet, request: str) -> None:
        self._outlet = outlet
        self._request = request

    def emit(self, fence: Fence, event: ModelEvent) -> None:
        self._outlet.emit(self._request, (fence, event))

    async def writable(self) -> None:
        await self._outlet.writable(self._request)
