"""Sending one answer: what was made becomes events, as fast as the client takes them.

Owns: packets, the text and the marks of each sentence, the one terminal event of an answer.
Does not own: making the answer (``answer``), which answer is stopped when (``session``).
Here because: everything that a client hears of a response passes here, so a cancelled task says nothing more.
"""

from __future__ import annotations

import asyncio
from typing import Final, assert_never

import structlog

from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Mark,
    ModelEvent,
    Outlet,
    ResponseRequest,
    TextDelta,
    ToolCall,
    TurnEnd,
)
from counterpoint.protocol.audio import SESSION_RATE

from .ahead import Ahead
from .answer import Part, Sentence
from .failing import StageFailed

log = structlog.get_logger(__name__)

#: 100 ms.
PACKET_BYTES: Final = SESSION_RATE // 10 * 2


class Reply:
    """Sends ``parts`` under the fence of ``request``, from now on."""

    def __init__(self, request: ResponseRequest, parts: Ahead[Part], outlet: Outlet) -> None:
        self.request = request
        #: What was sent, as the client reads it.
        self.text = ""
        #: The answer was sent whole.
        self.complete = False
        self._parts = parts
        self._outlet = outlet
        self.task = asyncio.create_task(self._run(), name=f"reply {request.fence.turn}")

    def cancel(self) -> None:
        """Nothing is emitted from here on, and what makes the answer stops."""
        self.task.cancel()
        self._parts.cancel()

    async def _run(self) -> None:
        try:
            async for part in self._parts:
                await self._send(part)
        except StageFailed as failure:
            log.error(
                "answer failed", session=self.request.fence.session, code=failure.code, reason=str(failure)
            )
            self._emit(Failure(failure.code))
        except Exception as error:
            log.error("answer failed", session=self.request.fence.session, exc_info=error)
            self._emit(Failure())
        finally:
            await self._parts.aclose()

    async def _send(self, part: Part) -> None:
        match part:
            case Sentence():
                await self._send_sentence(part)
            case ToolCall():
                self._emit(part)
            case TurnEnd():
                self.complete = True
                self._emit(part)
            case _:
                assert_never(part)

    async def _send_sentence(self, sentence: Sentence) -> None:
        """All text, and the mark of its end, go with the first packet: a cut lies between marks."""
        self.text += sentence.text
        if not sentence.pcm:
            await self._outlet.writable()
            self._emit(TextDelta(sentence.text))
            return
        end = Mark(len(sentence.pcm) // 2, len(sentence.text))
        for start in range(0, len(sentence.pcm), PACKET_BYTES):
            packet = sentence.pcm[start : start + PACKET_BYTES]
            await self._outlet.writable()
            self._emit(AudioDelta(packet) if start else AudioDelta(packet, sentence.text, (end,)))

    def _emit(self, event: ModelEvent) -> None:
        self._outlet.emit(self.request.fence, event)
