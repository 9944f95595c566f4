"""A server that is ours and pretends to be another: what it says passes through a function of the test.

Owns: ``disguised``: a WebSocket proxy in front of a server.
Does not own: the server, what is changed.
Here because: checks must be seen to fail, and to let other servers be other.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

Event = dict[str, Any]
#: What is said instead of an event, and the close code instead of one.
Rewrite = Callable[[Event], list[Event]]
Recode = Callable[[int], int]


def unchanged(event: Event) -> list[Event]:
    return [event]


@contextlib.asynccontextmanager
async def disguised(
    url: str, rewrite: Rewrite = unchanged, *, recode: Recode = lambda code: code, extensions: bool = True
) -> AsyncIterator[str]:
    """The URL of the proxy. Without ``extensions`` nothing that a client asks for them gets through."""
    async with aiohttp.ClientSession() as http:

        async def serve(request: web.Request) -> web.WebSocketResponse:
            ours = web.WebSocketResponse(protocols=("realtime",), max_msg_size=2**26, autoping=True)
            await ours.prepare(request)
            query = dict(request.query) if extensions else {}
            headers = {"OpenAI-Beta": beta} if (beta := request.headers.get("OpenAI-Beta")) else {}
            async with http.ws_connect(url, params=query, headers=headers, max_msg_size=2**26) as theirs:
                await _both_ways(ours, theirs, rewrite, recode)
            return ours

        app = web.Application()
        app.router.add_get("/v1/realtime", serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield urlsplit(url)._replace(netloc=f"127.0.0.1:{runner.addresses[0][1]}").geturl()
        finally:
            await runner.cleanup()


async def _both_ways(
    ours: web.WebSocketResponse,
    theirs: aiohttp.ClientWebSocketResponse,
    rewrite: Rewrite,
    recode: Recode,
) -> None:
    async def up() -> None:
        async for message in ours:
            await theirs.send_frame(
                message.data if isinstance(message.data, bytes) else message.data.encode(), message.type
            )
        await theirs.close(code=ours.close_code or 1000)

    async with _task(up()):
        async for message in theirs:
            for event in rewrite(json.loads(message.data)):
                await ours.send_str(json.dumps(event))
        await ours.close(code=recode(theirs.close_code or 1000))


@contextlib.asynccontextmanager
async def _task(work: Any) -> AsyncIterator[None]:
    import asyncio

    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
