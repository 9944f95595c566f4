"""A stage in a worker process.

Owns: starting the process, its end, by force where needed; noticing that it died.
Does not own: what runs in it (``worker``), the next start (``executor``).
Here because: a model in a process of its own neither holds up the event loop nor takes the server with it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from typing import Final

from .link import Peer
from .messages import ToStage
from .pipe import RING_BYTES, Pipe
from .shared_memory import Ring, make_file
from .stage import StageSpec

#: A stage that does not stop within this long is killed.
STOP_TIMEOUT_S: Final = 5.0


class ProcessPlace:
    async def launch(self, spec: StageSpec, peer: Peer) -> ProcessLink:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        up, down = make_file(RING_BYTES), make_file(RING_BYTES)
        try:
            process = _spawn(theirs.fileno(), up, down)
            link = ProcessLink(process, Ring(down, RING_BYTES), Ring(up, RING_BYTES), peer)
        finally:
            theirs.close()
            os.close(up)
            os.close(down)
        await asyncio.get_running_loop().create_connection(lambda: link.pipe, sock=ours)
        link.pipe.send(spec)
        return link


class ProcessLink:
    def __init__(self, process: subprocess.Popen[bytes], out: Ring, into: Ring, peer: Peer) -> None:
        self.pipe = Pipe(out, into, peer.received, self._lost)
        self.pid = process.pid
        self._process = process
        self._peer = peer
        self._ended = asyncio.Event()

    def send(self, message: ToStage) -> None:
        self.pipe.send(message)

    async def close(self) -> None:
        """Wait for a process that was told to stop; kill it when that takes too long."""
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._ended.wait()
        except TimeoutError:
            self._process.kill()
            await self._ended.wait()
        await asyncio.to_thread(self._process.wait)

    def _lost(self) -> None:
        """Its end of the socket is closed: it is dead, or useless."""
        self._process.kill()
        self._ended.set()
        self._peer.lost()
        asyncio.get_running_loop().run_in_executor(None, self._process.wait)


def _spawn(descriptor: int, out: int, into: int) -> subprocess.Popen[bytes]:
    """In a session of its own: a Ctrl-C is for the server, which then stops its workers."""
    descriptors = (descriptor, out, into)
    return subprocess.Popen(
        [sys.executable, "-m", "counterpoint.stages.worker", *map(str, descriptors)],
        pass_fds=descriptors,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
