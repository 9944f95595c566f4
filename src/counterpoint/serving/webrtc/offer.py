"""The body of a call: an SDP offer, perhaps with a session beside it.

Owns: both forms of the body (wire contract, section 13).
Does not own: SDP itself (``peer``), what a session may say (``protocol.config``).
Here because: what is no call must be refused before anything is opened for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode

#: Browsers write offers of a few kilobytes.
MAX_SDP_CHARS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Offer:
    sdp: str
    session: dict[str, Any] = field(default_factory=dict)


async def read_offer(request: web.Request) -> Offer:
    """Raises ``ProtocolError`` with ``param`` ``sdp`` or ``session``."""
    match request.content_type:
        case "application/sdp":
            return Offer(_sdp(await request.text()))
        case "multipart/form-data":
            form = await request.post()
            return Offer(_sdp(_text(form.get("sdp"))), _session(_text(form.get("session"))))
        case _:
            message = "application/sdp, or multipart/form-data with sdp and session, is expected"
            raise ProtocolError(ErrorCode.INVALID_EVENT, message, param="content-type")


def _text(part: str | bytes | bytearray | web.FileField | None) -> str:
    """A part of the form; clients may send it with a content type, or as a file."""
    match part:
        case None:
            return ""
        case str():
            return part
        case web.FileField():
            return part.file.read().decode("utf-8", "replace")
        case _:
            return part.decode("utf-8", "replace")


def _sdp(text: str) -> str:
    if not text.startswith("v=0") or len(text) > MAX_SDP_CHARS:
        raise ProtocolError(ErrorCode.INVALID_EVENT, "an SDP offer is expected", param="sdp")
    return text


def _session(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        session = json.loads(text)
    except (ValueError, RecursionError):
        session = None
    if not isinstance(session, dict):
        raise ProtocolError(ErrorCode.INVALID_EVENT, "a JSON object is expected", param="session")
    return session
