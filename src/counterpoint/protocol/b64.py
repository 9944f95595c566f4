"""Strict Base64, in one place.

Owns: which encodings are accepted, and the error for the others.
Does not own: what the bytes mean.
Here because: audio comes in several events, and each must refuse the same things (case H-02).
"""

from __future__ import annotations

import binascii

import pybase64

from counterpoint.errors import ProtocolError

from .codes import ErrorCode
from .fields import Fields


def decode_audio(fields: Fields, key: str, *, max_bytes: int | None = None) -> bytes:
    """The bytes of field ``key``: standard alphabet, padded, no white space; a ``data:`` prefix is stripped.

    Raises ``ProtocolError`` (``invalid_audio``); an encoding of more than ``max_bytes`` is refused before it
    is decoded (wire contract, section 4).
    """
    text = fields.get(key)
    if not isinstance(text, str):
        raise fields.refuse(key, "is required and must be a Base64 string", ErrorCode.INVALID_AUDIO)
    if text.startswith("data:"):
        text = _without_prefix(fields, key, text)
    if max_bytes is not None and len(text) > (max_bytes + 2) // 3 * 4:
        raise fields.refuse(key, f"must hold at most {max_bytes} bytes", ErrorCode.INVALID_AUDIO)
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _not_base64(fields, key) from error


def _without_prefix(fields: Fields, key: str, text: str) -> str:
    prefix, comma, encoded = text.partition(",")
    if not comma or not prefix.endswith(";base64"):
        raise _not_base64(fields, key)
    return encoded


def _not_base64(fields: Fields, key: str) -> ProtocolError:
    return fields.refuse(key, "must be Base64 of the standard alphabet, padded", ErrorCode.INVALID_AUDIO)
