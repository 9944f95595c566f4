"""Audio formats as clients spell them (case H-08)."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import ALAW_8K, PCM16_24K, PCM_RATES, ULAW_8K, AudioFormat, Encoding
from counterpoint.protocol.fields import Fields
from counterpoint.protocol.formats import read_format, stock_format, write_format

PCM16_16K = AudioFormat(Encoding.PCM16, 16_000)


def read(value: Any, current: AudioFormat = PCM16_24K, *, extended: bool = True) -> AudioFormat:
    return read_format(Fields({"format": value}, "at"), "format", current, extended=extended)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, PCM16_24K),
        ({}, PCM16_24K),
        ({"type": "audio/pcm"}, PCM16_24K),
        ({"type": "audio/pcm", "rate": 24_000}, PCM16_24K),
        ({"type": "audio/pcmu"}, ULAW_8K),
        ({"type": "audio/pcma", "rate": 8_000}, ALAW_8K),
        ("pcm16", PCM16_24K),
        ("g711_ulaw", ULAW_8K),
        ("g711_alaw", ALAW_8K),
        ("audio/pcmu", ULAW_8K),
    ],
)
def test_official_and_beta_spellings(value: Any, expected: AudioFormat) -> None:
    assert read(value, extended=False) == expected
    assert read(value, extended=True) == expected


@pytest.mark.parametrize("encoding", [Encoding.PCM16, Encoding.FLOAT32])
@pytest.mark.parametrize("rate", PCM_RATES)
def test_extended_connections_have_more_rates(encoding: Encoding, rate: int) -> None:
    expected = AudioFormat(encoding, rate)
    assert read({"type": encoding.value, "rate": rate}) == expected
    if expected != PCM16_24K:
        with pytest.raises(ProtocolError):
            read({"type": encoding.value, "rate": rate}, extended=False)


def test_what_is_not_said_stays() -> None:
    assert read({"type": "audio/pcm"}, PCM16_16K) == PCM16_16K
    assert read({"rate": 48_000}, PCM16_16K) == AudioFormat(Encoding.PCM16, 48_000)
    assert read({"type": "pcm_f32le"}, PCM16_16K) == AudioFormat(Encoding.FLOAT32, 24_000)
    assert read({"type": "audio/pcm"}, ULAW_8K) == PCM16_24K


@pytest.mark.parametrize(
    ("value", "param", "allowed"),
    [
        ("PCM16", "at.format", "pcm16, g711_ulaw, g711_alaw, audio/pcm"),
        ("g711-ulaw", "at.format", "g711_ulaw"),
        ({"type": "pcm16"}, "at.format.type", "audio/pcmu, audio/pcma"),
        ({"type": "audio/pcm", "rate": 12_345}, "at.format.rate", "24000"),
        ({"type": "audio/pcm", "rate": "24000"}, "at.format.rate", "24000"),
        ({"type": "audio/pcm", "rate": 24_000.0}, "at.format.rate", "24000"),
        ({"type": "audio/pcm", "rate": True}, "at.format.rate", "24000"),
        ({"type": "audio/pcmu", "rate": 16_000}, "at.format.rate", "8000"),
        (5, "at.format", "object"),
        ([], "at.format", "object"),
    ],
)
@pytest.mark.parametrize("extended", [False, True])
def test_the_others_are_refused_with_what_is_allowed(
    value: Any, param: str, allowed: str, extended: bool
) -> None:
    with pytest.raises(ProtocolError) as refused:
        read(value, extended=extended)
    assert refused.value.param == param
    assert allowed in refused.value.message


@pytest.mark.parametrize(
    "audio", [PCM16_24K, PCM16_16K, ULAW_8K, ALAW_8K, AudioFormat(Encoding.FLOAT32, 8_000)]
)
def test_what_is_written_can_be_read(audio: AudioFormat) -> None:
    assert read(write_format(audio), PCM16_24K) == audio


def test_stock_clients_see_official_formats_only() -> None:
    assert stock_format(write_format(PCM16_24K)) == {"type": "audio/pcm", "rate": 24_000}
    assert stock_format(write_format(PCM16_16K)) == {"type": "audio/pcm"}
    assert stock_format(write_format(ULAW_8K)) == {"type": "audio/pcmu"}
    assert stock_format(write_format(AudioFormat(Encoding.FLOAT32, 24_000))) is None
