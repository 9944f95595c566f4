"""One call: a session and the peer connection that carries it for a while.

Owns: joining the parts of a call, reading its data channel with back-pressure, its end.
Does not own: WebRTC (``peer``), the session, which outlives the call (``runtime``), admission (``routes``).
Here because: a peer connection can be lost in many ways, and all of them are one ordinary detach.
"""

from __future__ import annotations

import asyncio
from collections import deque

from counterpoint.protocol.codes import CloseCode
from counterpoint.runtime.live import Attachment
from counterpoint.serving.settings import Settings

from .link import Channel, ChannelLink
from .player import QueuedPlayer


class Call:
    """Implements ``peer.Listener``. ``id`` is what ``Location`` names."""

    def __init__(self, call_id: str, settings: Settings) -> None:
        self.id = call_id
        self.link = ChannelLink(self._hang_up, settings.transport.close_timeout_s)
        self.player = QueuedPlayer(self._played)
        self._handshake_timeout_s = settings.transport.handshake_timeout_s
        self._most_unread = settings.limits.max_frame_bytes
        self._attachment: Attachment | None = None
        self._opened = asyncio.Event()
        self._over = asyncio.Event()
        self._unread: deque[str | bytes] = deque()
        self._unread_bytes = 0
        self._news = asyncio.Event()

    # ------------------------------------------------------------------ the peer says

    def opened(self, channel: Channel) -> None:
        self._opened.set()
        self.link.opened(channel)

    def drained(self) -> None:
        self.link.drained()

    def said(self, message: str | bytes) -> None:
        """A message of the data channel, which cannot be told to wait: a flood ends the call."""
        self._unread.append(message)
        self._unread_bytes += len(message)
        self._news.set()
        if self._unread_bytes > self._most_unread:
            self.link.abort()

    def heard(self, pcm: bytes, rate: int) -> None:
        if self._attachment is not None:
            self._attachment.hear(pcm, rate)

    def lost(self) -> None:
        self.link.lost()
        self._hang_up()

    # ------------------------------------------------------------------ its life

    async def run(self, attachment: Attachment, *, resumed: bool) -> None:
        """Until the call is over. One that never came about ends the session that was opened for it: nobody
        knows its token."""
        self._attachment = attachment
        reading = asyncio.create_task(self._read(attachment), name=f"{self.id}:read")
        try:
            await self._wait_for_the_channel()
            await self._over.wait()
        finally:
            reading.cancel()
            stillborn = not (self._opened.is_set() or resumed)
            attachment.disconnected(CloseCode.NORMAL if stillborn else None)
            self.link.abort()
            await asyncio.gather(reading, return_exceptions=True)

    async def _wait_for_the_channel(self) -> None:
        opening = [asyncio.ensure_future(event.wait()) for event in (self._opened, self._over)]
        try:
            await asyncio.wait(
                opening,
                timeout=self._handshake_timeout_s or None,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for waiting in opening:
                waiting.cancel()
        if not self._opened.is_set():
            self._over.set()

    async def _read(self, attachment: Attachment) -> None:
        while True:
            while self._unread:
                message = self._unread.popleft()
                self._unread_bytes -= len(message)
                attachment.receive(message)
                await attachment.room()
                await asyncio.sleep(0)  # a flood of messages delays the others by one of them
            self._news.clear()
            await self._news.wait()

    def _played(self, item_id: str, played_ms: int) -> None:
        if self._attachment is not None:
            self._attachment.played(item_id, played_ms)

    def _hang_up(self) -> None:
        self._over.set()
