"""A plugin that runs on an executor.

Owns: ``ModelPlugin`` and ``ModelSession`` over the stage port; what the loss of a place is to a session.
Does not own: the plugin (``plugin_stage`` makes it there), restarts and replicas (``executor``).
Here because: the server drives a model elsewhere like one that is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from counterpoint.errors import ModelOpenFailed
from counterpoint.plugins.contract import (
    Capabilities,
    Failure,
    Fence,
    ModelEvent,
    ModelPlugin,
    Outlet,
    PluginLoad,
    ResponseRequest,
    Scope,
    StepInput,
)
from counterpoint.plugins.loading import load_plugin
from counterpoint.protocol.config import SessionConfig

from . import plugin_stage as commands
from .executor import Executor
from .link import Place
from .messages import Method
from .remote import RemoteStage
from .stage import StageLost, StageSpec

_STAGE: Final = "counterpoint.stages.plugin_stage:PluginStage"
#: A session waits this long for a place that is being started again.
OPEN_TIMEOUT_S: Final = 30.0


class PlacedPlugin:
    """``replicas`` of the plugin ``name``, each in a ``place`` of its own.

    A twin that is never started stays here: it says what the model can do, and checks configurations.
    Detectors that the plugin brings are not used: detection is on the server's side.
    """

    def __init__(self, name: str, options: Mapping[str, Any], place: Place, replicas: int = 1) -> None:
        self._twin: ModelPlugin = load_plugin(name, options)
        self._spec = StageSpec(_STAGE, {"name": name, "options": dict(options)})
        self._place = place
        self._replicas = replicas
        self._executor: Executor | None = None
        self._requests = count(1)

    def capabilities(self) -> Capabilities:
        return self._twin.capabilities()

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        return self._twin.validate(config, current)

    async def start(self) -> None:
        executor = Executor(self._place, self._spec, self._replicas)
        await executor.start()
        self._executor = executor

    def create_session(self, session_id: str) -> PlacedSession:
        if self._executor is None:
            raise ModelOpenFailed("the model was not started")
        return PlacedSession(session_id, f"{session_id}/{next(self._requests)}", self._executor)

    def load(self) -> PluginLoad:
        return PluginLoad(healthy=False) if self._executor is None else self._executor.load()

    async def stop(self) -> None:
        if self._executor is not None:
            await self._executor.stop()

    def detectors(self) -> Sequence[object]:
        return ()


class PlacedSession:
    """After a loss its calls do nothing: ``Failure`` has said all, and another session takes its place."""

    def __init__(self, session_id: str, request: str, executor: Executor) -> None:
        self._session_id = session_id
        self._request = request
        self._executor = executor
        self._stage: RemoteStage | None = None
        self._outlet: Outlet | None = None
        #: Of the newest work: a loss is reported under it.
        self._fence = Fence(session_id, 0)

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        """Waits for a place, and tries another one when that is lost meanwhile."""
        self._outlet = outlet
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                while True:
                    stage = self._stage = await self._executor.choose()
                    try:
                        await stage.open(self._request, commands.Setup(self._session_id, config), self)
                    except StageLost:
                        continue
                    return
        except TimeoutError as error:
            raise ModelOpenFailed("no place for the model to run in") from error

    async def push(self, step: StepInput) -> None:
        self._fence = _newer(self._fence, step.fence)
        await self._call(Method.PROCESS, step)

    async def prepare(self, request: ResponseRequest) -> None:
        await self._call(Method.CONTROL, commands.Prepare(request))

    async def respond(self, request: ResponseRequest) -> None:
        self._fence = _newer(self._fence, request.fence)
        await self._call(Method.CONTROL, commands.Respond(request))

    async def cancel(self, old: Fence, new: Fence) -> None:
        self._fence = _newer(self._fence, new)
        await self._call(Method.CONTROL, commands.Cancel(old, new))

    async def abort(self, fence: Fence) -> None:
        await self._call(Method.CONTROL, commands.AbortAnswer(fence))

    async def forget(self, input: int) -> None:
        await self._call(Method.CONTROL, commands.Forget(input))

    async def truncate(self, fence: Fence, heard_chars: int, heard_samples: int) -> None:
        await self._call(Method.CONTROL, commands.Truncate(fence, heard_chars, heard_samples))

    async def update(self, config: SessionConfig) -> None:
        await self._call(Method.CONTROL, commands.Update(config))

    async def close(self) -> None:
        await self._call(Method.CLOSE, None)

    # ------------------------------------------------------------------ Requester

    def said(self, output: tuple[Fence, ModelEvent]) -> None:
        if self._outlet is not None:
            self._outlet.emit(*output)

    async def writable(self) -> None:
        if self._outlet is not None:
            await self._outlet.writable()

    def lost(self) -> None:
        self._stage = None
        self.said((self._fence, Failure("model_failed", Scope.SESSION, retryable=True)))

    async def _call(self, method: Method, value: Any) -> None:
        if self._stage is None:
            return
        try:
            if method is Method.CLOSE:
                await self._stage.close(self._request)
            else:
                await self._stage.call(method, self._request, value)
        except StageLost:
            return


def _newer(old: Fence, new: Fence) -> Fence:
    return old if old.epoch > new.epoch else Fence(new.session, new.epoch)
