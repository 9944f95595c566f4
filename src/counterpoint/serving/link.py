"""One WebSocket as delivery sees it: frames go in, bytes leave, and life is visible.

Owns: WebSocket text framing of what the server sends, the small buffers that make ``sent`` honest, the
pings, the close handshake and its bound.
Does not own: which frames (``delivery.writer``), reading (``serving.connection``).
Here because: everything that depends on aiohttp's and the kernel's buffers is in one file behind
``delivery.writer.Link``; another transport replaces this file.

aiohttp writes one frame per call and wakes per frame; a replay of thousands of entries wants one write for
many. A server's frames are neither masked nor (by default) compressed, so a frame is a two-to-ten byte
header and the payload (RFC 6455, section 5.2).
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable, Sequence

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

#: Output that the kernel and the transport may hold beyond what is on the wire (wire contract, section 3).
BUFFER_BYTES = 16 * 1024

_TEXT_FRAME = 0x81
_PING_FRAME = b"\x89\x00"
#: Linux's number; the standard library names the constant only in newer versions.
_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
#: Offset of ``tcpi_last_data_recv`` in Linux's ``struct tcp_info``: after 8 bytes and 11 32-bit numbers.
_LAST_DATA_RECEIVED = 52


def frame(payload: bytes) -> bytes:
    """One unmasked text frame."""
    size = len(payload)
    if size < 126:
        return bytes((_TEXT_FRAME, size)) + payload
    if size < 65536:
        return struct.pack("!BBH", _TEXT_FRAME, 126, size) + payload
    return struct.pack("!BBQ", _TEXT_FRAME, 127, size) + payload


class WebSocketLink:
    """Implements ``delivery.writer.Link`` over an aiohttp WebSocket after its upgrade."""

    def __init__(
        self,
        request: web.Request,
        socket_: web.WebSocketResponse,
        writer: AbstractStreamWriter,
        *,
        close_timeout_s: float,
    ) -> None:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the peer left during the upgrade")
        self._transport = transport
        self._ws = socket_
        self._writer = writer
        self._close_timeout_s = close_timeout_s
        self._closing = False
        self._gone = asyncio.Event()
        transport.set_write_buffer_limits(high=BUFFER_BYTES)
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        if self._socket is not None and sys.platform == "linux":
            self._socket.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, BUFFER_BYTES)

    def pulse(self) -> SocketPulse:
        """What ``keepalive`` looks at. It holds the link, so the link does not hold it."""
        return SocketPulse(self._socket, self.buffered, self._ping)

    def write(self, frames: Sequence[bytes]) -> None:
        """Hand whole messages to the transport, joined into one write. Never blocks; dropped once closing."""
        if not self._closing and not self._transport.is_closing():
            self._transport.write(b"".join(map(frame, frames)))

    async def drain(self) -> None:
        """Return when the transport takes more. Raises ``ConnectionError`` when the connection is lost."""
        if self._transport.is_closing():
            raise ConnectionResetError("the connection is lost")
        await self._writer.drain()

    def buffered(self) -> int:
        """Bytes that the transport still holds."""
        return 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()

    async def close(self, code: int, reason: str = "") -> None:
        """Close with ``code``; a peer that does not answer within the bound is reset."""
        if self._closing:
            return
        self._closing = True
        try:
            async with asyncio.timeout(self._close_timeout_s):
                await self._ws.close(code=code, message=reason.encode()[:120])
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self.abort()

    async def end(self) -> None:
        """Nobody reads any more: the connection ends now, or once the closing handshake under way is over.

        Where the peer closed, the answer to that is still flushed, within the same bound.
        """
        if self._closing:
            await self._gone.wait()
        elif self._transport.is_closing():
            asyncio.get_running_loop().call_later(self._close_timeout_s, self.abort)
        else:
            self.abort()

    def abort(self) -> None:
        """End the connection now, with a reset if bytes are unsent."""
        self._closing = True
        self._transport.abort()
        self._gone.set()

    def _ping(self) -> None:
        if not self._closing and not self._transport.is_closing():
            self._transport.write(_PING_FRAME)


class SocketPulse:
    """Implements ``keepalive.Pulse``. Half of it is the system's knowledge, which only Linux tells."""

    def __init__(self, socket_: socket.socket | None, buffered: Callable[[], int], ping: Callable[[], None]):
        self._socket = socket_ if sys.platform == "linux" else None
        self._buffered = buffered
        self.ping = ping

    def buffered(self) -> int:
        """Bytes that the transport holds, or the system, which keeps them until they are acknowledged."""
        return self._buffered() + self._unacknowledged()

    def _unacknowledged(self) -> int:
        if self._socket is None:
            return 0
        try:
            return int.from_bytes(
                fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder
            )
        except (OSError, ValueError):  # it is closed
            return 0

    def seconds_since_bytes(self) -> float | None:
        """Age of the newest byte from the peer; None where the system does not tell."""
        if self._socket is None:
            return None
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECEIVED + 4)
        except (OSError, ValueError):  # it is closed
            return None
        return int.from_bytes(info[_LAST_DATA_RECEIVED:], sys.byteorder) / 1000
