"""The HTTP side: the upgrade to a session, and the small routes beside it.

Owns: paths (wire contract, sections 1 and 13).
Does not own: what a request asks of a session (``opening``), what happens on the WebSocket (``connection``),
what is measured (``runtime.metrics``).
Here because: every door of the server is listed in one place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import structlog
from aiohttp import web

from counterpoint import __version__
from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.manager import SessionManager

from .access import Access, Caller
from .access_routes import AccessRoutes
from .connection import Connection, Handshake
from .link import BUFFER_BYTES, WebSocketLink
from .opening import BETA_PROTOCOL, Openings, asks_for_beta, opens_at_once, resume_of
from .permits import Permits
from .settings import Settings
from .state import debug_state
from .webrtc.routes import CallRoutes

log = structlog.get_logger(__name__)

PAGE = Path(__file__).parent / "page"

_SUBPROTOCOLS = ("realtime", BETA_PROTOCOL)


class Routes:
    """Handlers of one server."""

    def __init__(
        self,
        manager: SessionManager,
        settings: Settings,
        access: Access,
        permits: Permits,
        *,
        model: str,
        entropy: Callable[[int], bytes],
    ) -> None:
        self._manager = manager
        self._settings = settings
        self._model = model
        self._entropy = entropy
        self._access = access
        self._permits = permits
        self._openings = Openings(model, settings.models)
        self._calls = CallRoutes(manager, settings, access, permits, self._openings, entropy)
        self._beside = AccessRoutes(access, manager, self._openings.served_name)

    def add_to(self, app: web.Application) -> None:
        router = app.router
        for path in ("/v1/realtime", "//v1/realtime", "/v1//realtime", "/v1/duplex"):
            router.add_get(path, self.realtime)
        self._beside.add_to(router)
        self._calls.add_to(app)
        router.add_get("/v1/models", self.models)
        router.add_get("/version", self.version)
        router.add_get("/health", self.health)
        router.add_get("/ready", self.readiness)
        router.add_get("/metrics", self.metrics)
        if self._settings.debug.state_route:
            router.add_get("/debug/state", self.state)
        router.add_get("/", self.page)
        router.add_get("/page/{name:[a-z.-]+}", self.page)

    # ------------------------------------------------------------------ the session door

    async def realtime(self, request: web.Request) -> web.StreamResponse:
        """Upgrade, then serve the connection to its end."""
        caller = self._access.authenticate(request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise web.HTTPUpgradeRequired(text="this is a WebSocket endpoint")
        self._permits.check_connection(caller, opens=opens_at_once(request.query))
        transport = self._settings.transport
        socket = web.WebSocketResponse(
            protocols=_SUBPROTOCOLS,
            # The reader refuses what is as long as its limit; ours is the longest message that passes.
            max_msg_size=self._settings.limits.max_frame_bytes + 1,
            compress=transport.compression,
            timeout=transport.close_timeout_s,
            writer_limit=BUFFER_BYTES,
        )
        writer = await socket.prepare(request)
        link = WebSocketLink(request, socket, writer, close_timeout_s=transport.close_timeout_s)
        ids = IdSource(self._entropy(6).hex())
        admit = functools.partial(self._permits.check_opening, caller)
        connection = Connection(self._manager, socket, link, transport, ids, admit)
        try:
            await connection.run(self._handshake(request, caller))
        except ProtocolError as refusal:
            await connection.refuse(refusal, CloseCode.REFUSED)
        return socket

    def _handshake(self, request: web.Request, caller: Caller) -> Handshake:
        """Raises ``ProtocolError`` for what refuses the connection."""
        if "call_id" in request.query:
            message = "a call has no observers here"
            raise ProtocolError(ErrorCode.UNSUPPORTED, message, param="call_id")
        return Handshake(
            self._openings.request(request, caller, beta=asks_for_beta(request)),
            autostart=opens_at_once(request.query),
            resume=resume_of(request),
        )

    # ------------------------------------------------------------------ beside it

    async def models(self, request: web.Request) -> web.Response:
        self._access.authenticate(request)
        voices = list(self._manager.plugin.capabilities().voices)  # beyond the official card: for the page
        card = {
            "id": self._model,
            "object": "model",
            "created": 0,
            "owned_by": "counterpoint",
            "voices": voices,
        }
        return web.json_response({"object": "list", "data": [card]})

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"name": "counterpoint", "version": __version__})

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readiness(self, request: web.Request) -> web.Response:
        ready = self._manager.admits
        return web.json_response({"ready": ready}, status=200 if ready else 503)

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._manager.metrics.exposition(), content_type="text/plain")

    async def state(self, request: web.Request) -> web.Response:
        if request.remote not in ("127.0.0.1", "::1"):
            raise web.HTTPForbidden(text="loopback only")
        return web.json_response(debug_state(self._manager))

    async def page(self, request: web.Request) -> web.FileResponse:
        """A file of the page. Browsers ask each time whether it has changed: modules must fit each other."""
        name = request.match_info.get("name", "index.html")
        return web.FileResponse(PAGE / name, headers={"Cache-Control": "no-cache"})
