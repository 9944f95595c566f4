"""Audio formats as clients spell them.

Owns: reading a format (official object, beta string), writing it, which rates are allowed where.
Does not own: ``AudioFormat`` itself (``audio``), conversion (``counterpoint.audio``).
Here because: session, response and a single append name formats, and must accept the same.
"""

from __future__ import annotations

from typing import Any

from .audio import ALAW_8K, PCM_RATES, SESSION_RATE, ULAW_8K, AudioFormat, Encoding
from .fields import Fields

_BETA_NAMES = {"pcm16": Encoding.PCM16, "g711_ulaw": Encoding.ULAW, "g711_alaw": Encoding.ALAW}
_STOCK_NAMES = {e.value: e for e in (Encoding.PCM16, Encoding.ULAW, Encoding.ALAW)}
_EXTENDED_NAMES = {e.value: e for e in Encoding}

_G711 = {Encoding.ULAW: ULAW_8K, Encoding.ALAW: ALAW_8K}


def read_format(fields: Fields, key: str, current: AudioFormat, *, extended: bool) -> AudioFormat:
    """Field ``key`` as a format: ``{"type", "rate"}`` or one string. Missing: ``current``.

    A missing rate keeps the current one of the same encoding, else it is 24 kHz (8 kHz for G.711).
    Raises ``ProtocolError`` with the allowed values. Stock connections have 24 kHz PCM and G.711 only
    (wire contract, section 4).
    """
    value = fields.get(key)
    if value is None:
        return current
    if isinstance(value, str):
        encoding = _read_encoding(fields, key, _BETA_NAMES | _names(extended))
        return _default_rate(encoding, current)
    form = fields.required_object(key)
    encoding = current.encoding
    if form.get("type") is not None:
        encoding = _read_encoding(form, "type", _names(extended))
    if form.get("rate") is None:
        return _default_rate(encoding, current)
    return _read_rate(form, "rate", encoding, extended)


def write_format(audio: AudioFormat) -> dict[str, Any]:
    """The official object; G.711 has no rate."""
    if audio.encoding in _G711:
        return {"type": audio.encoding.value}
    return {"type": audio.encoding.value, "rate": audio.rate}


def stock_format(written: dict[str, Any]) -> dict[str, Any] | None:
    """A written format as a stock client may see it: no unofficial rate; None for an unofficial type."""
    if written["type"] not in _STOCK_NAMES:
        return None
    return written if written.get("rate", SESSION_RATE) == SESSION_RATE else {"type": written["type"]}


def _default_rate(encoding: Encoding, current: AudioFormat) -> AudioFormat:
    """``encoding`` at the current rate where the encoding stays, else at its usual one."""
    if encoding is current.encoding:
        return current
    return _G711.get(encoding) or AudioFormat(encoding, SESSION_RATE)


def _names(extended: bool) -> dict[str, Encoding]:
    return _EXTENDED_NAMES if extended else _STOCK_NAMES


def _rates(encoding: Encoding, extended: bool) -> tuple[int, ...]:
    if encoding in _G711:
        return (8_000,)
    return PCM_RATES if extended else (SESSION_RATE,)


def _read_rate(fields: Fields, key: str, encoding: Encoding, extended: bool) -> AudioFormat:
    rate, rates = fields.get(key), _rates(encoding, extended)
    if type(rate) is not int or rate not in rates:
        raise fields.refuse(key, f"must be one of {', '.join(map(str, rates))} for {encoding.value}")
    return AudioFormat(encoding, rate)


def _read_encoding(fields: Fields, key: str, names: dict[str, Encoding]) -> Encoding:
    return names[fields.required_choice(key, names)]
