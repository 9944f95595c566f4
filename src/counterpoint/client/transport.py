"""One WebSocket as the client needs it: frames out, frames in, and how it ended.

Owns: aiohttp; telling every way in which a connection can end by one exception.
Does not own: what is said (``handshake``, ``link``), dialling again (``link``).
Here because: the rest of the client can then be tested without sockets, and on a virtual clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

import aiohttp

from counterpoint import __version__

#: A closing handshake without a code.
NO_STATUS = 1005
#: No closing handshake: the connection just broke.
BROKEN = 1006

#: The largest event is an item with its audio, or a snapshot of a long conversation.
MAX_FRAME_BYTES = 64 << 20

#: How long the peer has to answer our close.
_CLOSE_S = 2.0


class Closed(Exception):
    """The connection ended; ``code`` and ``reason`` are the peer's where it gave any."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"{code} {reason}".rstrip())
        self.code = code
        self.reason = reason


class UpgradeRefused(Exception):
    """The server answered the upgrade with HTTP ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Transport(Protocol):
    """A connection. ``send`` and ``receive`` raise ``Closed``, and go on raising it."""

    async def send(self, frame: bytes) -> None: ...

    async def receive(self) -> str | bytes: ...

    async def close(self, code: int) -> None:
        """End it, with a closing handshake where that is possible; idempotent, bounded, never raises."""


Dial = Callable[[], Awaitable[Transport]]


class WebSocketTransport:
    """Pings are answered beside ``receive``: while our bytes wait for a slow link, events are still read."""

    def __init__(self, http: aiohttp.ClientSession, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._http = http
        self._websocket = websocket
        self._socket = websocket.get_extra_info("socket")
        self._pong: asyncio.Task[None] | None = None
        self._closed: Closed | None = None

    @classmethod
    async def dial(
        cls, url: str, *, headers: dict[str, str], tls: ssl.SSLContext | None, ping_s: float
    ) -> WebSocketTransport:
        """Raises ``UpgradeRefused`` or ``Closed``."""
        http = aiohttp.ClientSession(headers={"User-Agent": f"counterpoint/{__version__}", **headers})
        try:
            websocket = await http.ws_connect(
                url,
                protocols=("realtime",),
                heartbeat=ping_s,
                autoping=False,
                max_msg_size=MAX_FRAME_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                ssl=True if tls is None else tls,
            )
        except BaseException as error:
            await http.close()
            if isinstance(error, aiohttp.WSServerHandshakeError):
                raise UpgradeRefused(error.status) from None
            if isinstance(error, aiohttp.ClientError | OSError):
                raise Closed(BROKEN, str(error)) from error
            raise
        return cls(http, websocket)

    async def send(self, frame: bytes) -> None:
        try:
            await self._websocket.send_frame(frame, aiohttp.WSMsgType.TEXT)
        except (aiohttp.ClientError, OSError) as error:
            raise Closed(BROKEN, str(error)) from error

    async def receive(self) -> str | bytes:
        while self._closed is None:
            message = await self._websocket.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT | aiohttp.WSMsgType.BINARY:
                    frame: str | bytes = message.data
                    return frame
                case aiohttp.WSMsgType.PING:
                    self._answer_ping(message.data)
                case aiohttp.WSMsgType.PONG:
                    pass
                case aiohttp.WSMsgType.CLOSE:
                    self._closed = Closed(message.data or NO_STATUS, message.extra or "")
                case aiohttp.WSMsgType.ERROR:
                    self._closed = Closed(self._websocket.close_code or BROKEN, str(message.data))
                case _:
                    # aiohttp tells 1000 here when the stream just ended: nobody said that.
                    self._closed = Closed(BROKEN)
        raise self._closed

    def _answer_ping(self, data: bytes) -> None:
        if self._pong is None or self._pong.done():
            self._pong = asyncio.create_task(self._send_pong(data))

    async def _send_pong(self, data: bytes) -> None:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await self._websocket.pong(data)

    async def close(self, code: int) -> None:
        if self._pong is not None:
            self._pong.cancel()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._websocket.close(code=code)
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass
        finally:
            self._shut_down()
            await self._http.close()

    def _shut_down(self) -> None:
        """A peer that reads no more must not hold the socket: nothing waits to be written after this."""
        with contextlib.suppress(OSError):  # gone already
            self._socket.shutdown(socket.SHUT_RDWR)
