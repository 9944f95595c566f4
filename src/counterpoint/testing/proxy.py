"""A TCP proxy on loopback that breaks connections in the ways in which networks do.

Owns: ``FaultProxy``: silence, resets, half-closed connections, slow links, lost bytes, impatient middleboxes.
Does not own: what goes over the connections: it knows nothing of WebSocket.
Here because: what a dead network does to a connection cannot be had by closing a socket politely.

Faults can be set on a live connection at any time, and on the proxy for the connections to come. Little is
kept in the proxy: a receiver that stops reading is felt by the sender after some kilobytes, as on a wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

#: What each socket of the proxy may receive ahead of being read; the kernel doubles it.
BUFFER_BYTES = 8 * 1024

#: A slow link passes on so many pieces a second.
_PIECES_PER_S = 50

#: ``SO_LINGER`` on, for no time: closing such a socket sends RST instead of FIN.
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(kw_only=True)
class Faults:
    """What goes wrong in one direction. Byte counts are of that direction, from the first byte on."""

    bytes_per_s: float = math.inf
    drop_from: float = math.inf  #: bytes from this one on vanish, and the connection stays
    reset_at: float = math.inf  #: both ends get RST when so many bytes have passed


@dataclass
class Flow:
    """One direction of a connection: its faults, and how much came through."""

    faults: Faults
    passed: int = 0

    def piece(self) -> int:
        """How many bytes to take at once."""
        slice_ = self.faults.bytes_per_s / _PIECES_PER_S
        return int(max(1, min(BUFFER_BYTES, slice_, self.faults.reset_at - self.passed)))

    def surviving(self, data: bytes) -> bytes:
        """What is not lost of ``data``, which comes next."""
        return data[: int(min(len(data), max(0, self.faults.drop_from - self.passed)))]

    @property
    def used_up(self) -> bool:
        return self.passed >= self.faults.reset_at


class ProxiedConnection:
    """A connection through the proxy. Faults of ``to_client`` and ``to_server`` may change at any time."""

    def __init__(
        self, client: socket.socket, server: socket.socket, to_client: Faults, to_server: Faults
    ) -> None:
        self.to_client = Flow(to_client)
        self.to_server = Flow(to_server)
        self._client = client
        self._server = server
        self._open = asyncio.Event()
        self._open.set()
        self._loop = asyncio.get_running_loop()
        self._last_byte_at = self._loop.time()
        self._pumps: list[asyncio.Task[None]] = []

    @property
    def idle_s(self) -> float:
        """How long no byte has come through."""
        return self._loop.time() - self._last_byte_at

    # ------------------------------------------------------------------ faults

    def blackhole(self) -> None:
        """Nothing passes any more, in either direction; nobody is told."""
        self._open.clear()

    def heal(self) -> None:
        """The end of a ``blackhole``: what waited goes through."""
        self._open.set()

    def reset(self) -> None:
        """RST to both ends; without effect on a connection that is over."""
        self._linger_no_more()
        for pump in self._pumps:
            pump.cancel()

    def half_close(self) -> None:
        """The server sees that the client sends nothing more (FIN); what it sends still arrives."""
        self._pumps[0].cancel()
        self._server.shutdown(socket.SHUT_WR)

    # ------------------------------------------------------------------ passing on

    async def run(self) -> None:
        """Pass bytes on in both directions until both have ended."""
        self._pumps = [
            asyncio.create_task(self._pump(self._client, self._server, self.to_server), name="proxy: up"),
            asyncio.create_task(self._pump(self._server, self._client, self.to_client), name="proxy: down"),
        ]
        with self._client, self._server:
            try:
                await asyncio.wait(self._pumps)
            finally:
                for pump in self._pumps:
                    pump.cancel()
                await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _pump(self, source: socket.socket, sink: socket.socket, flow: Flow) -> None:
        try:
            while data := await self._loop.sock_recv(source, flow.piece()):
                await self._open.wait()
                self._last_byte_at = self._loop.time()
                if surviving := flow.surviving(data):
                    await self._loop.sock_sendall(sink, surviving)
                flow.passed += len(data)
                if flow.used_up:
                    self.reset()
                await asyncio.sleep(len(data) / flow.faults.bytes_per_s)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.reset()

    def _linger_no_more(self) -> None:
        for end in (self._client, self._server):
            if end.fileno() >= 0:  # not closed yet
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


@dataclass
class FaultProxy:
    """Passes on to ``host`` and ``port`` what comes to ``listening_port``. Made by ``proxying``.

    ``to_client``, ``to_server`` and ``idle_kill_s`` hold for the connections to come. A connection on which
    no byte passes for ``idle_kill_s`` is reset; 0: never.
    """

    host: str
    port: int
    listening_port: int
    to_client: Faults = field(default_factory=Faults)
    to_server: Faults = field(default_factory=Faults)
    idle_kill_s: float = 0.0
    #: Every connection that was accepted, oldest first.
    connections: list[ProxiedConnection] = field(default_factory=list)

    def through(self, url: str) -> str:
        """``url``, by way of this proxy."""
        return urlsplit(url)._replace(netloc=f"127.0.0.1:{self.listening_port}").geturl()

    @property
    def newest(self) -> ProxiedConnection:
        return self.connections[-1]

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections until cancelled; they are closed then."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                client, _ = await loop.sock_accept(listening)
                group.create_task(self._connect(client), name="proxy: connection")

    async def _connect(self, client: socket.socket) -> None:
        server = _socket()
        try:
            await asyncio.get_running_loop().sock_connect(server, (self.host, self.port))
        except OSError:
            client.close()
            server.close()
            return
        connection = ProxiedConnection(client, server, replace(self.to_client), replace(self.to_server))
        self.connections.append(connection)
        watch = asyncio.create_task(self._kill_when_idle(connection), name="proxy: idle")
        try:
            await connection.run()
        finally:
            watch.cancel()

    async def _kill_when_idle(self, connection: ProxiedConnection) -> None:
        while self.idle_kill_s:
            await asyncio.sleep(self.idle_kill_s - connection.idle_s)
            if connection.idle_s >= self.idle_kill_s:
                connection.reset()
                return


@contextlib.asynccontextmanager
async def proxying(url: str, *, idle_kill_s: float = 0.0) -> AsyncIterator[FaultProxy]:
    """A proxy to the server of ``url``, for as long as the context lasts."""
    parts = urlsplit(url)
    if parts.hostname is None or parts.port is None:
        raise ValueError(f"{url}: host and port are needed")
    with _socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        port = listening.getsockname()[1]
        proxy = FaultProxy(parts.hostname, parts.port, port, idle_kill_s=idle_kill_s)
        serving = asyncio.create_task(proxy.serve(listening), name="proxy")
        try:
            yield proxy
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def _socket() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setblocking(False)
    # Accepted sockets inherit it.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    return opened
