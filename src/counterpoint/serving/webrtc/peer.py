"""The peer connection of a call, as aiortc has it.

Owns: answering an offer, the data channel ``oai-events``, noticing that the connection is lost.
Does not own: what the channel and the tracks carry (``call``), who may call (``routes``).
Here because: aiortc is an optional extra, and what depends on it is here and in ``tracks``.

Nobody outside is asked for our address: a server is called at one of its own. The offer need not hold the
caller's addresses either, which browsers tell late or hide behind local names: its first packet shows them.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Callable
from typing import Protocol

from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.exceptions import InvalidStateError
from aiortc.mediastreams import MediaStreamTrack

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode

from .link import HIGH_WATER, Channel
from .tracks import Speaker, listen

LABEL = "oai-events"

#: Candidates under a name that only the caller's own network can resolve.
_LOCAL_NAMES = re.compile(r"^a=candidate:[^\r\n]*\.local .*\r?\n", re.MULTILINE)


#: What a peer takes in one message if it does not say (RFC 8841, section 6.1); 0 stands for any size.
_DEFAULT_MOST_BYTES = 65_536
_MOST_BYTES = re.compile(r"^a=max-message-size:(\d{1,10})\s*$", re.MULTILINE)


class Listener(Protocol):
    """Whom a peer tells what happens."""

    def opened(self, channel: Channel) -> None: ...

    def drained(self) -> None: ...

    def said(self, message: str | bytes) -> None: ...

    def heard(self, pcm: bytes, rate: int) -> None: ...

    def lost(self) -> None: ...


class Peer:
    """``take()`` gives the next 20 ms for the peer to hear."""

    def __init__(self, listener: Listener, take: Callable[[], bytes]) -> None:
        self._listener = listener
        self._speaker = Speaker(take)
        self._listening: asyncio.Task[None] | None = None
        self._most_bytes = _DEFAULT_MOST_BYTES
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._connection.on("connectionstatechange", self._state_changed)
        self._connection.on("datachannel", self._channel_announced)
        self._connection.on("track", self._track_announced)

    async def answer(self, offer: str) -> str:
        """The SDP answer to an SDP offer. Raises ``ProtocolError`` with ``param`` ``sdp``."""
        try:
            await self._take(offer)
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        except ProtocolError:
            raise
        except Exception as error:  # the parser has no error of its own
            raise _refused("the offer cannot be read") from error
        return self._connection.localDescription.sdp

    async def _take(self, offer: str) -> None:
        if said := _MOST_BYTES.search(offer):
            self._most_bytes = int(said[1]) or sys.maxsize
        description = RTCSessionDescription(sdp=_LOCAL_NAMES.sub("", offer), type="offer")
        await self._connection.setRemoteDescription(description)
        audio, *others = sorted(self._connection.getTransceivers(), key=lambda each: each.kind != "audio")
        if audio.kind != "audio" or self._connection.sctp is None:
            raise _refused(f"the offer needs audio and a data channel called {LABEL}")
        audio.sender.replaceTrack(self._speaker)
        audio.direction = "sendrecv"
        for other in others:
            other.direction = "inactive"

    async def close(self) -> None:
        self._speaker.stop()
        await self._connection.close()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    # ------------------------------------------------------------------ aiortc says

    def _state_changed(self) -> None:
        if self._connection.connectionState in ("failed", "closed"):
            self._listener.lost()

    def _channel_announced(self, channel: RTCDataChannel) -> None:
        if channel.label != LABEL:
            return
        channel.bufferedAmountLowThreshold = HIGH_WATER // 4
        channel.on("message", self._listener.said)
        channel.on("bufferedamountlow", self._listener.drained)
        channel.on("close", self._listener.lost)
        self._listener.opened(_Channel(channel, self._most_bytes))

    def _track_announced(self, track: MediaStreamTrack) -> None:
        if track.kind == "audio" and self._listening is None:
            self._listening = asyncio.ensure_future(listen(track, self._listener.heard))


class _Channel:
    """Implements ``link.Channel``."""

    def __init__(self, channel: RTCDataChannel, most_bytes: int) -> None:
        self._channel = channel
        self.most_bytes = most_bytes

    def send(self, text: str) -> None:
        with contextlib.suppress(InvalidStateError):  # it is closing; the listener hears of its end
            self._channel.send(text)

    def buffered(self) -> int:
        return self._channel.bufferedAmount

    def close(self) -> None:
        self._channel.close()


def _refused(message: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_EVENT, message, param="sdp")
