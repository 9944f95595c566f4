"""What reached a client that did not ask for the extensions, held against the official schemas.

Owns: ``leaks``; a stock or beta client that takes a session over.
Does not own: what the session uses (the tests).
Here because: every way in which a session can use the extensions ends in the same question.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from counterpoint.protocol.catalog import CATALOG
from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.schema.events import server_event_problems

EXTENSIONS = {kind.type for kind in CATALOG.values() if not kind.official}


def leaks(peer: Peer, *, beta: bool) -> list[str]:
    """Every event type, key and value that the API of ``peer`` does not have."""
    return [
        f"{event['type']}: {problem}"
        for event in peer.stream.received
        for problem in server_event_problems(event, beta=beta)
    ]


def kinds(peer: Peer) -> set[str]:
    return {event["type"] for event in peer.stream.received}


@asynccontextmanager
async def unextended(target: Target, *, beta: bool) -> AsyncIterator[Peer]:
    """A session of such a client from its beginning."""
    async with target.connect(headers=_headers(beta)) as peer:
        await peer.until("session.created")
        yield peer


@asynccontextmanager
async def taken_over(target: Target, extended: Peer, *, beta: bool) -> AsyncIterator[Peer]:
    """Such a client in the place of ``extended``, once it was sent all that happened."""
    created = extended.stream.received[0]
    query = {"resume": created["session"]["id"], "resume_token": created["resume_token"]}
    await extended.drop()
    async with target.connect(query=query, headers=_headers(beta)) as peer:
        head = _newest(extended)
        while _newest(peer) < head:
            await peer.until(*CATALOG, "conversation.item.created")
        peer.mark()
        yield peer


def _headers(beta: bool) -> dict[str, str]:
    return {"OpenAI-Beta": "realtime=v1"} if beta else {}


def _newest(peer: Peer) -> int:
    return max((event.get("server_event_seq", 0) for event in peer.stream.received), default=0)
