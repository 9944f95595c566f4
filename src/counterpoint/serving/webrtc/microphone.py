"""What a peer's microphone sends, as the session hears it.

Owns: one channel out of several, silence in the place of what the network lost.
Does not own: receiving and decoding (``tracks``), resampling to the session's rate (``audio.decoder``).
Here because: the session's input clock is made of samples, and must not fall behind with every lost packet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: What Opus decodes to in WebRTC (RFC 7587, section 4).
RATE = 48_000

#: A longer hole is a pause of the sender, not a loss: a session knows how to wait.
MOST_LOST_SAMPLES = RATE // 2


class Microphone:
    def __init__(self) -> None:
        self._next: int | None = None

    def hear(self, samples: NDArray[np.int16], channels: int, at: int) -> bytes:
        """PCM16, mono, of interleaved ``samples``; ``at`` is where in the stream they begin."""
        mono = samples.reshape(-1, channels).mean(axis=1).astype("<i2")
        lost = 0 if self._next is None else at - self._next
        self._next = at + len(mono)
        pcm: bytes = mono.tobytes()
        return bytes(2 * lost) + pcm if 0 < lost <= MOST_LOST_SAMPLES else pcm
