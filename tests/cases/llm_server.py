"""A language model server of another project in a process of its own: dasllama, which runs GGUF files.

Owns: bringing the embedded model's weights into a form that it reads, starting it, stopping it.
Does not own: installing it (``make servers``), what is asked of it (``test_remote_stages``).
Here because: that the interface is understood can only be shown by a server that we did not write.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import aiohttp

from counterpoint.models.voice.files import find_files

COMMAND: Final = Path(__file__).parents[2] / ".venv-servers/dasllama/bin/dasllama-server"
#: It reads the weights again from their file; the machine may be busy.
_READY_WITHIN_S: Final = 40
_OPTIONS: Final = ("--threads", "2", "--gpu", "off", "--ctx", "2048", "--streams", "2")


@asynccontextmanager
async def llm_server(directory: Path) -> AsyncIterator[tuple[str, str]]:
    """The address of its interface, and what it calls its model. ``directory`` is for the weights."""
    weights = directory / "model.gguf"
    await _requantize(find_files().llm, weights)
    port = _free_port()
    command = [str(COMMAND), "--model", str(weights), "--port", str(port), *_OPTIONS]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=directory, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}/v1", await _model(port, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _requantize(source: Path, target: Path) -> None:
    """It does not know the form of the shipped weights (Q4_1)."""
    spec = find_spec("ik_llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    program = Path(spec.origin).with_name("bin") / "llama-quantize"
    process = await asyncio.create_subprocess_exec(
        *(str(program), "--allow-requantize", str(source), str(target), "Q8_0", "2"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0


def _free_port() -> int:
    """It takes no 0, so another program may take this port first; then the test fails to start it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _model(port: int, process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(_READY_WITHIN_S), aiohttp.ClientSession() as http:
        while process.returncode is None:
            try:
                async with http.get(f"http://127.0.0.1:{port}/v1/models") as answer:
                    return str((await answer.json())["data"][0]["id"])
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
    raise AssertionError(f"{COMMAND.name} ended with exit code {process.returncode}")
