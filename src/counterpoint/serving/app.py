"""A server from start to end: load the model, listen, admit, drain.

Owns: the order of starting and stopping, signals.
Does not own: the process (``cli.serve``: event loop, garbage collector), routes (``serving.routes``).
Here because: readiness is a promise with two ends, and both are kept here.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog
from aiohttp import web

from counterpoint.errors import ConfigurationError
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.manager import SessionManager
from counterpoint.runtime.metrics import Metrics
from counterpoint.runtime.tasks import Tasks
from counterpoint.stages.placement import load_placed

from .access import Access
from .permits import Permits
from .routes import Routes
from .settings import Settings

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that admits sessions at ``url``."""

    url: str
    page_url: str
    manager: SessionManager
    settings: Settings

    async def drain(self) -> None:
        """Admit no more; let sessions go on until the deadline, then end them; return when they are gone."""
        self.manager.stop_admitting()
        timeout_s = self.settings.drain.timeout_s
        self.manager.announce_drain(round(timeout_s * 1000))
        try:
            async with asyncio.timeout(timeout_s):
                await self.manager.until_empty()
        except TimeoutError:
            self.manager.end_all("drained")
        try:
            async with asyncio.timeout(self.settings.transport.close_timeout_s + 0.5):
                await self.manager.until_empty()
        except TimeoutError:
            log.warning("sessions were cut off at the end of the drain")


@asynccontextmanager
async def running(
    settings: Settings, *, host: str, port: int, plugin: ModelPlugin, model: str
) -> AsyncIterator[Server]:
    """A server around ``plugin``, warmed up and listening. Raises ``OSError`` if it cannot listen."""
    runner, site = None, None
    await plugin.start()
    manager = SessionManager(
        plugin,
        Bounds(settings.limits, settings.lease, settings.journal, settings.transport),
        entropy=secrets.token_bytes,
        metrics=Metrics(),
    )
    tasks = Tasks("server")
    try:
        access = Access(settings.access, secrets.token_bytes)
        permits = Permits(settings.access, access, manager)
        tasks.spawn("permits", permits.watch(settings.lease.reaper_interval_s))
        app = web.Application()
        routes = Routes(manager, settings, access, permits, model=model, entropy=secrets.token_bytes)
        routes.add_to(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=settings.transport.close_timeout_s)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=_tls(settings), backlog=1024)
        await site.start()
        bound_port = runner.addresses[0][1]
        shown_host = f"[{host}]" if ":" in host else host
        secure = "s" if settings.transport.tls_cert else ""
        yield Server(
            f"ws{secure}://{shown_host}:{bound_port}/v1/realtime",
            f"http{secure}://{shown_host}:{bound_port}/",
            manager,
            settings,
        )
    finally:
        manager.stop_admitting()
        await tasks.cancel(timeout=settings.transport.close_timeout_s)
        await manager.close()
        if runner is not None:
            await runner.cleanup()
        await plugin.stop()


async def serve(
    settings: Settings, *, host: str, port: int, model: str, on_ready: Callable[[Server], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal stops at once.

    Raises ``ConfigurationError`` for a model that cannot be loaded, ``OSError`` if it cannot listen.
    """
    plugin = load_placed(model, settings.model)
    stop = asyncio.Event()
    now = asyncio.Event()

    def signalled() -> None:
        (now if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled)
    async with running(settings, host=host, port=port, plugin=plugin, model=model) as server:
        on_ready(server)
        await stop.wait()
        log.info("draining", deadline_s=settings.drain.timeout_s)
        await _first_of(server.drain(), now.wait())


async def _first_of(*work: object) -> None:
    tasks = [asyncio.ensure_future(each) for each in work]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tls(settings: Settings) -> ssl.SSLContext | None:
    certificate, key = settings.transport.tls_cert, settings.transport.tls_key
    if not certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError("transport.tls_cert", f"cannot be used: {error}") from error
    return context
