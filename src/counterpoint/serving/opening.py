"""What a request for a session asks for, whatever will carry the session.

Owns: query parameters and headers (wire contract, section 1), under which names the model is served.
Does not own: paths (``routes``), who asks (``access``), what follows (``runtime.manager``).
Here because: a WebSocket and a call are asked for in the same words.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import ResumeSession
from counterpoint.protocol.config import SessionConfig, SessionType
from counterpoint.runtime.live import Dialect
from counterpoint.runtime.manager import OpenRequest

from .access import Caller
from .settings import ModelSettings

#: What a browser offers, which cannot set a header.
BETA_PROTOCOL = "openai-beta.realtime-v1"


class Openings:
    """``model`` is the name of the server's own; ``settings`` say how else it may be called."""

    def __init__(self, model: str, settings: ModelSettings) -> None:
        self._model = model
        self._settings = settings

    def request(self, request: web.Request, caller: Caller, *, beta: bool) -> OpenRequest:
        """Raises ``ProtocolError`` (``model_not_found``)."""
        query = request.query
        duplex = request.path.endswith("/duplex") or query.get("duplex") == "1"
        locked, longest_s = _terms_of(caller)
        model = self.served_name(locked.get("model") or query.get("model"))
        return OpenRequest(
            dialect=Dialect(extended=duplex, beta=beta),
            principal=caller.principal,
            key=caller.key.name,
            duplex=duplex,
            config=SessionConfig(type=_session_type(query), model=model),
            locked=locked,
            max_session_s=longest_s,
        )

    def served_name(self, asked: str | None) -> str:
        """The name under which the model is echoed. Raises ``ProtocolError`` (``model_not_found``)."""
        if not asked or asked == self._model:
            return self._model
        if any(fnmatch.fnmatchcase(asked, alias) for alias in self._settings.aliases):
            return asked
        raise ProtocolError(
            ErrorCode.MODEL_NOT_FOUND, f"the model {asked[:80]!r} is not served here", param="model"
        )


def asks_for_beta(request: web.Request) -> bool:
    """By the header, or by a subprotocol, whichever one is chosen (wire contract, "Beta names")."""
    offered = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
    by_protocol = BETA_PROTOCOL in (name.strip() for name in offered)
    return by_protocol or request.headers.get("OpenAI-Beta") == "realtime=v1"


def opens_at_once(query: Mapping[str, str]) -> bool:
    return query.get("autostart", "1") != "0" and "resume" not in query


def resume_of(request: web.Request) -> ResumeSession | None:
    """A resume in the query or the headers; None if it names no session, or no token.

    Raises ``ProtocolError`` (``invalid_session_resume``) for a cursor that is no number.
    """
    session_id = request.query.get("resume")
    token = request.query.get("resume_token") or request.headers.get("X-Resume-Token")
    if session_id is None or not token:
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


def _session_type(query: Mapping[str, str]) -> SessionType:
    """Clients of the official API ask for a transcription session by ``intent``."""
    return SessionType.TRANSCRIPTION if query.get("intent") == "transcription" else SessionType.REALTIME


def _terms_of(caller: Caller) -> tuple[dict[str, Any], float]:
    """What a client secret fixes: fields of the session, and its longest life in seconds (0: no other)."""
    if caller.secret is None:
        return {}, 0.0
    request = caller.secret.request
    return request.session, (request.max_minutes or 0.0) * 60
