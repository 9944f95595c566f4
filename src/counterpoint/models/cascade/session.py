"""One session of the cascade: what is being answered, and what may be asked next.

Owns: the answer prepared in a pause, the replies under way, reading ahead while idle.
Does not own: what was heard (``hearing``), making an answer (``answer``), sending it (``reply``).
Here because: an answer may be prepared only if it is as easily dropped without a trace as used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from counterpoint.plugins.contract import Fence, HistoryItem, ModelEvent, Outlet, ResponseRequest, StepInput
from counterpoint.protocol.config import SessionConfig

from .ahead import Ahead
from .answer import Part, begin_answer
from .hearing import Hearing
from .prompt import conversation
from .reply import Reply
from .stages import Message, Stages

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Prepared:
    request: ResponseRequest
    parts: Ahead[Part]


class CascadeSession:
    """A ``ModelSession``. ``open_sessions`` has the id of every session that still holds something."""

    def __init__(self, session_id: str, stages: Stages, open_sessions: set[str]) -> None:
        self._id = session_id
        self._stages = stages
        self._open_sessions = open_sessions
        self._outlet: Outlet
        self._hearing = Hearing(stages.transcriber, self._emit)
        self._prepared: _Prepared | None = None
        self._replies: dict[int, Reply] = {}  #: by turn
        self._instructions = ""
        #: The conversation as far as it is known here: what the next prompt will begin with.
        self._history: Sequence[HistoryItem] = ()
        self._reading: asyncio.Task[None] | None = None

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        self._outlet = outlet
        self._open_sessions.add(self._id)
        self._instructions = config.instructions
        self._read_ahead()

    async def push(self, step: StepInput) -> None:
        prepared = self._prepared
        if self._hearing.feed(step) and prepared is not None and prepared.request.input == step.input:
            self._drop_prepared()
        if step.final and step.transcribe:
            self._hearing.tell(step.input, failure=True)

    async def prepare(self, request: ResponseRequest) -> None:
        """Begin the answer; nothing of it is sent before ``respond``."""
        stale = self._hearing.refresh(request.input)
        if stale or self._prepared is None or self._prepared.request != request:
            self._drop_prepared()
            self._prepared = _Prepared(request, self._begin(request))

    async def respond(self, request: ResponseRequest) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared.request == request:
            parts = prepared.parts
        else:
            if prepared is not None:
                prepared.parts.cancel()
            parts = self._begin(request)
        reply = Reply(request, parts, self._outlet)
        self._replies[request.fence.turn] = reply
        reply.task.add_done_callback(lambda _: self._ended(reply))
        if any(item.text is None and item.input == request.input for item in request.history):
            self._hearing.tell(request.input, failure=False)

    async def cancel(self, old: Fence, new: Fence) -> None:
        self._drop_prepared()
        for reply in list(self._replies.values()):
            if reply.request.fence.epoch <= old.epoch and not reply.request.out_of_band:
                reply.cancel()

    async def abort(self, fence: Fence) -> None:
        if (reply := self._replies.get(fence.turn)) is not None:
            reply.cancel()

    async def forget(self, input: int) -> None:
        self._hearing.forget(input)
        if self._prepared is not None and self._prepared.request.input == input:
            self._drop_prepared()

    async def truncate(self, fence: Fence, heard_chars: int, heard_samples: int) -> None:
        """Each request says what was heard, and nothing else is remembered here."""

    async def update(self, config: SessionConfig) -> None:
        if config.instructions != self._instructions:
            self._instructions = config.instructions
            self._read_ahead()

    async def close(self) -> None:
        replies = list(self._replies.values())
        for reply in replies:
            reply.cancel()
        await asyncio.gather(*(reply.task for reply in replies), return_exceptions=True)
        if self._prepared is not None:
            await self._prepared.parts.aclose()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        await self._hearing.close()
        self._stages.language_model.release(self._id)
        self._open_sessions.discard(self._id)

    def _begin(self, request: ResponseRequest) -> Ahead[Part]:
        """Start making an answer, with the model's whole attention."""
        self._stop_reading()
        newest = request.history[-1] if request.history else None

        async def words(item: HistoryItem) -> str:
            return await self._hearing.words(item, required=item is newest)

        async def prompt() -> Sequence[Message]:
            return await conversation(request.history, request.instructions, words, self._stages)

        return begin_answer(request, prompt, self._stages, self._id)

    def _drop_prepared(self) -> None:
        if self._prepared is not None:
            self._prepared.parts.cancel()
            self._prepared = None

    def _ended(self, reply: Reply) -> None:
        """After an answer that was sent whole, read it while the user listens to it."""
        del self._replies[reply.request.fence.turn]
        if reply.complete and not reply.request.out_of_band:
            said = HistoryItem(id="", type="message", role="assistant", text=reply.text)
            self._history = (*reply.request.history, said)
            self._read_ahead()

    def _read_ahead(self) -> None:
        self._stop_reading()
        self._reading = asyncio.create_task(self._read(), name="read ahead")

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read(self) -> None:
        """Let the model read the beginning of the next prompt. An attempt: nobody waits for it."""

        async def words(item: HistoryItem) -> str:
            return await self._hearing.words(item, required=False)

        try:
            messages = await conversation(
                self._history, self._instructions, words, self._stages, turn_to_come=True
            )
            read = [each for each in messages if each.text or each.use]
            await self._stages.language_model.prefill(self._id, read)
        except Exception as error:
            log.warning("reading ahead failed", session=self._id, exc_info=error)

    def _emit(self, fence: Fence, event: ModelEvent) -> None:
        self._outlet.emit(fence, event)
