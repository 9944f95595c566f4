"""Streaming sample rate conversion with at most 2 ms of delay.

Owns: the filter (a Kaiser windowed sinc) and the state of one stream.
Does not own: which rates a connection may use (``protocol.audio``, ``session``).
Here because: clients, session and model each have a rate of their own, on the live path. The usual
library resamplers hold back about 20 ms and give out bursts.

How it works. With dst/src = L/M in lowest terms, output j lies j*M/L input samples after the first one
and is a weighted sum of its neighbours within ``delay`` samples. The weights depend on j mod L only, so
a cycle of L outputs is one small matrix, and a run of cycles is one product of a strided view of the
input with it. A cycle that is only partly due is computed whole and the part that is due is kept.

Why any chunking gives the same bytes. Weights are multiples of 2**-18 and samples are int16, so every
partial sum is exact in float64: no order of summation, whatever BLAS chooses, changes the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float64]
_Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]

#: Half the length of the filter, in samples of the slower of the two rates: 2 ms at 8 kHz, 1 ms at 16.
_HALF_LENGTH: Final = 16
#: Middle of the transition band, in cycles per sample of the slower rate: down by 55 dB from its Nyquist
#: frequency on, flat up to 0.39 of the rate (6.3 kHz between 16 and 24 kHz).
_CUTOFF: Final = 0.447
_KAISER_BETA: Final = 5.1
#: Weights are multiples of its reciprocal. 2**15 * 2**18 leaves 20 bits for the sum.
_WEIGHT_SCALE: Final = 2**18
#: Short cycles are joined until they have so many outputs: fewer, longer rows are copied for the product.
_MIN_CYCLE: Final = 12
#: Multiplications per product. Bounds memory, and keeps BLAS from waking its threads.
_MAX_PRODUCT: Final = 200_000


@dataclass(frozen=True, slots=True)
class _Filter:
    """The weights for one pair of rates, shared by all streams."""

    inputs: int  #: input samples per cycle
    outputs: int  #: output samples per cycle
    delay: int  #: input samples that must have arrived after the one nearest to an output
    weights: Samples  #: (window, outputs): column j makes output j of a cycle from the cycle's window

    @property
    def window(self) -> int:
        return len(self.weights)

    @property
    def cycles_per_product(self) -> int:
        return max(1, _MAX_PRODUCT // self.weights.size)


@lru_cache(maxsize=64)
def _design(src_rate: int, dst_rate: int) -> _Filter:
    divisor = math.gcd(src_rate, dst_rate)
    joined = math.ceil(_MIN_CYCLE * divisor / dst_rate)
    inputs, outputs = joined * src_rate // divisor, joined * dst_rate // divisor
    stretch = max(1.0, src_rate / dst_rate)
    delay = math.ceil(_HALF_LENGTH * stretch)
    window = 2 * delay + (outputs - 1) * inputs // outputs

    centre = delay - 1 + np.arange(outputs) * inputs / outputs
    distance = (np.arange(window)[:, None] - centre) / stretch
    edge = 1 - (distance / _HALF_LENGTH) ** 2
    inside = edge > 0
    shape = np.zeros_like(distance)
    shape[inside] = np.sinc(2 * _CUTOFF * distance[inside]) * np.i0(_KAISER_BETA * np.sqrt(edge[inside]))

    weights = np.rint(shape / shape.sum(axis=0) * _WEIGHT_SCALE)
    # Each output's weights sum to exactly one: a constant stays that constant.
    weights[weights.argmax(axis=0), np.arange(outputs)] += _WEIGHT_SCALE - weights.sum(axis=0)
    return _Filter(inputs, outputs, delay, weights / _WEIGHT_SCALE)


class StreamingResampler:
    """One stream of mono int16 PCM from ``src_rate`` to ``dst_rate``.

    After ``flush`` exactly floor(n * dst_rate / src_rate) samples have come out for n that went in,
    whatever the chunks were; before it, at most 2 ms less. Equal rates pass the bytes object through.
    """

    def __init__(self, src_rate: int, dst_rate: int) -> None:
        self.src_rate = src_rate
        self.dst_rate = dst_rate
        self._filter = _design(src_rate, dst_rate)
        #: Input from the start of the window of the cycle that is in progress.
        self._held: Samples
        #: Outputs of that cycle that were given out.
        self._phase: int
        self._taken: int
        self._given: int
        self._reset()

    def _reset(self) -> None:
        self._held = np.zeros(self._filter.delay - 1)
        self._phase = 0
        self._taken = 0
        self._given = 0

    @property
    def pending_samples(self) -> int:
        """Samples, at ``dst_rate``, that ``flush`` would return now."""
        return self._taken * self.dst_rate // self.src_rate - self._given

    def process(self, pcm: bytes) -> bytes:
        """Takes whole int16 samples (else ValueError); returns what is due by now, possibly nothing."""
        if self.src_rate == self.dst_rate:
            return pcm
        samples = np.frombuffer(pcm, "<i2")
        self._taken += len(samples)
        out = _to_pcm(self._convolve(samples))
        self._given += len(out) // 2
        return out

    def flush(self) -> bytes:
        """The end of the stream, as if silence followed. The resampler is as new afterwards."""
        pending = self.pending_samples
        tail = self._convolve(np.zeros(self._filter.delay, np.int16))[:pending] if pending else np.empty(0)
        self._reset()
        return _to_pcm(tail)

    def _convolve(self, samples: NDArray[np.int16]) -> Samples:
        """Every output whose window is complete once ``samples`` are there."""
        kernel = self._filter
        held = len(self._held)
        length = held + len(samples)
        # The zeros at the end complete the window of a cycle whose last outputs are not due yet.
        padded = np.zeros(length + kernel.inputs)
        padded[:held] = self._held
        padded[held:length] = samples
        windows = length - 2 * kernel.delay + 1
        due = -(-windows * kernel.outputs // kernel.inputs)
        if due <= self._phase:
            self._held = padded[:length]
            return np.empty(0)
        cycles = -(-due // kernel.outputs)
        out = _cycles(padded, cycles, kernel)[self._phase : due]
        whole, self._phase = divmod(due, kernel.outputs)
        self._held = padded[whole * kernel.inputs : length].copy()
        return out


def _cycles(padded: Samples, cycles: int, kernel: _Filter) -> Samples:
    """So many whole cycles of output, the first from the window that ``padded`` begins with."""
    strides = (kernel.inputs * padded.itemsize, padded.itemsize)
    # The rows overlap in memory: a view, made directly because ``as_strided`` costs six times as much.
    rows = _Matrix((cycles, kernel.window), padded.dtype, padded.data, 0, strides)
    step = kernel.cycles_per_product
    parts = [np.dot(rows[i : i + step], kernel.weights) for i in range(0, cycles, step)]
    return np.concatenate(parts).ravel()


def _to_pcm(samples: Samples) -> bytes:
    np.rint(samples, out=samples)
    np.clip(samples, -32768, 32767, out=samples)
    pcm: bytes = samples.astype("<i2").tobytes()
    return pcm
