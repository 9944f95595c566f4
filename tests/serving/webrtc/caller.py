"""A client of the WebRTC door, as a browser is one, with aiortc.

Owns: ``Caller``: an offer over HTTP, the data channel's events, what its loudspeaker gets.
Does not own: what is tested (the test modules beside it).
Here because: every test of a call needs one, and each peer connection must be closed.
"""

from __future__ import annotations

import asyncio
import fractions
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame
from numpy.typing import NDArray

from counterpoint.serving.app import Server
from counterpoint.testing.server import running_server

RATE = 24_000
FRAME = RATE // 50
PATIENCE_S = 20.0

#: aiortc sees so late that a connection which it was making is closed.
CHECK_PACE_S = 0.05

Event = dict[str, Any]


class Voice(MediaStreamTrack):
    """A microphone: hears silence, and what it is told to."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._queue = b""
        self._sent = 0
        self._began = asyncio.get_running_loop().time()

    def say(self, pcm: bytes) -> None:
        self._queue += pcm

    async def recv(self) -> AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        due = self._began + self._sent / RATE
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        pcm, self._queue = self._queue[: FRAME * 2].ljust(FRAME * 2, b"\0"), self._queue[FRAME * 2 :]
        frame = AudioFrame.from_ndarray(np.frombuffer(pcm, np.int16).reshape(1, -1), layout="mono")
        frame.sample_rate = RATE
        frame.pts = self._sent
        frame.time_base = fractions.Fraction(1, RATE)
        self._sent += FRAME
        return frame


class Caller:
    """One peer connection. ``events`` came on the data channel, ``heard`` is what the loudspeaker got."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._channel = self._connection.createDataChannel("oai-events")
        self._channel.on("message", self._take)
        self._channel.on("close", self._close_noticed)
        self._connection.on("track", self._track)
        self._listening: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        self.voice = Voice()
        self.events: list[Event] = []
        self.heard: list[NDArray[np.int16]] = []
        self.closed = False

    async def offer(self) -> str:
        self._connection.addTrack(self.voice)
        await self._connection.setLocalDescription(await self._connection.createOffer())
        return self._connection.localDescription.sdp

    async def call(self, query: str = "", **headers: str) -> aiohttp.ClientResponse:
        """Offer, and take the answer; returns the response, read."""
        sdp = await self.offer()
        named = {"Content-Type": "application/sdp"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.post(sdp, query, named)

    async def post(self, body: Any, query: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        async with self._http.post(self._url + query, data=body, headers=headers) as response:
            text = await response.text()
        if response.status == 201:
            answer = RTCSessionDescription(sdp=text, type="answer")
            await self._connection.setRemoteDescription(answer)
        return response

    def send(self, **event: Any) -> None:
        self._channel.send(json.dumps(event))

    async def until(self, holds: Callable[[], Any], what: str = "it") -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            kinds = [event["type"] for event in self.events]
            raise AssertionError(f"{what} did not come true; events: {kinds}") from None

    async def until_event(self, kind: str, count: int = 1) -> Event:
        await self.until(lambda: len(self.of(kind)) >= count, f"{count} x {kind}")
        return self.of(kind)[count - 1]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def loud_ms(self) -> int:
        """How much of what was heard is sound, in frames of 20 ms."""
        return 20 * sum(bool(np.abs(frame.astype(np.int32)).mean() > 100) for frame in self.heard)

    async def close(self) -> None:
        await self._connection.close()
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)

    # ------------------------------------------------------------------ aiortc says

    def _take(self, message: str) -> None:
        self.events.append(json.loads(message))
        self._news.set()

    def _close_noticed(self) -> None:
        self.closed = True
        self._news.set()

    def _track(self, track: MediaStreamTrack) -> None:
        self._listening.append(asyncio.ensure_future(self._listen(track)))

    async def _listen(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, AudioFrame)
            self.heard.append(frame.to_ndarray().reshape(-1, 2)[:, 0].astype(np.int16))
            self._news.set()


class Callers:
    """Makes callers of one server; all are closed at the end."""

    def __init__(self, server: Server, http: aiohttp.ClientSession) -> None:
        self.server = server
        self.http = http
        self.url = server.page_url + "v1/realtime/calls"
        self.made: list[Caller] = []

    def new(self) -> Caller:
        caller = Caller(self.http, self.url)
        self.made.append(caller)
        return caller


@asynccontextmanager
async def calling(**settings: object) -> AsyncIterator[Callers]:
    """A server with the scripted model and ``settings`` (``__`` for the dot), and callers of it."""
    chosen: dict[str, object] = {"transport.close_timeout_s": 0.5, "transport.handshake_timeout_s": 5}
    chosen |= {name.replace("__", "."): value for name, value in settings.items()}
    async with running_server(chosen) as server, aiohttp.ClientSession() as http:
        made = Callers(server, http)
        try:
            yield made
        finally:
            for caller in made.made:
                await caller.close()
    await asyncio.sleep(CHECK_PACE_S)
