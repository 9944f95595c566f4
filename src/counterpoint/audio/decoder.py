"""From what a client appends to the session's PCM.

Owns: the decoder state that belongs to a session and survives its connections: the format in force, an
incomplete sample carried over, the resampler's phase (wire contract, section 4).
Does not own: base64 (``protocol.codec``), which formats a connection may use (``session``).
Here because: sample counts are the session's input clock. They must be exact however a client cuts its
audio, and a refused append must leave no trace.

Canonical PCM is mono, little-endian int16 at ``SESSION_RATE``, as ``bytes``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import SESSION_RATE, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode

from .g711 import ALAW, ULAW
from .resample import StreamingResampler

#: Full scale: float 1.0 is one more than the largest int16, so that int16 -> float -> int16 is the identity.
FULL_SCALE: Final = 32768


class InputDecoder:
    """Decodes the appends of one session, in order."""

    def __init__(self) -> None:
        #: None until the first append; then the format that the two below belong to.
        self._format: AudioFormat | None = None
        self._partial = b""
        self._resampler = StreamingResampler(SESSION_RATE, SESSION_RATE)

    @property
    def pending_samples(self) -> int:
        """Canonical samples that ``end`` would return now: they count for the length of the buffer."""
        return self._resampler.pending_samples

    def push(self, audio: bytes, fmt: AudioFormat) -> bytes:
        """Canonical PCM that is due after ``audio``; a few samples lag behind when rates differ.

        Another format than before first lets out what the old one held back and drops its incomplete
        sample, which no byte of another format can complete. Raises ``ProtocolError`` ``invalid_audio``
        on NaN and infinity, before anything has changed (invariant 36).
        """
        if not audio:
            return b""
        changed = fmt != self._format
        data = audio if changed else self._partial + audio
        end = len(data) - len(data) % fmt.encoding.sample_bytes
        whole = data[:end]
        pcm = _to_pcm16(whole, fmt.encoding)

        tail = b""
        if changed:
            tail = self._resampler.flush()
            self._resampler = StreamingResampler(fmt.rate, SESSION_RATE)
            self._format = fmt
        self._partial = data[end:]
        return tail + self._resampler.process(pcm)

    def end(self) -> bytes:
        """The rest, at a commit or clear: the next append starts a new piece of audio in phase zero."""
        self._partial = b""
        return self._resampler.flush()


def _to_pcm16(data: bytes, encoding: Encoding) -> bytes:
    match encoding:
        case Encoding.PCM16:
            return data
        case Encoding.FLOAT32:
            return _float_to_pcm16(np.frombuffer(data, "<f4"))
        case Encoding.ULAW:
            return ULAW.decode(data).astype("<i2").tobytes()
        case Encoding.ALAW:
            return ALAW.decode(data).astype("<i2").tobytes()


def _float_to_pcm16(samples: NDArray[np.float32]) -> bytes:
    if not np.isfinite(samples).all():
        raise ProtocolError(ErrorCode.INVALID_AUDIO, "float audio holds NaN or infinity", param="audio")
    scaled = np.rint(np.clip(samples, -1, 1) * np.float32(FULL_SCALE))
    pcm: bytes = np.minimum(scaled, FULL_SCALE - 1).astype("<i2").tobytes()
    return pcm
