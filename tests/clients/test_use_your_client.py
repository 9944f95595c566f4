"""The recipe for stock clients is run as it stands: the line breaks, the conversation goes on."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from counterpoint.testing.proxy import proxying
from counterpoint.testing.server import running_server

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-your-client.md").read_text()
LOCKS = Path(__file__).parents[2] / "requirements" / "clients"


def recipe() -> dict[str, Any]:
    (piece,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(piece, names)
    return names


async def test_a_stock_client_that_reconnects_is_in_the_same_session() -> None:
    """Every piece of the answer arrives once and in order (case N-01)."""
    names = recipe()
    async with running_server() as server, proxying(server.url) as proxy:
        base = proxy.through(server.url).removesuffix("/realtime")
        ids: list[str] = []
        deltas: list[str] = []
        async with asyncio.timeout(30), AsyncOpenAI(api_key="unused", websocket_base_url=base) as client:
            async for connection, event in names["converse"](client):
                match event.type:
                    case "session.created":
                        ids.append(event.session.id)
                        if len(ids) == 1:
                            await connection.response.create(response={"instructions": "Greet."})
                    case "response.output_audio_transcript.delta":
                        deltas.append(event.delta)
                        if len(deltas) == 3:
                            proxy.newest.reset()
                    case "response.done":
                        break
                    case _:
                        pass
        assert len(ids) == 2
        assert ids[0] == ids[1]
        assert "".join(deltas) == " ".join(f"word{n}" for n in range(1, 11))


def locked(name: str) -> str:
    lock = (LOCKS / f"{name}.lock").read_text()
    (version,) = re.findall(rf"^{name}(?:\[.*\])?==(\S+)", lock, re.MULTILINE)
    return str(version)


def test_the_page_names_the_clients_and_versions_that_are_tried() -> None:
    package = json.loads((Path(__file__).parent / "node" / "package.json").read_text())["dependencies"]
    assert dict(re.findall(r"^\| (`.*?) \| ([\d.]+) \|", PAGE, re.MULTILINE)) == {
        "`openai` (Python)": locked("openai"),
        "`openai-agents` (Python)": locked("openai-agents"),
        "`pipecat-ai`": locked("pipecat-ai"),
        "`livekit-agents` with `livekit-plugins-openai`": locked("livekit-agents"),
        "`openai` (npm, in Node)": package["openai"],
        "`@openai/agents-realtime` (npm, in Node and in a browser)": package["@openai/agents-realtime"],
    }
