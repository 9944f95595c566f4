"""Test signals: tones, noise, and cutting bytes into pieces."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


def sine(hertz: float, rate: int, samples: int, amplitude: float = 0.6) -> bytes:
    wave = amplitude * 32767 * np.sin(2 * np.pi * hertz / rate * np.arange(samples))
    return pcm16(np.rint(wave))


def flat(samples: int, probability: float) -> bytes:
    """Audio to which the ``amp`` detector gives this probability in every frame."""
    return pcm16(np.full(samples, round(probability * 32767)))


def noise(samples: int, dbfs: float, seed: int = 1) -> bytes:
    wave = np.random.default_rng(seed).normal(0, 32767 * 10 ** (dbfs / 20), samples)
    return pcm16(np.clip(np.rint(wave), -32768, 32767))


def pcm16(samples: NDArray[np.float64] | NDArray[np.int64]) -> bytes:
    data: bytes = samples.astype("<i2").tobytes()
    return data


def samples_of(pcm: bytes) -> NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(np.float64)


def cuts(size: int, *, unit: int = 1) -> st.SearchStrategy[list[int]]:
    """Places to cut ``size`` units of ``unit`` bytes, in ascending order, repeated ones included."""
    places = st.lists(st.integers(0, size), max_size=12)
    return places.map(lambda found: [place * unit for place in sorted(found)])


def pieces(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = [0, *places, len(data)]
    return (data[start:end] for start, end in pairwise(edges))
