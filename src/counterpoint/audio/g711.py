"""G.711: the two companding laws of telephony, by tables.

Owns: mu-law and A-law, both directions, bit exact to the ITU-T G.191 reference software.
Does not own: the rate (G.711 on the wire is 8 kHz; ``resample`` converts).
Here because: telephone clients speak nothing else, and a table look-up costs one numpy call.

Both laws code a sign, a segment (a power of two) and four bits of position within the segment. They
differ in the offset of the segments, in how many bits of the sample they look at, and in which bits
of the code are inverted on the line.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: mu-law adds this to a 14-bit magnitude, so that every segment starts at a power of two.
_ULAW_BIAS: Final = 33


class Law:
    """One companding law as two tables: code to sample (256) and sample to code (65,536)."""

    def __init__(self, decode: NDArray[np.int16], encode: NDArray[np.uint8]) -> None:
        self._decode = decode
        self._encode = encode

    def decode(self, codes: bytes) -> NDArray[np.int16]:
        """One int16 sample per code byte."""
        return self._decode[np.frombuffer(codes, np.uint8)]

    def encode(self, samples: NDArray[np.int16]) -> bytes:
        """One code byte per int16 sample."""
        return self._encode[samples.view(np.uint16)].tobytes()


def _all_samples() -> NDArray[np.int64]:
    """Every int16 value, in the order of its unsigned bit pattern (the index of the encode table)."""
    return np.arange(65_536).astype(np.uint16).view(np.int16).astype(np.int64)


def _magnitudes(samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """One's complement magnitudes: the reference software mirrors -1 onto 0, not onto 1."""
    return np.where(samples < 0, ~samples, samples)


def _floor_log2(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1


def _ulaw() -> Law:
    codes = np.arange(256)
    inverted = ~codes
    segment, position = (inverted >> 4) & 7, inverted & 15
    magnitude = (((2 * position + _ULAW_BIAS) << segment) - _ULAW_BIAS) * 4
    decode = np.where(codes < 128, -magnitude, magnitude).astype(np.int16)

    samples = _all_samples()
    biased = np.minimum((_magnitudes(samples) >> 2) + _ULAW_BIAS, 0x1FFF)
    segment = _floor_log2(biased) - 5
    position = (biased >> (segment + 1)) & 15
    encode = (~((segment << 4) | position) & 0x7F) | np.where(samples < 0, 0, 0x80)
    return Law(decode, encode.astype(np.uint8))


def _alaw() -> Law:
    codes = np.arange(256)
    plain = codes ^ 0x55
    segment, position = (plain >> 4) & 7, plain & 15
    # Segments 0 and 1 have the same step; from segment 1 on the leading one is implied.
    magnitude = np.where(segment == 0, 2 * position + 1, (2 * position + 33) << np.maximum(segment - 1, 0))
    decode = np.where(codes < 128, -magnitude, magnitude).astype(np.int16) * np.int16(8)

    samples = _all_samples()
    scaled = _magnitudes(samples) >> 4
    segment = np.maximum(_floor_log2(np.maximum(scaled, 1)) - 3, 0)
    position = (scaled >> np.maximum(segment - 1, 0)) & 15
    encode = ((segment << 4) | position | np.where(samples < 0, 0, 0x80)) ^ 0x55
    return Law(decode, encode.astype(np.uint8))


ULAW: Final = _ulaw()
ALAW: Final = _alaw()
