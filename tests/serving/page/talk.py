"""What a conversation on the page does, in few words.

Owns: the scripted model's script and sound, what the page played.
Does not own: the browser (``browser``), servers (``conftest``).
Here because: each test should say what happens, not how it is looked at.
"""

from __future__ import annotations

import json
from typing import Any

from .browser import Page

RATE = 24_000


async def begin(page: Page, url: str, **script: Any) -> None:
    """Load the page, start a conversation by voice and give the scripted model its script."""
    await page.load(url)
    await page.click("talk")
    await page.until("document.getElementById('talk-text').textContent === 'Mute'")
    await is_state(page, "open")
    await follow(page, **script)


async def follow(page: Page, **script: Any) -> None:
    """A new script for the model."""
    update = {"type": "session.update", "session": {"type": "realtime", "extra_body": {"script": script}}}
    before = len(page.of_type("session.updated"))
    await page.evaluate(f"counterpoint.conversation.send({json.dumps(update)})")
    await page.until_true(lambda: len(page.of_type("session.updated")) > before)


async def is_state(page: Page, name: str) -> None:
    await page.until(f"counterpoint.conversation?.state.name === '{name}'")


async def report(page: Page) -> dict[str, Any]:
    answer: dict[str, Any] = await page.evaluate("counterpoint.conversation.report")
    return answer


async def played(page: Page, samples: int, *, answer: int = -1) -> None:
    """Until so many samples of an answer (by default the newest) were played."""
    await page.until(
        f"Object.values(counterpoint.conversation.report.rendered).at({answer})?.samples >= {samples}"
    )


async def answers(page: Page) -> list[dict[str, Any]]:
    """What was played of each answer: ``{"samples", "checksum"}``."""
    return list((await report(page))["rendered"].values())


async def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = await page.evaluate(
        f"[...document.querySelectorAll('{selector}')].map((element) => element.textContent)"
    )
    return found


def checksum(response: int, start: int, end: int) -> int:
    """Of samples ``start`` to ``end`` of the scripted model's response number ``response`` (from 1)."""
    value = 0
    for i in range(start, end):
        value = (value * 31 + (response * 7919 + i) % 32768) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
