"""The program of a worker process: ``python -m counterpoint.stages.worker SOCKET OUT INTO``.

Owns: the process from its start to its end.
Does not own: the stage (``host``), who started it (``process``).
Here because: a new interpreter inherits no lock, no thread and no socket of the server.

It ends when its socket does, so that no worker outlives the server, however that ended.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

import uvloop

from .host import StageHost
from .pipe import RING_BYTES, Pipe
from .shared_memory import Ring


def main() -> None:
    uvloop.run(_serve(*(int(argument) for argument in sys.argv[1:])))


async def _serve(descriptor: int, out: int, into: int) -> None:
    loop = asyncio.get_running_loop()
    made: asyncio.Future[StageHost] = loop.create_future()

    def received(message: Any) -> None:
        """The first message says which stage it is."""
        if made.done():
            made.result().received(message)
        else:
            made.set_result(StageHost(message, pipe.send))

    pipe = Pipe(Ring(out, RING_BYTES), Ring(into, RING_BYTES), received, lambda: os._exit(0))
    await loop.create_connection(lambda: pipe, sock=socket.socket(fileno=descriptor))

    await (await made).run()
    pipe.close()


if __name__ == "__main__":
    main()
