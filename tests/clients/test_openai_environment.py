"""The ``openai`` package in its own environment: a secret over HTTP, and the recipe for a broken line."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from counterpoint.testing.proxy import proxying
from counterpoint.testing.server import running_server

pytestmark = [pytest.mark.clients]

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "openai" / "bin" / "python"
RECIPE = ROOT / "docs" / "how-to" / "use-your-client.md"


async def seen(driver: str, *arguments: str) -> AsyncIterator[tuple[str, str]]:
    """What a driver tells, while it runs."""
    file = Path(__file__).parent / "drivers" / driver
    process = await asyncio.create_subprocess_exec(
        PYTHON, file, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async for line in process.stdout:
        told = json.loads(line)
        yield told["saw"], told["value"]
    errors = await process.stderr.read()
    assert await process.wait() == 0, errors.decode()


async def test_a_secret_opens_a_session_whose_instructions_are_fixed(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{hashlib.sha256(b'sk-shop').hexdigest()} shop\n")
    async with running_server({"access.keys_file": str(keys)}) as server:
        told = dict([pair async for pair in seen("drive_openai_secret.py", server.url, "sk-shop")])
    assert told == {"refused": "invalid_api_key", "instructions": "Sell nothing."}


async def test_a_conversation_goes_on_where_its_line_broke() -> None:
    """Every piece of the answer arrives once and in order (case N-01)."""
    sessions: list[str] = []
    pieces: list[str] = []
    async with running_server() as server, proxying(server.url) as proxy:
        async for what, value in seen("drive_openai_reconnect.py", proxy.through(server.url), str(RECIPE)):
            (sessions if what == "session" else pieces).append(value)
            if what == "text" and len(pieces) == 3:
                proxy.newest.reset()
    assert len(sessions) == 2
    assert len(set(sessions)) == 1
    assert "".join(pieces) == " ".join(f"word{n}" for n in range(1, 11))
