"""How an event looks to one connection: stock or extended, official or beta names.

Owns: what is left out, stripped and renamed for whom (wire contract, "Stock and extended connections").
Does not own: the official encoding (``codec``), the beta shapes (``beta``), which dialect a connection
speaks (``serving``).
Here because: the session speaks one dialect, and every other is made at the edge, from bytes that are
encoded already. What everybody sees alike is passed on untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from counterpoint.errors import ProtocolError

from . import beta as beta_shape
from .catalog import CATALOG, EventKind
from .codec import encode_body, join
from .codes import ErrorCode
from .config import stock_session
from .events import error_event
from .formats import stock_format

#: An official body starts so, the type and the rest following.
_HEAD = b'{"type":"'


def session_frame(
    kind: EventKind, body: bytes, duplex: bytes, number: int, *, extended: bool, beta: bool
) -> bytes | None:
    """The frame of a session event under its number; None if the connection has no word for it."""
    if beta or not (extended or kind.type in _PLAIN):
        projected = _project(kind, body, extended=extended, beta=beta)
        if projected is None:
            return None
        body = projected
    return join(body, duplex if extended else None, number)


def connection_frame(kind: EventKind, body: bytes, *, extended: bool, beta: bool) -> bytes | None:
    """The frame of an event that has no number; None if the connection has no word for it."""
    return _project(kind, body, extended=extended, beta=beta)


def _project(kind: EventKind, body: bytes, *, extended: bool, beta: bool) -> bytes | None:
    if not extended:
        if not kind.official:
            substitute = _STOCK_SUBSTITUTES.get(kind.type)
            return None if substitute is None else substitute(body)
        strip = _STOCK_EDITS.get(kind.type)
        if strip is not None:
            body = _edit(body, strip)
    if not beta:
        return body
    if kind.type in beta_shape.ABSENT_EVENTS:
        return body if extended else None  # the numbers of an extended connection have no holes
    return _rename(kind, body)


def _rename(kind: EventKind, body: bytes) -> bytes:
    if kind.type in beta_shape.SHAPED_EVENTS:
        body = _edit(body, beta_shape.to_beta)
    name = beta_shape.EVENT_NAMES.get(kind.type)
    if name is None:
        return body
    return b"".join((_HEAD, name.encode(), memoryview(body)[len(_HEAD) + len(kind.type) :]))


def _edit(body: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """For the few events that must be read again to be changed; none of them carries audio deltas."""
    values = msgspec.json.decode(body)
    change(values)
    return msgspec.json.encode(values)


def _strip_session(values: dict[str, Any]) -> None:
    values["session"] = stock_session(values["session"])


def _strip_response(values: dict[str, Any]) -> None:
    response = values["response"]
    metadata, audio = response["metadata"], response["audio"]
    if metadata is not None:
        response["metadata"] = {key: value for key, value in metadata.items() if isinstance(value, str)}
    if audio is not None:
        audio["output"]["format"] = stock_format(audio["output"]["format"])


def _expired_as_error(body: bytes) -> bytes:
    """The end of a session that expired, in words that a stock client knows (wire contract, section 2)."""
    values = msgspec.json.decode(body)
    expired = ProtocolError(ErrorCode.SESSION_EXPIRED, f"the session expired: {values['reason']}")
    return encode_body(error_event(expired), values["event_id"])


#: What stock connections are told in the place of an extension event.
_STOCK_SUBSTITUTES: dict[str, Callable[[bytes], bytes]] = {"session.expired": _expired_as_error}

#: What stock connections must not see inside official events.
_STOCK_EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "session.created": _strip_session,
    "session.updated": _strip_session,
    "response.created": _strip_response,
    "response.done": _strip_response,
}

#: Official events that every connection sees as they are, beta names aside: almost all that is ever sent.
_PLAIN = frozenset(kind.type for kind in CATALOG.values() if kind.official and kind.type not in _STOCK_EDITS)
