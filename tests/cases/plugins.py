"""The scripted model with faults that no script can express: calls into it that raise, hang or block.

Owns: ``InterceptedPlugin``.
Does not own: what the model does otherwise (``counterpoint.models.scripted``).
Here because: some cases are about a model that breaks its contract, and the shipped one keeps it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.models.scripted.session import ScriptedSession
from counterpoint.plugins.contract import Fence, ResponseRequest, StepInput

#: Awaited before a call into the model of a session, whose id it gets; may raise.
Hook = Callable[[str], Awaitable[None]]


class InterceptedPlugin(ScriptedPlugin):
    """``hooks``: by the name of the call (push, respond, cancel, close)."""

    def __init__(self, hooks: Mapping[str, Hook], options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options or {})
        self.hooks = dict(hooks)

    def create_session(self, session_id: str) -> ScriptedSession:
        return _Intercepted(self, session_id)

    async def before(self, call: str, session_id: str) -> None:
        if (hook := self.hooks.get(call)) is not None:
            await hook(session_id)


class _Intercepted(ScriptedSession):
    def __init__(self, plugin: InterceptedPlugin, session_id: str) -> None:
        super().__init__(session_id, plugin._lifecycle, plugin._log, plugin._open_sessions)
        self._plugin = plugin
        self._id = session_id

    async def push(self, step: StepInput) -> None:
        await self._plugin.before("push", self._id)
        await super().push(step)

    async def respond(self, request: ResponseRequest) -> None:
        await self._plugin.before("respond", self._id)
        await super().respond(request)

    async def cancel(self, old: Fence, new: Fence) -> None:
        await self._plugin.before("cancel", self._id)
        await super().cancel(old, new)

    async def close(self) -> None:
        await self._plugin.before("close", self._id)
        await super().close()


class RaisesAtFirst:
    """A hook that raises on the first ``times`` calls. ``calls``: how often it was called."""

    def __init__(self, times: int = 1) -> None:
        self.calls = 0
        self._times = times

    async def __call__(self, session_id: str) -> None:
        self.calls += 1
        if self.calls <= self._times:
            raise RuntimeError("the model broke")
