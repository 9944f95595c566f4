"""The ``openai`` package with the recipe of the documentation: a conversation whose line breaks; JSON lines.

Owns: running the recipe, and telling each piece of the answer as it comes.
Does not own: the recipe (a page of the documentation), breaking the line (``test_openai_environment``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI


def saw(what: str, value: str) -> None:
    print(json.dumps({"saw": what, "value": value}), flush=True)


def recipe(page: str) -> dict[str, Any]:
    (piece,) = re.findall(r"^```python\n(.*?)^```", Path(page).read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(piece, names)
    return names


async def main(url: str, page: str) -> None:
    converse = recipe(page)["converse"]
    asked = False
    async with AsyncOpenAI(api_key="unused", websocket_base_url=url.removesuffix("/realtime")) as client:
        async for connection, event in converse(client):
            match event.type:
                case "session.created":
                    saw("session", event.session.id)
                    if not asked:
                        await connection.response.create(response={"instructions": "Greet."})
                        asked = True
                case "response.output_audio_transcript.delta":
                    saw("text", event.delta)
                case "response.done":
                    return


asyncio.run(main(*sys.argv[1:]))
