"""Strict Base64 (case H-02)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ProtocolError
from counterpoint.protocol.b64 import decode_audio
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import Fields


def decode(audio: Any, max_bytes: int | None = None) -> bytes:
    return decode_audio(Fields({"audio": audio}), "audio", max_bytes=max_bytes)


@given(st.binary(max_size=200))
def test_what_was_encoded_is_decoded(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert decode(text) == data
    assert decode(f"data:audio/pcm;base64,{text}") == data


@pytest.mark.parametrize(
    "audio",
    [
        "!!!!",
        "AAA",
        "AAAA=",
        "A===",
        "=",
        "AA-_",
        "AAAA\nAAAA",
        " AAAA",
        "AAAA ",
        "AA=A",
        "ÄÄÄÄ",
        "data:",
        "data:audio/pcm;base64",
        "data:audio/pcm,AAAA",
        "data:audio/pcm;base64,!",
        None,
        5,
        [],
        {},
        True,
    ],
)
def test_everything_else_is_refused(audio: Any) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode(audio)
    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_AUDIO, "audio")


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_audio(Fields({}), "audio")
    assert refused.value.code == ErrorCode.INVALID_AUDIO


def test_over_long_encodings_are_refused_before_decoding() -> None:
    """The text is not even Base64, and what is said of it is its length."""
    with pytest.raises(ProtocolError, match="at most 6 bytes"):
        decode("!" * 9, max_bytes=6)
    assert decode("AAAAAAAA", max_bytes=6) == bytes(6)
