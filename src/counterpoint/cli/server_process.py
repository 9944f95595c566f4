"""A server in a process of its own, for commands that need one.

Owns: starting it, its ready line, ending it.
Does not own: what it serves.
Here because: ``talk`` and the benchmarks talk to a real server over a real socket, as everybody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from counterpoint.errors import CounterpointError

#: Loading and warming up the embedded voice takes seconds; this is for a machine that is busy as well.
START_TIMEOUT_S = 120


@asynccontextmanager
async def server_process(command: Sequence[str]) -> AsyncIterator[tuple[str, int]]:
    """Run ``command`` until the block ends. Yields the address in its ready line, and its process id.

    Raises ``CounterpointError`` with the last line of its standard error if it does not get ready.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[bytes] = []
    listening = asyncio.create_task(_collect(process.stderr, said))
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            line = (await process.stdout.readline()).decode().split()
        if line[:1] != ["ready"]:
            await listening
            reason = said[-1].decode(errors="replace").strip() if said else "it said nothing"
            raise CounterpointError(f"the server did not start: {reason}")
        yield line[1], process.pid
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(5):
                    await process.wait()
            except TimeoutError:
                process.kill()
        await process.wait()
        listening.cancel()


async def _collect(stream: asyncio.StreamReader, said: list[bytes]) -> None:
    """Keep the last lines: a pipe that nobody reads would stop the server one day."""
    async for line in stream:
        said.append(line)
        del said[:-20]
