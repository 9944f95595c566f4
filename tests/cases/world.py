"""Servers and clients of one test, and the state of the world that must be found again at its end.

Owns: ``World``: the small limits of these tests, servers in this process and in processes of their own, every
connection that was made, the baseline (CASE-INV-9).
Does not own: what clients do (``client``), faults on the way (``counterpoint.testing.proxy``).
Here because: whatever a test does to a server, afterwards nothing of it may be left there.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from counterpoint.plugins.contract import ModelPlugin
from counterpoint.serving.app import Server
from counterpoint.testing.proxy import FaultProxy, proxying
from counterpoint.testing.server import running_server
from counterpoint.testing.streams.rules import check_session

from .client import PATIENCE_S, Caller, Connection, SessionRecord, with_query
from .wire import Event, http_get

GRACE_S = 1.0
CLOSE_TIMEOUT_S = 0.5

#: Small limits, so that what takes minutes in production takes seconds here.
SMALL: dict[str, object] = {
    "limits.max_sessions": 2,
    "limits.max_pending_output_bytes": 256 * 1024,
    "limits.max_pending_input_bytes": 64 * 1024,
    "lease.disconnect_grace_s": GRACE_S,
    "lease.idle_ttl_s": 0,
    "lease.reaper_interval_s": 0.05,
    "transport.ping_interval_s": 1,
    "transport.ping_timeout_s": 1,
    "transport.close_timeout_s": CLOSE_TIMEOUT_S,
    "drain.timeout_s": 5,
    "debug.state_route": True,
}

T = TypeVar("T")

COMMAND = Path(sys.executable).with_name("counterpoint")


async def until(holds: Callable[[], Any], *, within: float = PATIENCE_S, what: str = "it") -> None:
    """Wait until ``holds()`` is true, or is awaitable and comes out true."""
    try:
        async with asyncio.timeout(within):
            while True:
                result = holds()
                if await result if asyncio.iscoroutine(result) else result:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what} did not come true within {within} s") from None


def objects_of(kind: type[T]) -> list[T]:
    """Every living object of a class in this process, the servers' own among them."""
    return [found for found in gc.get_objects() if isinstance(found, kind)]


