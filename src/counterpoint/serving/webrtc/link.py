"""A data channel as delivery sees it.

Owns: what waits until the channel is open, back-pressure, the end of a call from our side.
Does not own: which messages (``delivery.writer``), the channel itself (``peer``).
Here because: a session is attached when its offer is answered, before the peer connection stands.

There are no close codes on a data channel: the last events say why a call ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from counterpoint.errors import ProtocolError
from counterpoint.protocol import codec
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.events import error_event

#: As for a socket: little is handed out ahead of what the peer takes (wire contract, section 3).
HIGH_WATER = 16 * 1024


class Channel(Protocol):
    """An open data channel."""

    @property
    def most_bytes(self) -> int:
        """What the peer takes in one message; a larger one would cost it the channel."""
        ...

    def send(self, text: str) -> None: ...

    def buffered(self) -> int:
        """Bytes that were not handed to the network yet."""
        ...

    def close(self) -> None:
        """Close it once what was sent has left."""
        ...


class ChannelLink:
    """Implements ``delivery.writer.Link``. ``hang_up()`` is called once, when the call is to end."""

    def __init__(self, hang_up: Callable[[], None], close_timeout_s: float) -> None:
        self._hang_up = hang_up
        self._close_timeout_s = close_timeout_s
        self._channel: Channel | None = None
        self._early: list[bytes] = []
        self._early_bytes = 0
        self._closing = False
        self._gone = asyncio.Event()
        #: Set when something left, or the end has come.
        self._moved = asyncio.Event()

    # ------------------------------------------------------------------ the channel says

    def opened(self, channel: Channel) -> None:
        self._channel = channel
        early, self._early, self._early_bytes = self._early, [], 0
        self.write(early)
        self._moved.set()

    def drained(self) -> None:
        """The channel takes more."""
        self._moved.set()

    def lost(self) -> None:
        """The channel or the peer connection is gone."""
        self._closing = True
        self._gone.set()
        self._moved.set()

    # ------------------------------------------------------------------ delivery.writer.Link

    def write(self, frames: Sequence[bytes]) -> None:
        if self._closing:
            return
        for frame in frames:
            if self._channel is None:
                self._early.append(frame)
                self._early_bytes += len(frame)
            elif len(frame) <= self._channel.most_bytes:
                self._channel.send(frame.decode())
            else:
                self._channel.send(_apology(frame).decode())

    async def drain(self) -> None:
        while not self._gone.is_set() and self.buffered() > HIGH_WATER:
            self._moved.clear()
            await self._moved.wait()
        if self._gone.is_set():
            raise ConnectionResetError("the peer connection is lost")

    def buffered(self) -> int:
        if self._gone.is_set():
            return 0
        return self._early_bytes if self._channel is None else self._channel.buffered()

    async def close(self, code: int, reason: str = "") -> None:
        if not self._closing:
            self._closing = True
            if self._channel is not None:
                self._channel.close()
                await self._until_gone()
            self.abort()
        await self._gone.wait()

    async def _until_gone(self) -> None:
        try:
            async with asyncio.timeout(self._close_timeout_s or None):
                await self._gone.wait()
        except TimeoutError:
            pass

    def abort(self) -> None:
        if not self._gone.is_set():
            self.lost()
            self._hang_up()


def _apology(frame: bytes) -> bytes:
    """An error in the place of an event that is too large, under its number: a replay must not stop here."""
    event = msgspec.json.decode(frame)
    refusal = ProtocolError(ErrorCode.UNSUPPORTED, f"{event['type']} is larger than the peer takes at once")
    return codec.join(
        codec.encode_body(error_event(refusal), event["event_id"]), None, event.get("server_event_seq")
    )
