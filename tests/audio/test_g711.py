"""Both laws of G.711 against the tables of the recommendation."""

import numpy as np
import pytest
from numpy.typing import NDArray

from counterpoint.audio.g711 import ALAW, ULAW, Law

EVERY_CODE = bytes(range(256))
EVERY_SAMPLE = np.arange(-32768, 32768).astype(np.int16)

# First and last level of each segment, from the tables of ITU-T G.711: 14-bit values of mu-law
# (table 2a), 13-bit values of A-law (table 1a).
ULAW_CODES = bytes.fromhex("80 8F 9F AF BF CF DF EF FE FF")
ULAW_LEVELS = dict(zip(ULAW_CODES, (8031, 4191, 2079, 1023, 495, 231, 99, 33, 2, 0), strict=True))
ALAW_CODES = bytes.fromhex("AA A5 B5 85 95 E5 F5 DA D5")
ALAW_LEVELS = dict(zip(ALAW_CODES, (4032, 2112, 1056, 528, 264, 132, 66, 31, 1), strict=True))


def codes_of(law: Law, samples: NDArray[np.int16]) -> NDArray[np.uint8]:
    return np.frombuffer(law.encode(samples), np.uint8)


@pytest.mark.parametrize(
    ("law", "levels", "scale"), [(ULAW, ULAW_LEVELS, 4), (ALAW, ALAW_LEVELS, 8)], ids=["ulaw", "alaw"]
)
def test_levels_are_those_of_the_recommendation(law: Law, levels: dict[int, int], scale: int) -> None:
    for code, level in levels.items():
        assert law.decode(bytes([code])).tolist() == [level * scale]
        assert law.decode(bytes([code & 0x7F])).tolist() == [-level * scale]


def test_every_ulaw_code_survives_a_round_trip_except_negative_zero() -> None:
    assert ULAW.encode(ULAW.decode(EVERY_CODE)) == EVERY_CODE.replace(b"\x7f", b"\xff")


def test_every_alaw_code_survives_a_round_trip() -> None:
    assert ALAW.encode(ALAW.decode(EVERY_CODE)) == EVERY_CODE


def decision_values(first_steps: list[int], segment_ends: list[int]) -> NDArray[np.int64]:
    """Where the recommendation's tables put the borders between codes: 16 equal steps to each segment end."""
    borders = np.array(first_steps)
    for end in segment_ends:
        borders = np.append(borders, np.linspace(borders[-1], end, 17)[1:].astype(int))
    return borders[:-1]


def test_every_sample_has_the_ulaw_code_of_its_interval() -> None:
    borders = decision_values([0, *range(1, 32, 2)], [95, 223, 479, 991, 2015, 4063, 8159]) * 4
    interval = np.searchsorted(borders, EVERY_SAMPLE[EVERY_SAMPLE >= 0], side="right") - 1
    assert (codes_of(ULAW, EVERY_SAMPLE[EVERY_SAMPLE >= 0]) == 0xFF - interval).all()


def test_every_sample_has_the_alaw_code_of_its_interval() -> None:
    borders = decision_values(list(range(0, 65, 2)), [128, 256, 512, 1024, 2048, 4096]) * 8
    interval = np.searchsorted(borders, EVERY_SAMPLE[EVERY_SAMPLE >= 0], side="right") - 1
    assert (codes_of(ALAW, EVERY_SAMPLE[EVERY_SAMPLE >= 0]) == (0x80 | interval) ^ 0x55).all()


@pytest.mark.parametrize("law", [ULAW, ALAW], ids=["ulaw", "alaw"])
def test_louder_never_becomes_quieter(law: Law) -> None:
    assert (np.diff(law.decode(law.encode(EVERY_SAMPLE)).astype(np.int32)) >= 0).all()


@pytest.mark.parametrize("law", [ULAW, ALAW], ids=["ulaw", "alaw"])
def test_the_negative_half_mirrors_the_positive_one(law: Law) -> None:
    positive = EVERY_SAMPLE[EVERY_SAMPLE >= 0]
    assert (codes_of(law, ~positive) == codes_of(law, positive) - 128).all()


@pytest.mark.parametrize(
    ("law", "low", "high"), [(ULAW, 0x00, 0x80), (ALAW, 0x2A, 0xAA)], ids=["ulaw", "alaw"]
)
def test_extremes_clip_to_the_outermost_codes(law: Law, low: int, high: int) -> None:
    assert codes_of(law, np.array([-32768, 32767], np.int16)).tolist() == [low, high]


@pytest.mark.parametrize("law", [ULAW, ALAW], ids=["ulaw", "alaw"])
def test_nothing_in_nothing_out(law: Law) -> None:
    assert law.encode(law.decode(b"")) == b""
