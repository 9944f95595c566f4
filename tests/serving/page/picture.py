"""Takes the README's picture of the page: ``python -m tests.serving.page.picture FILE.png``.

Owns: the conversation that is in the picture.
Does not own: the browser (``browser``), the server (``conftest``).
Here because: a picture of what the page looks like today is one command away.

The user speaks with another of the embedded voices, through a microphone that this script holds, so that the
interruption comes at the right moment.
"""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
from pathlib import Path

from counterpoint.models.voice.tts import HibariTts

from .browser import Page, running_browser
from .conftest import WILLING, serving
from .talk import RATE, is_state, played

_SIZE = (1280, 840)
_PATIENCE_S = 60.0

_MICROPHONE = """
const context = new AudioContext();
const microphone = context.createMediaStreamDestination();
if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = async () => microphone.stream;
window.say = async (pcm) => {
  const { fromBase64 } = await import("/page/pcm.js");
  const samples = Float32Array.from(fromBase64(pcm), (sample) => sample / 32768);
  const buffer = context.createBuffer(1, samples.length, 24000);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(context, { buffer });
  source.connect(microphone);
  source.start();
};
"""


async def say(page: Page, user: HibariTts, words: str) -> None:
    pcm = base64.b64encode(user.synthesize(words, "tenor").tobytes()).decode()
    await page.evaluate(f"say('{pcm}')")


async def answer(page: Page, number: int, seconds: float) -> None:
    """Until so much of an answer, counted from 1, was heard."""
    await page.until(f"document.querySelectorAll('.turn.voice').length >= {number}", _PATIENCE_S)
    await page.until(
        f"Object.keys(counterpoint.conversation.report.rendered).length >= {number}", _PATIENCE_S
    )
    await played(page, int(seconds * RATE))


async def converse(page: Page, user: HibariTts, url: str) -> bytes:
    await page.on_load(_MICROPHONE)
    await page.load(url)
    await page.click("talk")
    await is_state(page, "open")
    await say(page, user, "Hello, how are you?")
    await page.until(
        "document.querySelector('.turn.voice') && !document.querySelector('.ahead')", _PATIENCE_S
    )
    await say(page, user, "Tell me something about the moon.")
    await answer(page, 2, 0.6)
    await page.click("cut")
    await page.until("counterpoint.conversation.report.resumes === 1", _PATIENCE_S)
    await answer(page, 2, 2.6)
    await say(page, user, "And what about the sun?")
    await answer(page, 3, 0.8)
    return await page.picture()


async def take_picture() -> bytes:
    with serving("cascade") as server, tempfile.TemporaryDirectory() as folder:
        async with running_browser(Path(folder), *WILLING) as browser:
            page = await browser.open()
            await page.resize(*_SIZE)
            return await converse(page, HibariTts(), server.page)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(asyncio.run(take_picture()))
