"""The code of docs/how-to/write-a-model.md is run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

from .client import append, tone
from .world import World

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-model.md"

BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run_code(*blocks: str) -> dict[str, Any]:
    module = ModuleType("parrot")
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), module.__dict__)
    return module.__dict__


def test_the_page_runs_from_its_first_line_to_its_last() -> None:
    """Its last block is a test of its first."""
    model, test = BLOCKS
    assert "repeat_after_me" in run_code(model, test)


async def test_what_the_page_makes_can_be_talked_to(world: World) -> None:
    await world.serve(plugin=run_code(BLOCKS[0])["ParrotPlugin"]({}))
    caller = await world.call()
    caller.record.ramp = False
    word = tone(400, 0.5)
    await caller.send(append(word), append(tone(800, 0.0)))
    response = await caller.done()
    assert caller.audio(response["id"]) == word
