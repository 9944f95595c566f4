"""One WebSocket connection: its handshake, and its reading until it ends.

Owns: the first event (wire contract, section 1), the handshake timeout, reading with back-pressure.
Does not own: the upgrade (``serving.routes``), writing (``delivery.writer``), sessions (``runtime``).
Here because: what a connection may do before it belongs to a session is a protocol of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog
from aiohttp import WSMsgType, web

from counterpoint.errors import AccessRefused, AdmissionRefused, ProtocolError, ResumeRefused
from counterpoint.protocol import codec
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.commands import ResumeSession, UpdateSession
from counterpoint.protocol.config import merge
from counterpoint.protocol.events import error_event
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Attachment
from counterpoint.runtime.manager import OpenRequest, SessionManager

from .keepalive import Keepalive
from .link import WebSocketLink
from .settings import TransportSettings

log = structlog.get_logger(__name__)

#: Longest a connection reads on without letting others run: a flood from one peer delays them by no more.
READ_SLICE_S = 0.005


@dataclass(frozen=True, slots=True)
class Handshake:
    """What the request asked for."""

    request: OpenRequest
    autostart: bool = True
    resume: ResumeSession | None = None  #: given in the query or the headers


class Connection:
    """Runs one connection to its end.

    ``admit()`` is asked before a session is opened; it raises ``AccessRefused`` or ``AdmissionRefused``.
    """

    def __init__(
        self,
        manager: SessionManager,
        socket: web.WebSocketResponse,
        link: WebSocketLink,
        transport: TransportSettings,
        ids: IdSource,
        admit: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._ws = socket
        self._link = link
        self._transport = transport
        self._ids = ids
        self._admit = admit
        self._keepalive: Keepalive | None = None

    async def run(self, handshake: Handshake) -> None:
        """Handshake, then read until the connection ends; never raises for what a peer does."""
        self._keepalive = Keepalive(
            self._link.pulse(),
            self._transport.ping_interval_s,
            self._transport.ping_timeout_s,
            self._link.abort,
        )
        try:
            attachment = await self._shake_hands(handshake)
            if attachment is not None:
                await self._read(attachment)
        finally:
            self._keepalive.stop()
            await self._link.end()
            _forget_ways(self._ws.exception())

    # ------------------------------------------------------------------ handshake

    async def _shake_hands(self, handshake: Handshake) -> Attachment | None:
        if handshake.resume is not None:
            return await self._resume(handshake.resume, handshake.request)
        if handshake.autostart:
            return await self._open(handshake.request)
        try:
            async with asyncio.timeout(self._transport.handshake_timeout_s or None):
                return await self._first_event(handshake.request)
        except TimeoutError:
            await self.refuse(
                ProtocolError(ErrorCode.CONFIG_TIMEOUT, "the first event did not come in time"),
                CloseCode.HANDSHAKE_TIMEOUT,
            )
            return None

    async def _first_event(self, request: OpenRequest) -> Attachment | None:
        while (message := await self._ws.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
            try:
                command = codec.decode(message.data)
                match command:
                    case UpdateSession():
                        return await self._open_configured(request, command)
                    case ResumeSession():
                        extended = replace(request, dialect=replace(request.dialect, extended=True))
                        return await self._resume(command, extended)
                    case _:
                        raise ProtocolError(
                            ErrorCode.SESSION_NOT_OPEN,
                            "the first event must be session.update or session.resume",
                            event_id=command.event_id,
                        )
            except ProtocolError as refusal:
                if refusal.code == ErrorCode.INVALID_SESSION_RESUME:
                    await self.refuse(refusal, CloseCode.REFUSED)
                    return None
                self._say(refusal)
                await self._drain()
        return None

    async def _open_configured(self, request: OpenRequest, update: UpdateSession) -> Attachment | None:
        """What is refused, here or by the model, names the update."""
        dialect = replace(request.dialect, extended=request.dialect.extended or update.extensions)
        try:
            config = merge(request.config, update.patch, extended=dialect.extended)
            request = replace(request, dialect=dialect, config=config)
            return await self._open(replace(request, client_event_seq=update.client_event_seq))
        except ProtocolError as refusal:
            refusal.event_id = update.event_id
            raise

    async def _open(self, request: OpenRequest) -> Attachment | None:
        try:
            self._admit()
            return self._manager.open(request, self._link)
        except AccessRefused as refused:
            await self.refuse(ProtocolError(ErrorCode.INVALID_API_KEY, str(refused)), CloseCode.REFUSED)
        except AdmissionRefused as refused:
            refusal = ProtocolError(
                ErrorCode.RESOURCE_EXHAUSTED, str(refused), retry_after_ms=refused.retry_after_ms
            )
            await self.refuse(refusal, CloseCode.TRY_AGAIN)
        return None

    async def _resume(self, command: ResumeSession, request: OpenRequest) -> Attachment | None:
        try:
            return await self._manager.resume(command, self._link, request.dialect, request.principal)
        except ResumeRefused as refused:
            refusal = ProtocolError(refused.code, refused.message, event_id=command.event_id)
            await self.refuse(refusal, CloseCode.REFUSED)
            return None

    async def refuse(self, refusal: ProtocolError, code: CloseCode) -> None:
        """Say why, and close."""
        self._say(refusal)
        await self._link.close(code, refusal.code)

    def _say(self, refusal: ProtocolError) -> None:
        """An error on a connection that has no session, and so no writer, yet."""
        self._link.write([codec.join(codec.encode_body(error_event(refusal), self._ids.event()), None, None)])

    async def _drain(self) -> None:
        """Read no further before the peer takes what was said; a lost connection shows when it is read."""
        with contextlib.suppress(ConnectionError):
            await self._link.drain()

    # ------------------------------------------------------------------ reading

    async def _read(self, attachment: Attachment) -> None:
        code: int | None = None
        try:
            code = await self._read_frames(attachment)
        finally:  # also when this is cancelled: a connection that ends is reported, however it ends
            attachment.disconnected(code)

    async def _read_frames(self, attachment: Attachment) -> int | None:
        """Until the peer closes, returning its code, or is gone (None)."""
        loop = asyncio.get_running_loop()
        yielded_at = loop.time()
        while (message := await self._ws.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
            if self._keepalive is not None:
                self._keepalive.message_received()
            attachment.receive(message.data)
            await attachment.room()
            if loop.time() - yielded_at > READ_SLICE_S:
                await asyncio.sleep(0)
                yielded_at = loop.time()
        return (message.data or CloseCode.NO_STATUS) if message.type is WSMsgType.CLOSE else None


def _forget_ways(error: BaseException | None) -> None:
    """A socket keeps the error that ended it, whose traceback leads back to it: a cycle (case C-14)."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
