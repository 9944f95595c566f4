"""What a message costs the server, against an echo on the same transport.

Owns: the load, the echo server that everything is a ratio of, reading the processor time of both.
Does not own: the command line (``cli.bench``), anything that a server runs.
Here because: a server that does nothing but echo is the floor; what a session adds to it is our cost.

One pair is one message in and one out, 20 ms of audio each, about 1.4 kB. Both servers run in processes of
their own, on aiohttp and uvloop, and are measured by their own processor time; rounds of the two alternate,
and the best of each counts, so that a busy machine harms both alike.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .figures import Figure
from .server_process import server_process

PAIRS = 4000
ROUNDS = 5
FRAME_MS = 20

_ECHO_SERVER = """
import asyncio, uvloop
from aiohttp import WSMsgType, web

async def echo(request):
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data)
    return socket

async def main():
    app = web.Application()
    app.router.add_get("/v1/realtime", echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"ready ws://127.0.0.1:{runner.addresses[0][1]}/v1/realtime", flush=True)
    await asyncio.Event().wait()

uvloop.run(main())
"""

_APPEND = json.dumps(
    {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(48 * FRAME_MS)).decode()}
)


def measure(progress: Callable[[str], None]) -> list[Figure]:
    """Processor time per pair of messages, of both servers, and their ratio."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> list[Figure]:
    serve = [sys.executable, "-m", "counterpoint", "serve", "--model", "scripted", "--port", "0"]
    async with server_process([sys.executable, "-c", _ECHO_SERVER]) as echo, server_process(serve) as ours:
        echo_us, our_us = [], []
        for number in range(ROUNDS):
            progress(f"  round {number + 1} of {ROUNDS}")
            echo_us.append(await _cost(echo, _echo_round))
            our_us.append(await _cost(ours, _session_round))
    return [
        Figure("echo, a pair of messages", min(echo_us), "us"),
        Figure("session, a pair of messages", min(our_us), "us"),
        Figure("session / echo", min(our_us) / min(echo_us), "times"),
    ]


async def _cost(server: tuple[str, int], load: Any) -> float:
    url, pid = server
    before = _processor_seconds(pid)
    await load(url)
    return (_processor_seconds(pid) - before) / PAIRS * 1e6


async def _echo_round(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
        sender = asyncio.create_task(_send(socket))
        for _ in range(PAIRS):
            await socket.receive_str()
        await sender


async def _session_round(url: str) -> None:
    """As many audio messages in as out, through a whole session: decoded, kept, numbered, retained."""
    import aiohttp

    script = {"audio_ms": PAIRS * FRAME_MS, "chunk_ms": FRAME_MS, "words": 0, "text": "", "pace": "burst"}
    session = {"type": "realtime", "extra_body": {"script": script}}
    session["audio"] = {"input": {"turn_detection": None}}
    async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as socket:
        await socket.send_json({"type": "session.update", "session": session})
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
        await socket.send_json({"type": "conversation.item.create", "item": item})
        await socket.send_json({"type": "response.create"})
        sender = asyncio.create_task(_send(socket))
        heard = 0
        while heard < PAIRS:
            heard += "output_audio.delta" in (await socket.receive_str())[:60]
        await sender


async def _send(socket: Any) -> None:
    for number in range(PAIRS):
        await socket.send_str(_APPEND)
        if number % 20 == 0:
            await asyncio.sleep(0)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
