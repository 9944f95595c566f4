"""Between frames and values: decoding a client's frame, encoding an event once.

Owns: JSON, what is refused as not JSON, the bytes of events.
Does not own: the fields of each command (``decoding``), which connection sees what (``projection``).
Here because: an event is encoded once, whoever reads it, and its number is spliced in when it is handed
over (design, "One event's way out").
"""

from __future__ import annotations

import functools
import json
from typing import Any

import msgspec
import pybase64

from counterpoint.errors import ProtocolError

from .codes import ErrorCode
from .commands import Command
from .decoding import read_command, read_header
from .events import Duplex, Event, OutputAudioDelta

#: Objects and arrays nested deeper than this are refused.
MAX_DEPTH = 64

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()

_AUDIO_DELTA = b'{"type":"response.output_audio.delta","event_id":"'


# --------------------------------------------------------------------------- decoding


def decode(
    frame: str | bytes,
    *,
    extended: bool = True,
    max_audio_bytes: int | None = None,
    max_depth: int = MAX_DEPTH,
) -> Command:
    """The command in a text frame (``str``). A binary frame (``bytes``) is none.

    ``extended`` is the connection's: the others may name official audio formats only. Raises
    ``ProtocolError`` and nothing else, with the ``event_id`` and ``client_event_seq`` of the frame where
    they can be read (wire contract, section 8).
    """
    if not isinstance(frame, str):
        raise ProtocolError(ErrorCode.INVALID_EVENT, "binary frames are not events")
    values = _parse(frame, max_depth)
    return read_command(values, extended=extended, max_audio_bytes=max_audio_bytes)


def _parse(frame: str, max_depth: int) -> dict[str, Any]:
    try:
        values = _DECODER.decode(frame)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _malformed("not valid JSON", _salvage(frame)) from None
    if not isinstance(values, dict):
        raise _malformed("an event is a JSON object", {})
    nested = [value for value in values.values() if type(value) is dict or type(value) is list]
    if nested and _depth_exceeds(nested, max_depth):
        raise _malformed(f"nested deeper than {max_depth} levels", values)
    if (nested or not _names_keys_once(frame, values)) and _repeats_a_key(frame):
        raise _malformed("a key is given twice", values)
    return values


def _malformed(message: str, values: dict[str, Any]) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_EVENT, message, **read_header(values))


def _salvage(frame: str) -> dict[str, Any]:
    """What a more lenient parser makes of a frame that is not quite JSON (NaN, a lone surrogate)."""
    try:
        values = json.loads(frame)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _depth_exceeds(nested: list[Any], limit: int) -> bool:
    """Whether ``nested`` (values one level down) goes below ``limit``; level by level, not recursively."""
    for _ in range(limit - 1):
        nested = [
            inner
            for value in nested
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
        if not nested:
            return False
    return True


def _names_keys_once(frame: str, flat: dict[str, Any]) -> bool:
    """Cheap proof for a flat object: the frame has the quotes of the keys and strings in it, and no more.

    A pair that was overwritten would have left quotes of its own. False proves nothing (a string may hold
    an escaped quote), and the frame is looked at more closely.
    """
    quotes = 2 * len(flat)
    for value in flat.values():
        if type(value) is str:
            quotes += 2
    return frame.count('"') == quotes


def _repeats_a_key(frame: str) -> bool:
    try:
        json.loads(frame, object_pairs_hook=_distinct)
    except ValueError:
        return True
    return False


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")


# --------------------------------------------------------------------------- encoding


def encode_body(event: Event, event_id: str) -> bytes:
    """The event as everyone who may see it gets it, in official names, without a number.

    ``type`` is always the first key and ``event_id`` the second.
    """
    if isinstance(event, OutputAudioDelta):
        part = _audio_part(event.response_id, event.item_id, event.output_index, event.content_index)
        audio = pybase64.b64encode(event.pcm)
        return b"".join((_AUDIO_DELTA, event_id.encode(), part, audio, b'"}'))
    encoded = _ENCODER.encode(event)
    head = encoded.index(b'"', len(b'{"type":"')) + 1
    return b'%b,"event_id":"%b"%b' % (encoded[:head], event_id.encode(), encoded[head:])


@functools.lru_cache(maxsize=4096)
def _audio_part(response_id: str, item_id: str, output_index: int, content_index: int) -> bytes:
    """What all audio deltas of a part have in common: formatting it anew costs as much as all the rest."""
    return (
        f'","response_id":"{response_id}","item_id":"{item_id}",'
        f'"output_index":{output_index},"content_index":{content_index},"delta":"'
    ).encode()


def take_audio(body: bytes) -> tuple[bytes, bytes]:
    """The audio of an ``OutputAudioDelta`` as ``encode_body`` wrote it, and its body without that."""
    start = body.rindex(b'"', 0, -2) + 1
    return pybase64.b64decode(memoryview(body)[start:-2]), body[:start] + body[-2:]


def encode_duplex(duplex: Duplex) -> bytes:
    return _ENCODER.encode(duplex)


def join(body: bytes, duplex: bytes | None, seq: int | None) -> bytes:
    """The frame of an event: its body, with its ``duplex`` object and its number if it has them."""
    if not duplex:
        return body if seq is None else body[:-1] + b',"server_event_seq":%d}' % seq
    if seq is None:
        return body[:-1] + b',"duplex":%b}' % duplex
    return body[:-1] + b',"duplex":%b,"server_event_seq":%d}' % (duplex, seq)
