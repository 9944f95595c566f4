"""The server's side of one connection over a ``MemoryLink``: first event, reading, the end.

Owns: what ``serving.connection`` owns, without a socket: opening and resuming through the manager, refusals,
reading with back-pressure, keepalive.
Does not own: writing (``delivery.writer``), sessions (``runtime``), when anything arrives (``link``).
Here because: a simulated server is the real one but for its sockets, and this is what is left of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from counterpoint.errors import AdmissionRefused, ProtocolError, ResumeRefused
from counterpoint.limits import TransportLimits
from counterpoint.protocol import codec
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.commands import ResumeSession, UpdateSession
from counterpoint.protocol.config import merge
from counterpoint.protocol.events import error_event
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.live import Attachment
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.serving.keepalive import Keepalive

from .link import MemoryLink


class Connection:
    """``run`` is its task. ``attachment`` is what it got; ``resuming`` is called right before it resumes."""

    def __init__(
        self,
        manager: SessionManager,
        link: MemoryLink,
        transport: TransportLimits,
        ids: IdSource,
        resuming: Callable[[], object],
    ) -> None:
        self.link = link
        self.attachment: Attachment | None = None
        self._manager = manager
        self._transport = transport
        self._ids = ids
        self._resuming = resuming

    async def run(self, request: OpenRequest, *, autostart: bool, resume: ResumeSession | None) -> None:
        """Resume as the query says, open at once, or do what the first event says; then read to the end."""
        keepalive = Keepalive(
            self.link, self._transport.ping_interval_s, self._transport.ping_timeout_s, self.link.abort
        )
        try:
            attachment = self.attachment = await self._shake_hands(request, autostart, resume)
            if attachment is not None:
                await self._read(attachment)
        finally:
            keepalive.stop()
            self.link.abort()
            if self.attachment is not None:
                self.attachment.disconnected(None)

    # ------------------------------------------------------------------ handshake

    async def _shake_hands(
        self, request: OpenRequest, autostart: bool, resume: ResumeSession | None
    ) -> Attachment | None:
        if resume is not None:
            return await self._resume(resume, request)
        if autostart:
            return await self._open(request)
        try:
            async with asyncio.timeout(self._transport.handshake_timeout_s or None):
                return await self._first_event(request)
        except TimeoutError:
            await self._refuse(ErrorCode.CONFIG_TIMEOUT, CloseCode.HANDSHAKE_TIMEOUT)
            return None

    async def _first_event(self, request: OpenRequest) -> Attachment | None:
        while isinstance(frame := await self.link.receive(), str):
            try:
                command = codec.decode(frame)
                match command:
                    case UpdateSession():
                        request = _speaking(request, command.extensions)
                        config = merge(request.config, command.patch, extended=request.dialect.extended)
                        number = command.client_event_seq
                        return await self._open(replace(request, config=config, client_event_seq=number))
                    case ResumeSession():
                        return await self._resume(command, _speaking(request, True))
                    case _:
                        raise ProtocolError(ErrorCode.SESSION_NOT_OPEN, "", event_id=command.event_id)
            except ProtocolError as refusal:
                self._say(refusal)
        return None

    async def _open(self, request: OpenRequest) -> Attachment | None:
        try:
            return self._manager.open(request, self.link)
        except AdmissionRefused:
            await self._refuse(ErrorCode.RESOURCE_EXHAUSTED, CloseCode.TRY_AGAIN)
            return None

    async def _resume(self, command: ResumeSession, request: OpenRequest) -> Attachment | None:
        self._resuming()
        try:
            return await self._manager.resume(command, self.link, request.dialect, request.principal)
        except ResumeRefused as refused:
            await self._refuse(refused.code, CloseCode.REFUSED, command.event_id)
        except OSError:
            await self._refuse(ErrorCode.INTERNAL_ERROR, CloseCode.INTERNAL, command.event_id)
        return None

    async def _refuse(self, code: str, close_code: CloseCode, event_id: str | None = None) -> None:
        self._say(ProtocolError(code, "", event_id=event_id))
        await self.link.close(close_code, code)

    def _say(self, refusal: ProtocolError) -> None:
        """An error on a connection that has no writer yet."""
        self.link.write([codec.join(codec.encode_body(error_event(refusal), self._ids.event()), None, None)])

    # ------------------------------------------------------------------ reading

    async def _read(self, attachment: Attachment) -> None:
        while isinstance(frame := await self.link.receive(), str):
            attachment.receive(frame)
            await attachment.room()
        attachment.disconnected(frame.code)


def _speaking(request: OpenRequest, extended: bool) -> OpenRequest:
    """``request`` from a connection that says whether it is extended."""
    dialect = replace(request.dialect, extended=request.dialect.extended or extended)
    return replace(request, dialect=dialect)
