"""From a model's PCM to the encoding that a client asked for.

Owns: resampling and companding of one response part, in whole samples.
Does not own: base64 and event bodies (``protocol.codec``), when a part begins or ends (``session``).
Here because: the bytes of a part must add up to its duration, whatever sizes the model's chunks had.
"""

from __future__ import annotations

import numpy as np

from counterpoint.protocol.audio import AudioFormat, Encoding

from .decoder import FULL_SCALE
from .g711 import ALAW, ULAW
from .resample import StreamingResampler


class OutputEncoder:
    """Encodes the audio of one part: int16 PCM at ``model_rate`` in, bytes of ``wire`` out.

    n samples in make floor(n * wire.rate / model_rate) samples out after ``flush``.
    """

    def __init__(self, model_rate: int, wire: AudioFormat) -> None:
        self._encoding = wire.encoding
        self._resampler = StreamingResampler(model_rate, wire.rate)

    def process(self, pcm: bytes) -> bytes:
        """What is due by now, possibly nothing. ``pcm`` is whole samples, else ValueError."""
        if len(pcm) % 2:
            raise ValueError("model audio ends inside a sample")
        return _from_pcm16(self._resampler.process(pcm), self._encoding)

    def flush(self) -> bytes:
        """The end of the part. The encoder is as new afterwards."""
        return _from_pcm16(self._resampler.flush(), self._encoding)


def _from_pcm16(pcm: bytes, encoding: Encoding) -> bytes:
    match encoding:
        case Encoding.PCM16:
            return pcm
        case Encoding.FLOAT32:
            return (np.frombuffer(pcm, "<i2") / np.float32(FULL_SCALE)).astype("<f4").tobytes()
        case Encoding.ULAW:
            return ULAW.encode(np.frombuffer(pcm, "<i2").astype(np.int16))
        case Encoding.ALAW:
            return ALAW.encode(np.frombuffer(pcm, "<i2").astype(np.int16))
