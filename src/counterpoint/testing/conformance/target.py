"""The server under examination: where it is, what it offers, every connection that was made to it.

Owns: ``Target``: connecting in every way that a client may, asking what is offered, the recordings.
Does not own: what is right (the checks).
Here because: a check should say what it does with a server, and nothing of addresses and keys.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from counterpoint.testing.streams.stream import Event, Stream

from .outcome import Failed, NotOffered
from .peer import Peer

#: Attempts to find a free slot: a check may come before the session of the last one is cleaned up.
_ATTEMPTS = 40
_RETRY_S = 0.25

#: Larger frames than any server sends us.
_MAX_FRAME_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Offer:
    """What the server said of itself."""

    #: ``session.capabilities``; None: it does not know the extensions.
    capabilities: Mapping[str, Any] | None = None
    scripted: bool = False

    def can(self, name: str) -> bool:
        """Whether a capability is there; without extensions nobody says, and everybody is asked."""
        return self.capabilities is None or bool(self.capabilities.get(name))


@dataclass
class Target:
    """``url`` is that of the session endpoint; its query is part of every connection."""

    http: aiohttp.ClientSession
    url: str
    api_key: str | None = None
    offer: Offer = field(default_factory=Offer)
    #: Every connection that was made, in order.
    streams: list[Stream] = field(default_factory=list)
    _names: Any = field(default_factory=lambda: (f"c{number}" for number in itertools.count(1)))

    def requires(self, capability: str) -> None:
        """Raise ``NotOffered`` without it."""
        if not self.offer.can(capability):
            raise NotOffered(f"the model does not offer {capability}")

    # ------------------------------------------------------------------ connecting

    @asynccontextmanager
    async def connect(
        self,
        *,
        extended: bool = False,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        protocols: tuple[str, ...] = ("realtime",),
        with_key: bool = True,
        query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Peer]:
        """A connection that is closed at the end, if it was not before. Raises ``Failed``, also for an HTTP
        refusal."""
        asked = {**({"duplex": "1"} if extended else {}), **(query or {})}
        stream = Stream(extended=extended or path == "/v1/duplex", secrets=[self.api_key or ""])
        stream.beta = bool(headers and "OpenAI-Beta" in headers) or "openai-beta.realtime-v1" in protocols
        socket = await self._upgrade(path, asked, self._headers(headers, with_key), protocols)
        self.streams.append(stream)
        peer = Peer(socket, stream, next(self._names))
        try:
            yield peer
        finally:
            await peer.close()

    @asynccontextmanager
    async def session(
        self, *, extended: bool = False, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[Peer, Event]]:
        """A connection with a session, and the ``session`` that it was shown."""
        for _ in range(_ATTEMPTS):
            async with self.connect(extended=extended, query=query) as peer:
                first = await peer.until("session.created", "error")
                if first["type"] == "session.created":
                    yield peer, first["session"]
                    return
                if first["error"].get("code") != "resource_exhausted":
                    raise Failed(f"no session: {first['error'].get('code')}")
            await asyncio.sleep(_RETRY_S)
        raise Failed("no free slot")

    async def status(self, *, path: str | None = None, headers: Mapping[str, str] | None = None) -> int:
        """The HTTP status that refuses a connection without a key of its own; 101 if none does."""
        try:
            socket = await self._ws(path, {}, dict(headers or {}), ("realtime",))
        except aiohttp.WSServerHandshakeError as refusal:
            return refusal.status
        await socket.close()
        return 101

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a route beside the endpoint."""
        async with self.http.get(self._url(path), headers=self._headers(None, True)) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.text()

    async def _upgrade(
        self, path: str | None, query: dict[str, str], headers: dict[str, str], protocols: tuple[str, ...]
    ) -> aiohttp.ClientWebSocketResponse:
        try:
            return await self._ws(path, query, headers, protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            raise Failed(f"the connection was refused with HTTP {refusal.status}") from None

    async def _ws(
        self, path: str | None, query: dict[str, str], headers: dict[str, str], protocols: tuple[str, ...]
    ) -> aiohttp.ClientWebSocketResponse:
        own = dict(parse_qsl(urlsplit(self.url).query))
        return await self.http.ws_connect(
            self._url(path),
            params={**own, **query},
            headers=headers,
            protocols=protocols,
            max_msg_size=_MAX_FRAME_BYTES,
        )

    def _headers(self, headers: Mapping[str, str] | None, with_key: bool) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self.api_key}"} if self.api_key and with_key else {}
        return {**key, **(headers or {})}

    def _url(self, path: str | None) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path if path is None else path}"
