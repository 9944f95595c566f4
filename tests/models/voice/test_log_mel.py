"""The spectrogram, against its definition written out for one column and one band."""

import numpy as np
import pytest

from counterpoint.models.voice.log_mel import log_mel

from .speech import noise


def mel_of(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * float(np.log(hertz / 1000) / np.log(6.4))


def band_power(audio: np.ndarray, column: int, band: int) -> float:
    """Power of one column under one triangle, by definition: a Fourier sum, three corners in mel."""
    centred = np.pad(audio.astype(np.float64), 200, mode="reflect")[column * 160 : column * 160 + 400]
    n = np.arange(400)
    windowed = centred * (0.5 - 0.5 * np.cos(2 * np.pi * n / 400))
    step = mel_of(8000) / 81
    hertz = np.interp([step * (band + i) for i in range(3)], [mel_of(h) for h in range(8001)], range(8001))
    low, centre, high = hertz
    power = 0.0
    for k in range(201):
        f = 40.0 * k
        weight = max(0.0, min((f - low) / (centre - low), (high - f) / (high - centre)))
        if weight:
            power += weight * abs(np.sum(windowed * np.exp(-2j * np.pi * k * n / 400))) ** 2
    return power * 2 / (high - low)


@pytest.mark.parametrize(("column", "band"), [(0, 5), (17, 0), (50, 40), (99, 79)])
def test_a_point_of_it_equals_the_definition(column: int, band: int) -> None:
    audio = noise(1.0, 0.1)
    scaled = (audio - audio.mean()) / audio.std()
    expected = (np.log10(band_power(scaled, column, band)) + 4) / 4
    assert log_mel(audio)[band, column] == pytest.approx(expected, abs=1e-3)


def test_shape_and_range() -> None:
    features = log_mel(noise(8.0, 0.1))
    assert features.shape == (80, 800)
    assert features.dtype == np.float32
    assert features.max() - features.min() <= 8 / 4


def test_loudness_does_not_matter() -> None:
    np.testing.assert_allclose(log_mel(noise(1.0, 0.3)), log_mel(noise(1.0, 0.03)), atol=1e-3)


def test_a_low_tone_is_in_a_low_band_and_a_high_one_in_a_high_band() -> None:
    t = np.arange(16_000) / 16_000
    loudest = [
        int(log_mel(np.sin(2 * np.pi * hertz * t).astype(np.float32))[:, 50].argmax())
        for hertz in (200, 1000, 5000)
    ]
    spacing = mel_of(8000) / 81
    assert loudest == pytest.approx([mel_of(hertz) / spacing - 1 for hertz in (200, 1000, 5000)], abs=1)


def test_silence_is_finite() -> None:
    assert np.isfinite(log_mel(np.zeros(1600, np.float32))).all()
