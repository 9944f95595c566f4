"""A server that speaks OpenAI's interface byte by byte as a test says, and remembers what it was asked.

Owns: replies as raw bytes in any pieces, failures of every kind, when a client left.
Does not own: a real language model (``test_llama``), what the answers mean (the tests).
Here because: a client must survive what servers and networks do wrong, which no real one does on demand.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Reply:
    """``pieces`` are written one by one; then the answer ends, is ``cut`` off, or never ends (``hang``)."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class OpenAIServer:
    """Answers ``replies`` in order, the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        #: Set when the first request came.
        self.reached = asyncio.Event()
        #: Set when a client closed its connection before the answer was over.
        self.left = asyncio.Event()
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(request.path, dict(request.headers), await _body(request)))
        self.reached.set()
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        try:
            return await self._write(request, reply)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise

    async def _write(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.hang and not reply.pieces:
            await asyncio.Event().wait()
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        for piece in reply.pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if reply.hang:
            await asyncio.Event().wait()
        if reply.cut and request.transport is not None:
            request.transport.abort()
        return response


async def _body(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        body: dict[str, Any] = await request.json()
        return body
    return {
        name: value.file.read() if isinstance(value, web.FileField) else value
        for name, value in (await request.post()).items()
    }


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncIterator[OpenAIServer]:
    server = OpenAIServer(*replies)
    app = web.Application()
    app.router.add_post("/v1/{path:.*}", server.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


def event(data: object) -> bytes:
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    return event({"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]})


def usage(prompt: int, completion: int, cached: int = 0) -> bytes:
    details = {"cached_tokens": cached}
    counted = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}
    return event({"choices": [], "usage": counted})


DONE = event("[DONE]")


def says(*words: str, finish: str = "stop") -> Reply:
    return Reply([*(chunk(content=word) for word in words), chunk(finish), usage(9, 3, 4), DONE])


def split(reply: bytes, size: int) -> list[bytes]:
    return [reply[start : start + size] for start in range(0, len(reply), size)]
