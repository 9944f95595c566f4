"""One answer under way: events in their time, until the end, a scripted failure or a cancel.

Owns: pace, stall, hang, failure and lingering of one response.
Does not own: what is said (``content``), which answer is stopped by which fence (``session``).
Here because: an answer is one task with one way to end it, and the session only keeps a table of them.

Time is the running loop's alone, so a virtual clock drives it.
"""

from __future__ import annotations

import asyncio

from counterpoint.errors import PluginError
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    ItemEnd,
    Listen,
    ModelEvent,
    Outlet,
    ResponseRequest,
    TurnEnd,
)
from counterpoint.protocol.audio import SESSION_RATE

from . import content
from .script import Pace, Script


class ScriptedFailure(PluginError):
    """The script said that the stage raises here."""


class AnswerTask:
    """Says ``answer`` as ``script`` wants it, under the fence of ``request``. Starts when it is made.

    ``task`` returns the ``TurnEnd`` that it emitted, or None where the answer ended in another way.
    """

    def __init__(
        self, script: Script, answer: content.Answer, request: ResponseRequest, outlet: Outlet
    ) -> None:
        self.request = request
        self._script = script
        self._answer = answer
        self._outlet = outlet
        self.task = asyncio.create_task(self._run(), name=f"scripted answer {request.fence.turn}")

    def stop(self) -> None:
        """Say nothing more; a script may linger for ``ignore_cancel_ms`` before it obeys."""
        if self._script.ignore_cancel_ms:
            delay = self._script.ignore_cancel_ms / 1000
            asyncio.get_running_loop().call_later(delay, self.task.cancel)
        else:
            self.task.cancel()

    async def _run(self) -> TurnEnd | None:
        await asyncio.sleep(self._script.stall_first_ms / 1000)
        if self._script.hang:
            await asyncio.Event().wait()
        if self._script.listen:
            self._emit(Listen())
            return None
        try:
            await self._say()
        except ScriptedFailure:
            self._emit(Failure())
            return None
        end = TurnEnd(self._answer.status, content.usage(self._answer, self.request))
        self._emit(end)
        return end

    async def _say(self) -> None:
        """Emit the chunks, each at its deadline: an error of one wake-up is not carried to the next.

        Time in which the outlet holds us back moves all later deadlines, so that the pace goes on
        from there instead of catching up in a burst.
        """
        loop = asyncio.get_running_loop()
        due = loop.time()
        number = 0
        for event in content.events(self._answer, self.request, self._script.chunk_ms):
            if not isinstance(event, ItemEnd):
                if number == self._script.fail_at_chunk:
                    raise ScriptedFailure(f"chunk {number}")
                await asyncio.sleep(max(0.0, due - loop.time()))
                due += await self._room()
                due += self._seconds(event)
                number += 1
            self._emit(event)

    async def _room(self) -> float:
        """Wait until more may be produced; returns the seconds that this took."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        await self._outlet.writable()
        return loop.time() - asked

    def _seconds(self, event: ModelEvent) -> float:
        """How long the chunk lasts before the next is due."""
        if self._script.pace is Pace.BURST:
            return 0.0
        if isinstance(event, AudioDelta):
            return len(event.pcm) / 2 / SESSION_RATE
        return self._script.chunk_ms / 1000

    def _emit(self, event: ModelEvent) -> None:
        self._outlet.emit(self.request.fence, event)