class ServerProcess:
    """``counterpoint serve --model scripted`` in a process of its own. ``errors`` is its standard error."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self.errors = ""
        self._reading = asyncio.create_task(self._read_errors(), name="standard error")

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.errors += line.decode()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exited(self, *, within: float = PATIENCE_S) -> int:
        async with asyncio.timeout(within):
            code = await self.process.wait()
        await self._reading
        return code

    def status(self, field: str) -> int:
        """A number from the kernel's account of the process (``VmRSS`` in kB, ``Threads``)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1])

    @property
    def cpu_s(self) -> float:
        """Processor time that it has used; the kernel counts in hundredths of a second."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


class World:
    """``url`` is the newest server's. ``wedged``: sessions that are known never to clean up."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self.url = ""
        self.server: Server
        self.records: dict[str, SessionRecord] = {}
        self.connections: list[Connection] = []
        self.wedged = 0
        self._stack = stack
        self._proxies = contextlib.AsyncExitStack()
        #: Tasks of this loop while nobody is connected; 0: no server runs on it.
        self._idle_tasks = 0

    # ------------------------------------------------------------------ servers

    async def serve(
        self, settings: Mapping[str, object] | None = None, *, plugin: ModelPlugin | None = None
    ) -> Server:
        """A server in this process and on this loop, with the small limits changed by ``settings``."""
        running = running_server(SMALL | dict(settings or {}), plugin=plugin)
        self.server = await self._stack.enter_async_context(running)
        self.url = self.server.url
        self._idle_tasks = (await self.state())["tasks"]
        return self.server

    async def spawn(self, settings: Mapping[str, object] | None = None, *, port: int = 0) -> ServerProcess:
        """A server in a process of its own, which is killed at the end if it still runs."""
        pairs = (SMALL | dict(settings or {})).items()
        chosen = [
            f"--set={key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in pairs
        ]
        process = await asyncio.create_subprocess_exec(
            *(str(COMMAND), "serve", "--model", "scripted", "--port", str(port), *chosen),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("ready "), line
        server = ServerProcess(process, line.split()[1])
        self.url = server.url
        self._stack.push_async_callback(_kill, server)
        return server

    async def proxy(self, **options: Any) -> FaultProxy:
        """A proxy before the newest server."""
        return await self._proxies.enter_async_context(proxying(self.url, **options))

    # ------------------------------------------------------------------ clients

    async def connect(
        self, url: str | None = None, *, query: Mapping[str, str] | None = None, **options: Any
    ) -> Connection:
        """A connection, without a word said on it. ``url``: another way, or another server."""
        query = dict(query or {})
        cursor = query.get("last_received_server_event_seq", "0")
        after = int(cursor) if "resume" in query and cursor.isdecimal() else None
        connection = Connection(self.records, extended=query.get("duplex") == "1", after=after)
        await connection.open(with_query(url or self.url, query), **options)
        self.connections.append(connection)
        return connection

    async def call(
        self,
        *scripts: Event,
        via: str | None = None,
        stock: bool = False,
        query: Mapping[str, str] | None = None,
        session: Event | None = None,
        **options: Any,
    ) -> Caller:
        """A session with a script: extended and opened with ``duplex=1`` unless ``stock``."""
        dialect = {} if stock else {"duplex": "1"}
        connection = await self.connect(via, query={**dialect, **(query or {})}, **options)
        caller = Caller(self.connect, connection, await connection.expect("session.created"))
        if scripts or session:
            await caller.script(*scripts, **(session or {}))
        return caller

    # ------------------------------------------------------------------ looking at the server

    async def state(self, url: str | None = None) -> dict[str, Any]:
        """``GET /debug/state``."""
        status, body = await http_get(url or self.url, "/debug/state")
        assert status == 200
        state: dict[str, Any] = json.loads(body)
        return state

    async def session_state(self, session_id: str) -> dict[str, Any] | None:
        state = await self.state()
        return next((session for session in state["sessions"] if session["id"] == session_id), None)

    async def metric(self, name: str, **labels: str) -> float:
        """A metric's value; 0 if it was never touched."""
        _, body = await http_get(self.url, "/metrics")
        shown = "".join(f'{key}="{value}"' for key, value in labels.items())
        key = f"{name}{{{shown}}} " if labels else f"{name} "
        return sum(float(line.split()[-1]) for line in body.decode().splitlines() if line.startswith(key))

    async def calls(self, session_id: str, *names: str) -> list[dict[str, Any]]:
        """What was called on the model for a session, oldest first."""
        log = (await self.state())["plugin_log"]
        return [
            call for call in log if call["session_id"] == session_id and (not names or call["call"] in names)
        ]

    # ------------------------------------------------------------------ the end

    async def settle(self) -> None:
        """Everyone leaves; then the server holds what it held before anyone came (CASE-INV-9)."""
        await asyncio.gather(*(self._leave(connection) for connection in self.connections))
        await self._proxies.aclose()
        for connection in self.connections:
            if connection.fault is not None:
                raise connection.fault
            if connection.record is None:
                assert not (found := check_session([connection.stream])), found
        for record in self.records.values():
            record.check()
        if self._idle_tasks:
            await until(self.is_empty, within=GRACE_S + 30, what="an empty server")

    async def abandon(self) -> None:
        """The test failed: nobody looks at anything any more."""
        for connection in self.connections:
            connection.socket.drop()
        await self._proxies.aclose()

    async def _leave(self, connection: Connection) -> None:
        connection.socket.reading.set()
        connection.socket.answers_close = True
        if connection.alive:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S + 1):
                    await asyncio.shield(connection.socket.close())
        if connection.alive:
            connection.socket.reset()

    async def is_empty(self) -> bool:
        """Whether the server holds no more than before anyone came (CASE-INV-9)."""
        state = await self.state()
        slots = state["slots"]
        left = (slots["used"], slots["closing"], len(state["sessions"]))
        own_tasks = sum(connection.alive for connection in self.connections)
        return left == (self.wedged, self.wedged, 0) and state["tasks"] <= self._idle_tasks + own_tasks


async def _kill(server: ServerProcess) -> None:
    if server.process.returncode is None:
        server.process.kill()
    await server.exited()
    server.process._transport.close()  # type: ignore[attr-defined]


@contextlib.asynccontextmanager
async def new_world() -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack:
        world = World(stack)
        try:
            yield world
        except BaseException:
            await world.abandon()
            raise
        await world.settle()
