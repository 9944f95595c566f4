"""What keys are used for beside connections: secrets for browsers, ending sessions.

Owns: ``POST /v1/realtime/client_secrets``, ``DELETE /v1/sessions/{id}`` (wire contract, sections 10 and 13).
Does not own: who may (``access``), what a secret does (``client_secrets``), how a session ends (``runtime``).
Here because: these are for programs of whoever runs the server, not for the clients of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from aiohttp import web

from counterpoint.errors import ProtocolError
from counterpoint.protocol.config import SESSION_OBJECTS, SessionConfig, locked, render
from counterpoint.runtime.manager import SessionManager

from .access import Access
from .client_secrets import ClientSecret, SecretRequest, read_secret_request
from .refusals import bad_request, refusal

log = structlog.get_logger(__name__)


class AccessRoutes:
    """``served_name`` is the name under which a model is served that was asked for; it raises
    ``ProtocolError``."""

    def __init__(
        self, access: Access, manager: SessionManager, served_name: Callable[[str | None], str]
    ) -> None:
        self._access = access
        self._manager = manager
        self._served_name = served_name

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/realtime/client_secrets", self.create_secret)
        router.add_delete("/v1/sessions/{session_id}", self.delete_session)

    async def create_secret(self, request: web.Request) -> web.Response:
        caller = self._access.authenticate_key(request)
        try:
            asked = read_secret_request(await request.text())
            config = self._configuration(asked)
        except ProtocolError as mistake:
            raise bad_request(mistake) from None
        value, secret = self._access.issue(caller, asked)
        log.info("client secret issued", id=secret.id, key=caller.key.name, seconds=asked.seconds)
        return web.json_response(_secret_response(value, secret, config))

    def _configuration(self, asked: SecretRequest) -> SessionConfig:
        """What a session of such a secret begins with. Raises ``ProtocolError`` for what none could have."""
        config = locked(SessionConfig(), asked.session)
        self._served_name(config.model)
        return self._manager.plugin.validate(config, None)

    async def delete_session(self, request: web.Request) -> web.Response:
        """End somebody's session: ``session.closed`` with reason ``admin``, close code 1008."""
        caller = self._access.authenticate_admin(request)
        session_id = request.match_info["session_id"]
        live = self._manager.find(session_id)
        if live is None:
            raise refusal(web.HTTPNotFound, "session_not_found", "there is no such session")
        log.info("session ended by an administrator", session=session_id, key=caller.key.name)
        live.close("admin")
        return web.Response(status=204)


def _secret_response(value: str, secret: ClientSecret, config: SessionConfig) -> dict[str, Any]:
    expires_at = int(secret.expires_at)
    live = {"id": secret.id, "object": SESSION_OBJECTS[config.type], "expires_at": expires_at}
    session = render(config, extended=False, live=live)
    answer: dict[str, Any] = {"value": value, "expires_at": expires_at, "session": session}
    limits = secret.request.limits
    return {**answer, "limits": limits} if limits else answer
