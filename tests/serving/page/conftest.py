"""A server and a browser for each test of the page.

Owns: starting and ending both, recordings as the browser's microphone.
Does not own: driving the browser (``browser``), waiting for what a conversation does (``talk``).
Here because: every test here needs the two, started in one way.
"""

from __future__ import annotations

import subprocess
import sys
import wave
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from .browser import Page, running_browser

RECORDINGS = Path(__file__).parents[2] / "data" / "audio"
RECORDED_RATE = 16_000

#: No permission is asked for and no gesture is waited for, as after a click of a user who allows it.
WILLING = ("--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required")

Browse = Callable[..., Awaitable[Page]]
Microphone = Callable[..., tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def serving(model: str, *settings: str, port: int = 0) -> Iterator[Server]:
    """``settings`` are ``key=value``. Raises ``AssertionError`` if the server does not start."""
    command = [str(Path(sys.executable).with_name("counterpoint")), "serve", "--model", model]
    options = [word for setting in settings for word in ("--set", setting)]
    process = subprocess.Popen(
        [*command, "--port", str(port), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        with process.stdout:
            ready = process.stdout.readline()
            assert ready.startswith("ready ws://"), f"the server said {ready!r}"
            yield Server(process, int(ready.rsplit(":", 1)[1].split("/")[0]))
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving("scripted") as server:
        yield server


@pytest.fixture(scope="session")
def voice_server() -> Iterator[Server]:
    with serving("cascade") as server:
        yield server


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Start a server of the test's own: ``start(model, *settings, port=0)``."""
    with ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(serving(*arguments, **options))


@pytest.fixture
async def browse(tmp_path: Path, microphone: Microphone) -> AsyncIterator[Browse]:
    """Open a tab in a new browser: ``await browse(*flags)``; without flags it hears silence."""
    async with AsyncExitStack() as stack:
        count = 0

        async def browse(*flags: str) -> Page:
            nonlocal count
            count += 1
            profile = tmp_path / f"profile{count}"
            browser = await stack.enter_async_context(running_browser(profile, *(flags or microphone(1))))
            return await browser.open()

        yield browse


@pytest.fixture
def microphone(tmp_path: Path) -> Microphone:
    """Browser flags for a microphone that hears ``parts``: names of recordings, or seconds of silence."""

    def hear(*parts: str | float) -> tuple[str, ...]:
        file = tmp_path / f"microphone{len(list(tmp_path.iterdir()))}.wav"
        with wave.open(str(file), "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(2)
            wav.setframerate(RECORDED_RATE)
            for part in parts:
                wav.writeframes(_recording(part) if isinstance(part, str) else _silence(part))
        return (*WILLING, f"--use-file-for-fake-audio-capture={file}%noloop")

    return hear


def _silence(seconds: float) -> bytes:
    return np.zeros(int(seconds * RECORDED_RATE), np.int16).tobytes()


def _recording(name: str) -> bytes:
    with wave.open(str(RECORDINGS / f"{name}.wav")) as wav:
        assert wav.getframerate() == RECORDED_RATE
        samples: bytes = wav.readframes(wav.getnframes())
        return samples
