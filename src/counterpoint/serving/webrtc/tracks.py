"""The two audio tracks of a call, as aiortc has them.

Owns: the pace of what is sent, reading what is received.
Does not own: what is sent (``player``), what becomes of the sound (``microphone``, ``call``).
Here because: the sender asks for a frame and is answered when its time has come: the clock of playback.
"""

from __future__ import annotations

import asyncio
import fractions
from collections.abc import Callable

import numpy as np
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame

from .microphone import RATE as HEARD_RATE
from .microphone import Microphone
from .player import FRAME_MS, RATE

_FRAME_S = FRAME_MS / 1000
_FRAME_SAMPLES = RATE * FRAME_MS // 1000

#: A sender that is later than this does not catch up: it would send more than real time for too long.
_MOST_LATE_S = 0.2


class Speaker(MediaStreamTrack):
    """``take()`` gives the next frame's PCM."""

    kind = "audio"

    def __init__(self, take: Callable[[], bytes]) -> None:
        super().__init__()
        self._take = take
        self._now = asyncio.get_running_loop().time
        self._due: float | None = None
        self._sent = 0

    async def recv(self) -> AudioFrame:
        if self.readyState != "live":
            raise MediaStreamError
        await self._until_due()
        samples = np.frombuffer(self._take(), np.int16).reshape(1, -1)
        frame = AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = RATE
        frame.pts = self._sent
        frame.time_base = fractions.Fraction(1, RATE)
        self._sent += _FRAME_SAMPLES
        return frame

    async def _until_due(self) -> None:
        now = self._now()
        if self._due is None or now - self._due > _MOST_LATE_S:
            self._due = now
        if self._due > now:
            await asyncio.sleep(self._due - now)
        self._due += _FRAME_S


async def listen(track: MediaStreamTrack, heard: Callable[[bytes, int], None]) -> None:
    """Hand on what a remote track brings until it ends."""
    microphone = Microphone()
    while True:
        try:
            frame = await track.recv()
        except MediaStreamError:
            return
        assert isinstance(frame, AudioFrame)
        channels = len(frame.layout.channels)
        samples = frame.to_ndarray().astype(np.int16, copy=False)
        heard(microphone.hear(samples, channels, frame.pts or 0), HEARD_RATE)
