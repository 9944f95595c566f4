"""The first words on a connection: open a session, or take one up again.

Owns: what is said first, how a refusal is told.
Does not own: the connection (``transport``), what follows (``link``).
Here because: until it is done nothing may be assumed, and afterwards nothing of it matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from counterpoint.errors import ServerRefused

from .event import Event, read_event, text_of
from .options import ResumePoint
from .transport import Transport


@dataclass(frozen=True, slots=True)
class Opening:
    """What a connection begins with: ``first`` is sent unless it is None, ``awaited`` is the good answer."""

    first: dict[str, Any] | None
    awaited: str


def open_extended(config: dict[str, Any]) -> Opening:
    """With ``autostart=0`` the update opens, answered by ``session.created`` alone (wire, section 1)."""
    return Opening({"type": "session.update", "session": config, "extensions": True}, "session.created")


def open_stock() -> Opening:
    """A server of the official API speaks first."""
    return Opening(None, "session.created")


def resume(point: ResumePoint, replay: str) -> Opening:
    """Wire contract, section 3."""
    first = {
        "type": "session.resume",
        "session_id": point.session_id,
        "resume_token": point.resume_token,
        "last_received_server_event_seq": point.server_event_seq,
        "replay": replay,
    }
    return Opening(first, "session.resumed")


async def shake_hands(transport: Transport, opening: Opening, deliver: Callable[[Event], None]) -> Event:
    """The good answer; what comes before it (a place in the queue) is delivered.

    Raises ``ServerRefused`` for an error, and ``Closed`` if the connection ends without one.
    """
    if opening.first is not None:
        await transport.send(msgspec.json.encode(opening.first))
    while True:
        try:
            event = read_event(await transport.receive())
        except ValueError:
            continue
        if event.type == opening.awaited:
            return event
        if event.type == "error":
            raise refusal_of(event)
        deliver(event)


def refusal_of(event: Event) -> ServerRefused:
    """What an ``error`` event says, to be raised."""
    error = event.object("error")
    retry = error.get("retry_after_ms")
    return ServerRefused(
        text_of(error, "code") or text_of(error, "type"),
        text_of(error, "message"),
        param=text_of(error, "param") or None,
        retry_after_ms=retry if isinstance(retry, int) else None,
    )
