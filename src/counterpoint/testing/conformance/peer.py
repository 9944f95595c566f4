"""One connection to the server under examination, with everything that goes over it recorded.

Owns: ``Peer``: sending well-formed and broken frames, waiting for events, how the connection ends.
Does not own: what is right (``streams`` and the checks), where the server is (``target``).
Here because: a client library is made to hide just what has to be seen here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import msgspec

from counterpoint.testing.streams.stream import Event, Stream

from .outcome import Failed

#: A model that has to think may take so long for its first word.
PATIENCE_S = 30.0

_CLOSE_S = 5.0
_decode = msgspec.json.Decoder().decode


class Peer:
    """``code`` is the close code of the server, once it closed; None for an end without one."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse, stream: Stream, name: str) -> None:
        self.stream = stream
        self.code: int | None = None
        self._connection = connection
        self._ids = (f"{name}.{number}" for number in itertools.count(1))
        self._news = asyncio.Event()
        self._over = False
        #: Events before this one were waited for already.
        self._at = 0
        self._reader = asyncio.create_task(self._read(), name=f"conformance: {name}")

    @property
    def protocol(self) -> str | None:
        """The subprotocol that the server chose."""
        return self._connection.protocol

    # ------------------------------------------------------------------ saying

    async def send(self, event: Event) -> str:
        """Send ``event`` under an ``event_id`` of its own, which is returned."""
        event = {"event_id": next(self._ids), **event}
        self.stream.sent.append(event)
        await self.send_frame(msgspec.json.encode(event))
        return str(event["event_id"])

    async def send_frame(self, frame: bytes, *, binary: bool = False) -> None:
        kind = aiohttp.WSMsgType.BINARY if binary else aiohttp.WSMsgType.TEXT
        try:
            await self._connection.send_frame(frame, kind)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise Failed(f"the connection was lost ({self._ending()})") from error

    # ------------------------------------------------------------------ hearing

    def mark(self) -> None:
        """What came so far is not waited for any more."""
        self._at = len(self.stream.received)

    async def until(self, *kinds: str, where: Callable[[Event], bool] = lambda _: True) -> Event:
        """The next event of one of ``kinds``. Raises ``Failed`` if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._next(kinds, where)
        except TimeoutError:
            raise Failed(f"no {' or '.join(kinds)} within {PATIENCE_S:g} s; {self._last()}") from None

    async def _next(self, kinds: tuple[str, ...], where: Callable[[Event], bool]) -> Event:
        while True:
            while self._at < len(self.stream.received):
                event = self.stream.received[self._at]
                self._at += 1
                if event["type"] in kinds and where(event):
                    return event
            if self._over:
                raise Failed(f"no {' or '.join(kinds)} before the end ({self._ending()}); {self._last()}")
            self._news.clear()
            await self._news.wait()

    def since(self, mark: int) -> Iterator[Event]:
        """What came after the first ``mark`` events."""
        return itertools.islice(self.stream.received, mark, None)

    @property
    def count(self) -> int:
        """Events so far; for ``since``."""
        return len(self.stream.received)

    async def end(self) -> int | None:
        """The close code, once the server has closed. Raises ``Failed`` if it does not."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.shield(self._reader)
        except TimeoutError:
            raise Failed("the server does not close the connection") from None
        return self.code

    async def _read(self) -> None:
        while not self._over:
            message = await self._connection.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    self._take(message.data)
                case aiohttp.WSMsgType.BINARY:
                    self.stream.oddities.append(f"a binary frame of {len(message.data)} bytes")
                case aiohttp.WSMsgType.CLOSE:
                    self.code = self.stream.closed = message.data
                    self._over = True
                case _:
                    self._over = True
            self._news.set()

    def _take(self, text: str) -> None:
        try:
            event = _decode(text)
        except msgspec.DecodeError:
            event = None
        if isinstance(event, dict) and isinstance(event.get("type"), str):
            self.stream.received.append(event)
        else:
            self.stream.oddities.append(repr(text[:60]))

    def _ending(self) -> str:
        return "no close code" if self.code is None else f"close code {self.code}"

    def _last(self) -> str:
        last: list[Any] = [event["type"] for event in self.stream.received[-3:]]
        return f"the last events were {', '.join(last)}" if last else "nothing was received"

    # ------------------------------------------------------------------ leaving

    async def close(self, code: int = 1000) -> None:
        """The closing handshake from this end."""
        with contextlib.suppress(TimeoutError, aiohttp.ClientError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await self._connection.close(code=code)
        self._over = True
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def drop(self) -> None:
        """End without a closing handshake."""
        with contextlib.suppress(OSError):
            self._connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        await self.close()
