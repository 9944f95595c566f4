"""The spectrogram that Whisper-type models read: 80 mel bands, one column per 10 ms.

Owns: the numbers of that front end (25 ms window, Slaney mel scale, decibel floor) and its arithmetic.
Does not own: how long the audio is or where it is padded (the model that reads it).
Here because: the end-of-turn model takes features, and the usual library for them is far larger than it is.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000
_WINDOW: Final = 400
_HOP: Final = 160
_BANDS: Final = 80
#: Slaney's scale: linear up to 1 kHz at 200/3 Hz per mel, then 27 mels per factor 6.4.
_LINEAR_HZ_PER_MEL: Final = 200.0 / 3.0
_BREAK_HZ: Final = 1000.0
_BREAK_MEL: Final = _BREAK_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP: Final = np.log(6.4) / 27.0
#: log10 of power is kept within 8 (80 dB) of the loudest point, then scaled to about -1..1.
_FLOOR_POWER: Final = 1e-10
_RANGE: Final = 8.0
_VARIANCE_FLOOR: Final = 1e-7


def log_mel(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """``audio`` (16 kHz, n samples) normalised to unit variance, as features of shape (80, n // 160)."""
    scaled = (audio - audio.mean()) / np.sqrt(audio.var() + _VARIANCE_FLOOR)
    centred = np.pad(scaled.astype(np.float64), _WINDOW // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(centred, _WINDOW)[::_HOP]
    columns = windows[: len(audio) // _HOP]
    power = np.abs(np.fft.rfft(columns * np.hanning(_WINDOW + 1)[:-1])) ** 2
    bands = np.log10(np.maximum(_filters() @ power.T, _FLOOR_POWER))
    bands = np.maximum(bands, bands.max() - _RANGE)
    features: NDArray[np.float32] = ((bands + 4.0) / 4.0).astype(np.float32)
    return features


@cache
def _filters() -> NDArray[np.float64]:
    """Triangles of equal area on the mel scale, shape (80, 201)."""
    top = _BREAK_MEL + np.log(SAMPLE_RATE / 2 / _BREAK_HZ) / _LOG_STEP
    corners = _hertz(np.linspace(0.0, top, _BANDS + 2))
    low, centre, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    bins = np.linspace(0.0, SAMPLE_RATE / 2, _WINDOW // 2 + 1)
    rising = (bins - low) / (centre - low)
    falling = (high - bins) / (high - centre)
    triangles: NDArray[np.float64] = np.clip(np.minimum(rising, falling), 0.0, None) * 2.0 / (high - low)
    return triangles


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    logarithmic = _BREAK_HZ * np.exp((mel - _BREAK_MEL) * _LOG_STEP)
    return np.where(mel < _BREAK_MEL, mel * _LINEAR_HZ_PER_MEL, logarithmic)
