"""npm ``@openai/agents-realtime`` in Chromium: prints what its user sees, a JSON object a line.

Owns: serving the page and the package to a browser, and an ephemeral secret, as a web application does; the
microphone, which hears the recording.
Does not own: the conversations (``agents_talk.mjs``), the browser (``tests.serving.page.browser``).
Here because: the other clients are programs, too; to their test, a browser is one more.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from tests.serving.page.browser import running_browser

HERE = Path(__file__).parent
NODE = HERE.parent / "node"
#: The server's certificate is its test's own; nobody is there to allow the microphone.
WILLING = (
    "--ignore-certificate-errors",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
)
BUNDLE = NODE / "node_modules/@openai/agents-realtime/dist/bundle"


@asynccontextmanager
async def serving_page(recording: Path) -> AsyncIterator[str]:
    """The address of the page. The recording is beside it."""

    async def file(request: web.Request) -> web.FileResponse:
        return web.FileResponse(recording if request.path == "/recording" else HERE / "page.html")

    app = web.Application()
    app.router.add_get("/", file)
    app.router.add_get("/recording", file)
    app.router.add_static("/node", NODE)
    app.router.add_static("/bundle", BUNDLE)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield "http://{}:{}/".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


async def secret(url: str, key: str) -> str:
    """What the application's server asks for on behalf of a browser."""
    address = url.replace("ws", "http", 1) + "/client_secrets"
    headers = {"Authorization": f"Bearer {key}"}
    asked = {"session": {"type": "realtime", "model": "gpt-realtime"}}
    async with (
        aiohttp.ClientSession(headers=headers, raise_for_status=True) as http,
        http.post(address, json=asked) as answer,
    ):
        return str((await answer.json())["value"])


async def main(transport: str, url: str, recording: str, *names: str) -> None:
    key = await secret(url, "unused")
    if transport == "OpenAIRealtimeWebRTC":
        url = url.replace("ws", "http", 1) + "/calls"
    arguments = json.dumps([transport, url, key, names])
    microphone = f"--use-file-for-fake-audio-capture={recording}%noloop"
    with tempfile.TemporaryDirectory() as profile:
        async with (
            serving_page(Path(recording)) as address,
            running_browser(Path(profile), *WILLING, microphone) as browser,
        ):
            page = await browser.open()
            await page.command("Page.navigate", url=address)
            await page.until("'converse' in window")
            for seen in await page.evaluate(f"converse(...{arguments})"):
                print(json.dumps(seen))
            assert page.errors == []


asyncio.run(main(*sys.argv[1:]))
