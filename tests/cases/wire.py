"""A WebSocket client without manners: raw TCP, so that a test decides about every byte, and about reading.

Owns: ``Socket``: handshake, frames, pongs, closing politely or not at all, several events in one segment.
Does not own: what events mean and what must hold of them (``client``).
Here because: libraries read ahead, answer closes and pings, and never send RST; these tests must not.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Event = dict[str, Any]

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

_NO_LINGER = struct.pack("ii", 1, 0)


class Refused(Exception):
    """The upgrade was answered with an HTTP status."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


@dataclass(frozen=True)
class Ending:
    """How a connection ended. ``code``: of the server's close frame, None if there was none."""

    code: int | None
    reason: str = ""
    by_reset: bool = False


def frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A client's frame. The masking key is 0, which leaves the payload as it is."""
    size = len(payload)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 65536:
        length = struct.pack("!BH", 0x80 | 126, size)
    else:
        length = struct.pack("!BQ", 0x80 | 127, size)
    return bytes((opcode | (0x80 if final else 0),)) + length + bytes(4) + payload


def text(event: Event) -> bytes:
    return frame(TEXT, json.dumps(event).encode())


class Socket:
    """A connection after its upgrade. ``on_text`` gets each message as it comes, in a task of its own.

    ``reading`` can be cleared at any time: then nothing is taken off the socket. ``pongs`` and
    ``answers_close`` are the manners that a test may switch off; ``pong_delay_s`` is a slow peer's.
    """

    def __init__(self, connected: socket.socket, rest: bytes, on_text: Callable[[str], None]) -> None:
        self.reading = asyncio.Event()
        self.reading.set()
        self.pongs = True
        self.pong_delay_s = 0.0
        self.answers_close = True
        self.pings = 0
        self._socket = connected
        self._buffer = bytearray(rest)
        self._on_text = on_text
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._closed_with: tuple[int | None, str] | None = None
        self.ending: asyncio.Future[Ending] = self._loop.create_future()
        self._reader = asyncio.create_task(self._read_all(), name="test client")

    # ------------------------------------------------------------------ sending

    async def send(self, *frames: bytes) -> None:
        """Everything in one write. Raises ``ConnectionError`` if the connection is gone."""
        async with self._sending:
            if self.ending.done():
                raise ConnectionResetError("the connection is over")
            await self._loop.sock_sendall(self._socket, b"".join(frames))

    async def close(self, code: int | None = 1000) -> Ending:
        """Send a close frame and wait for the end; None: a close frame without a code."""
        self._closed_with = (None, "")
        with contextlib.suppress(ConnectionError):
            await self.send(frame(CLOSE, b"" if code is None else struct.pack("!H", code)))
        return await self.ending

    def reset(self) -> None:
        """RST, now; without effect on a connection that is over."""
        if not self.ending.done():
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.drop()

    def drop(self) -> None:
        """Close without a close frame: FIN, or RST if something was not read."""
        self._reader.cancel()
        self._socket.close()
        self._end(Ending(None))

    # ------------------------------------------------------------------ receiving

    async def _read_all(self) -> None:
        try:
            self._take_frames()
            while True:
                await self.reading.wait()
                data = await self._loop.sock_recv(self._socket, 65536)
                if not data:
                    return self._over(by_reset=False)
                self._buffer += data
                self._take_frames()
                # A flood of small messages must leave room for the test, and for the server beside it.
                await asyncio.sleep(0)
        except OSError:
            return self._over(by_reset=True)

    def _over(self, *, by_reset: bool) -> None:
        self._socket.close()
        code, reason = self._closed_with or (None, "")
        self._end(Ending(code, reason, by_reset))

    def _end(self, ending: Ending) -> None:
        if not self.ending.done():
            self.ending.set_result(ending)

    def _take_frames(self) -> None:
        at = 0
        while (parsed := _parse(self._buffer, at)) is not None:
            opcode, payload, at = parsed
            self._take(opcode, payload)
        del self._buffer[:at]

    def _take(self, opcode: int, payload: bytes) -> None:
        match opcode:
            case 1:
                self._on_text(payload.decode())
            case 8:
                code = struct.unpack("!H", payload[:2])[0] if payload else None
                self._closed_with = (code, payload[2:].decode())
                if self.answers_close:
                    self._answer(frame(CLOSE, payload[:2]))
            case 9:
                self.pings += 1
                if self.pongs:
                    self._loop.call_later(self.pong_delay_s, self._answer, frame(PONG, payload))
            case 10:
                pass
            case _:
                raise AssertionError(f"opcode {opcode} from the server")

    def _answer(self, answer: bytes) -> None:
        """Without waiting: control frames are small, and a lost connection is noticed by the reader."""
        if not self.ending.done() and not self._sending.locked():
            with contextlib.suppress(OSError):
                self._socket.send(answer)


def _parse(buffer: bytearray, at: int) -> tuple[int, bytes, int] | None:
    """The whole frame at ``at`` and where the next begins; the server neither masks nor fragments."""
    if len(buffer) < at + 2:
        return None
    first, size = buffer[at], buffer[at + 1]
    assert first & 0x80, "a fragment"
    assert not size & 0x80, "a masked frame"
    at += 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(buffer) < at + width:
            return None
        size = int.from_bytes(buffer[at : at + width], "big")
        at += width
    if len(buffer) < at + size:
        return None
    return first & 0x0F, bytes(buffer[at : at + size]), at + size


async def connect(
    url: str,
    on_text: Callable[[str], None],
    *,
    headers: Mapping[str, str] | None = None,
    receive_buffer: int | None = None,
) -> Socket:
    """Raises ``Refused`` if there was no upgrade, ``OSError`` if there was no connection.

    ``receive_buffer``: what the kernel may take for a client that does not read.
    """
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    loop = asyncio.get_running_loop()
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await loop.sock_connect(opened, (parts.hostname, parts.port))
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        await loop.sock_sendall(opened, _upgrade(path, parts.netloc, headers or {}))
        rest = await _upgraded(opened)
    except BaseException:
        opened.close()
        raise
    return Socket(opened, rest, on_text)


def _upgrade(path: str, host: str, headers: Mapping[str, str]) -> bytes:
    lines = {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()


async def _upgraded(opened: socket.socket) -> bytes:
    """What came behind the answer to the upgrade."""
    loop = asyncio.get_running_loop()
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = await loop.sock_recv(opened, 65536)
        if not data:
            raise ConnectionResetError("no answer to the upgrade")
        answer += data
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split(None, 2)[1])
    if status != 101:
        raise Refused(status, rest.decode())
    return rest


async def http_get(url: str, path: str) -> tuple[int, bytes]:
    """Status and body of a plain GET to the server of ``url``."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(None, 2)[1]), body
