"""A headless Chromium, driven over the DevTools protocol.

Owns: starting and ending the browser, the few commands that the tests need, what a page says on its console
and on its WebSockets.
Does not own: what is tested (the test modules beside it), the server (``conftest``).
Here because: a page is tested where it runs, and a driver of this size needs no package.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream",
    "--remote-debugging-port=0",
)
_START_S = 20.0
_POLL_S = 0.02


def chromium() -> str:
    """The browser. Its absence is a failure: a page that was not tried was not tested."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.fail(f"none of {', '.join(_NAMES)} is installed: apt-get install chromium")


class Page:
    """One tab. ``errors`` is what went wrong in it, ``sent`` and ``received`` are its WebSocket messages."""

    def __init__(self, browser: Browser, session_id: str) -> None:
        self._browser = browser
        self._session_id = session_id
        self.errors: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._browser.command(method, parameters, self._session_id)

    async def prepare(self) -> None:
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.command(f"{domain}.enable")

    async def sibling(self) -> Page:
        """Another tab of the same browser."""
        return await self._browser.open()

    async def load(self, url: str) -> None:
        await self.command("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && 'counterpoint' in window")

    async def on_load(self, script: str) -> None:
        """Run a script before those of every document that is loaded from now on."""
        await self.command("Page.addScriptToEvaluateOnNewDocument", source=script)

    async def reload(self) -> None:
        await self.evaluate("delete window.counterpoint")
        await self.command("Page.reload")
        await self.until("document.readyState === 'complete' && 'counterpoint' in window")

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited if it is a promise. Raises ``AssertionError`` if it throws."""
        done = await self.command(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    async def until(self, expression: str, timeout_s: float = 15.0) -> None:
        """Until an expression is truthy. Raises ``TimeoutError``."""
        ends_at = time.monotonic() + timeout_s
        while time.monotonic() < ends_at:
            try:
                if await self.evaluate(f"Boolean({expression})"):
                    return
            except AssertionError:  # the document is being replaced
                pass
            await asyncio.sleep(_POLL_S)
        seen = await self.evaluate("JSON.stringify(window.counterpoint?.conversation?.report ?? null)")
        raise TimeoutError(f"never true: {expression}; the page reports {seen}; errors {self.errors}")

    async def until_true(self, condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
        """Until something is so that is known here. Raises ``TimeoutError``."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def click(self, element_id: str) -> None:
        await self.until(f"!document.getElementById('{element_id}').disabled")
        await self.evaluate(f"document.getElementById('{element_id}').click()")

    async def press(self, key: str, code: int, text: str = "") -> None:
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **common)

    async def write(self, text: str) -> None:
        """Type into the page's text field and send it."""
        await self.evaluate("document.getElementById('text').focus()")
        await self.command("Input.insertText", text=text)
        await self.press("Enter", 13, "\r")

    async def resize(self, width: int, height: int, *, scale: float = 1, dark: bool = False) -> None:
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.command("Emulation.setEmulatedMedia", features=[feature])

    async def picture(self) -> bytes:
        """What is seen, as PNG."""
        shot = await self.command("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])

    def of_type(self, name: str) -> list[dict[str, Any]]:
        """Events that the page received, by type."""
        return [event for event in self.received if event["type"] == name]

    def notice(self, method: str, parameters: dict[str, Any]) -> None:
        """The browser reports something of this tab."""
        self._news.set()
        match method:
            case "Runtime.exceptionThrown":
                self.errors.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "assert"):
                self.errors.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            case "Network.webSocketFrameSent" if parameters["response"]["opcode"] == 1:
                self.sent.append(json.loads(parameters["response"]["payloadData"]))
            case "Network.webSocketFrameReceived" if parameters["response"]["opcode"] == 1:
                self.received.append(json.loads(parameters["response"]["payloadData"]))


class Browser:
    """Commands and their answers over one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._last_id = 0

    async def command(
        self, method: str, parameters: dict[str, Any], session_id: str | None = None
    ) -> dict[str, Any]:
        """Raises ``AssertionError`` for a command that the browser refuses."""
        self._last_id += 1
        answer = self._answers[self._last_id] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if session_id is not None:
            message["sessionId"] = session_id
        await self._socket.send_json(message)
        result: dict[str, Any] = await answer
        return result

    async def open(self) -> Page:
        target = await self.command("Target.createTarget", {"url": "about:blank"})
        attached = await self.command(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}
        )
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        await page.prepare()
        return page

    async def read(self) -> None:
        """Until the browser is gone."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" not in said:
                if page := self._pages.get(said.get("sessionId", "")):
                    page.notice(said["method"], said["params"])
            elif not (answer := self._answers.pop(said["id"])).done():
                if "error" in said:
                    answer.set_exception(AssertionError(said["error"]["message"]))
                else:
                    answer.set_result(said["result"])


@asynccontextmanager
async def running_browser(profile: Path, *flags: str) -> AsyncIterator[Browser]:
    """A browser with a fresh profile in the folder ``profile``."""
    process = await asyncio.create_subprocess_exec(
        chromium(),
        *_FLAGS,
        f"--user-data-dir={profile}",
        *flags,
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        address = await _debugging_address(process, profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as http, http.ws_connect(address, max_msg_size=0) as socket:
            browser = Browser(socket)
            reading = asyncio.create_task(browser.read())
            try:
                yield browser
                await browser.command("Browser.close", {})
                await asyncio.wait_for(process.wait(), _START_S)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _debugging_address(process: asyncio.subprocess.Process, file: Path) -> str:
    ends_at = time.monotonic() + _START_S
    while time.monotonic() < ends_at and process.returncode is None:
        if address := _address_in(file):
            return address
        await asyncio.sleep(_POLL_S)
    raise AssertionError(f"the browser did not start (exit code {process.returncode})")


def _address_in(file: Path) -> str | None:
    """The browser writes a port and a path into it, once it listens."""
    lines = file.read_text().split() if file.exists() else []
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}" if len(lines) == 2 else None
