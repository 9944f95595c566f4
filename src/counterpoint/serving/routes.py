"""The HTTP side: the upgrade to a session, and the small routes beside it.

Owns: paths, query parameters and headers (wire contract, sections 1 and 13), which model names are served.
Does not own: what happens on the WebSocket (``serving.connection``), what is measured (``runtime.metrics``).
Here because: everything that a URL can say is read in one place.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web

from counterpoint import __version__
from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.commands import ResumeSession
from counterpoint.protocol.config import SessionConfig, SessionType
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Dialect
from counterpoint.runtime.manager import OpenRequest, SessionManager

from .access import Access, Caller
from .access_routes import AccessRoutes
from .connection import Connection, Handshake
from .link import BUFFER_BYTES, WebSocketLink
from .permits import Permits
from .settings import Settings
from .state import debug_state

log = structlog.get_logger(__name__)

PAGE = Path(__file__).parent / "page"

_BETA_PROTOCOL = "openai-beta.realtime-v1"
_SUBPROTOCOLS = ("realtime", _BETA_PROTOCOL)


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
        self._beside = AccessRoutes(access, manager, self._served_name)

    def add_to(self, router: web.UrlDispatcher) -> None:
        for path in ("/v1/realtime", "//v1/realtime", "/v1//realtime", "/v1/duplex"):
            router.add_get(path, self.realtime)
        self._beside.add_to(router)
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
        self._permits.check_connection(caller, opens=_opens_at_once(request.query))
        transport = self._settings.transport
        socket = web.WebSocketResponse(
            protocols=_SUBPROTOCOLS,
            max_msg_size=self._settings.limits.max_frame_bytes,
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
            await connection.run(self._handshake(request, socket, caller))
        except ProtocolError as refusal:
            await connection.refuse(refusal, CloseCode.REFUSED)
        return socket

    def _handshake(self, request: web.Request, socket: web.WebSocketResponse, caller: Caller) -> Handshake:
        """Raises ``ProtocolError`` for what refuses the connection."""
        query = request.query
        duplex = request.path.endswith("/duplex") or query.get("duplex") == "1"
        beta = socket.ws_protocol == _BETA_PROTOCOL or request.headers.get("OpenAI-Beta") == "realtime=v1"
        resume_id = query.get("resume")
        locked, longest_s = _terms_of(caller)
        opening = OpenRequest(
            dialect=Dialect(extended=duplex, beta=beta),
            principal=caller.principal,
            key=caller.key.name,
            duplex=duplex,
            config=SessionConfig(
                type=_session_type(query), model=self._served_name(locked.get("model") or query.get("model"))
            ),
            locked=locked,
            max_session_s=longest_s,
        )
        return Handshake(
            opening,
            autostart=_opens_at_once(query),
            resume=None if resume_id is None else _resume_of(request, resume_id),
        )

    def _served_name(self, asked: str | None) -> str:
        """The name under which the model is echoed. Raises ``ProtocolError`` (``model_not_found``)."""
        if not asked or asked == self._model:
            return self._model
        if any(fnmatch.fnmatchcase(asked, alias) for alias in self._settings.models.aliases):
            return asked
        raise ProtocolError(
            ErrorCode.MODEL_NOT_FOUND, f"the model {asked[:80]!r} is not served here", param="model"
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


def _opens_at_once(query: Mapping[str, str]) -> bool:
    return query.get("autostart", "1") != "0" and "resume" not in query


def _session_type(query: Mapping[str, str]) -> SessionType:
    """Clients of the official API ask for a transcription session by ``intent``."""
    return SessionType.TRANSCRIPTION if query.get("intent") == "transcription" else SessionType.REALTIME


def _terms_of(caller: Caller) -> tuple[dict[str, Any], float]:
    """What a client secret fixes: fields of the session, and its longest life in seconds (0: no other)."""
    if caller.secret is None:
        return {}, 0.0
    request = caller.secret.request
    return request.session, (request.max_minutes or 0.0) * 60


def _resume_of(request: web.Request, session_id: str) -> ResumeSession | None:
    """A resume in the query or the headers; None if it names no token: then the first event brings it.

    Raises ``ProtocolError`` (``invalid_session_resume``) for a cursor that is no number.
    """
    token = request.query.get("resume_token") or request.headers.get("X-Resume-Token")
    if not token:
        return None
    cursor = (
        request.query.get("last_received_server_event_seq") or request.headers.get("X-Last-Event-Seq") or "0"
    )
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
        raise ProtocolError(
            ErrorCode.INVALID_SESSION_RESUME,
            "a whole number is expected",
            param="last_received_server_event_seq",
        )
    return ResumeSession(
        session_id=session_id, resume_token=token, last_received_server_event_seq=int(cursor)
    )
