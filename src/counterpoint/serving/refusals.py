"""Errors of the HTTP side, in the form in which clients of the API expect them.

Owns: the JSON body of a refusal.
Does not own: which refusal it is (whoever raises it), ``error`` events (``protocol.events``).
Here because: the client libraries turn such a body into an exception with its code and its param.
"""

from __future__ import annotations

import json

from aiohttp import web

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorClass, ErrorCode


def refusal(
    kind: type[web.HTTPException],
    code: str,
    message: str,
    *,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.HTTPException:
    """An HTTP error to be raised, with ``{"error": {type, code, message, param}}`` as its body."""
    limited = kind is web.HTTPTooManyRequests
    error = {
        "type": ErrorClass.RATE_LIMIT if limited else ErrorClass.INVALID_REQUEST,
        "code": code,
        "message": message,
        "param": param,
    }
    return kind(text=json.dumps({"error": error}), content_type="application/json", headers=headers)


def unauthorized(message: str) -> web.HTTPException:
    challenge = {"WWW-Authenticate": "Bearer"}
    return refusal(web.HTTPUnauthorized, ErrorCode.INVALID_API_KEY, message, headers=challenge)


def bad_request(error: ProtocolError) -> web.HTTPException:
    """What a client's mistake in a body is answered with."""
    return refusal(web.HTTPBadRequest, error.code, error.message, param=error.param)
