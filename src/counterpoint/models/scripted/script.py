"""Reading a script: what a client may write into ``session.extra_body.script``.

Owns: the keys, their bounds and their defaults; which script of a list serves which response.
Does not own: turning a script into events (``content``), carrying it out in time (``answer``).
Here because: a mistyped key must be refused with its name when it is sent, not ignored when it is due.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from counterpoint.errors import ProtocolError
from counterpoint.limits import Millis
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import Fields

#: Where a script stands in the session object, as errors spell it.
PARAM: Final = "session.extra_body.script"

#: A day: longer than any bound of a response, short enough for arithmetic.
_MAX_MS: Final = 86_400_000
#: Audio is made a chunk at a time, and each is one block of memory.
_MAX_CHUNK_MS: Final = 10_000
_MAX_WORDS: Final = 100_000


class Pace(enum.StrEnum):
    REALTIME = "realtime"
    BURST = "burst"


@dataclass(frozen=True, slots=True)
class Message:
    """Something to say: ``text`` spread evenly over ``audio_ms`` of ramp."""

    audio_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; ``arguments`` is JSON text, sent as it was written."""

    name: str
    arguments: str


Part = Message | Call


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """How the model side of a session opens and closes. These keys are also options of the whole model."""

    open_delay_ms: Millis = 0
    fail_open: bool = False
    cleanup_delay_ms: Millis = 0
    hang_on_close: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """One answer. ``parts`` are its items in order."""

    parts: tuple[Part, ...]
    audio_ms: int
    text: str
    chunk_ms: int
    pace: Pace
    stall_first_ms: int
    fail_at_chunk: int | None  #: chunks are counted from 0, over the items of the response
    hang: bool
    ignore_cancel_ms: int
    echo_input: bool
    echo_history: bool
    listen: bool
    input_transcript: str
    transcript_delay_ms: int
    fail_transcript: bool
    lifecycle: Mapping[str, Any]  #: the fields of ``Lifecycle`` that were written


def read_scripts(extra: Mapping[str, Any]) -> tuple[Script, ...]:
    """The scripts in a session's ``extra_body``, in order; none when there is no script.

    Raises ``ProtocolError`` whose ``param`` names the key at fault.
    """
    value = extra.get("script")
    if value is None:
        return ()
    entries = value if isinstance(value, list) else [value]
    paths = [f"{PARAM}[{index}]" for index in range(len(entries))] if isinstance(value, list) else [PARAM]
    for entry, path in zip(entries, paths, strict=True):
        if not isinstance(entry, dict):
            message = f"{path}: must be an object or a list of objects"
            raise ProtocolError(ErrorCode.INVALID_EVENT, message, param=path)
    return tuple(_script(Fields(entry, path)) for entry, path in zip(entries, paths, strict=True))


def _script(fields: Fields) -> Script:
    _refuse_unknown(fields, _KEYS)
    audio_ms = _millis(fields, "audio_ms", 1000)
    words = fields.integer("words", minimum=0, maximum=_MAX_WORDS)
    text = fields.string("text")
    if text is None:
        text = " ".join(f"word{n}" for n in range(1, (10 if words is None else words) + 1))
    return Script(
        parts=_parts(fields, audio_ms, text),
        audio_ms=audio_ms,
        text=text,
        chunk_ms=fields.integer("chunk_ms", minimum=1, maximum=_MAX_CHUNK_MS) or 80,
        pace=Pace(fields.choice("pace", list(Pace)) or Pace.REALTIME),
        stall_first_ms=_millis(fields, "stall_first_ms"),
        fail_at_chunk=fields.integer("fail_at_chunk", minimum=0),
        hang=fields.boolean("hang") or False,
        ignore_cancel_ms=_millis(fields, "ignore_cancel_ms"),
        echo_input=fields.boolean("echo_input") or False,
        echo_history=fields.boolean("echo_history") or False,
        listen=fields.boolean("listen") or False,
        input_transcript=fields.string("input_transcript") or "",
        transcript_delay_ms=_millis(fields, "transcript_delay_ms"),
        fail_transcript=fields.boolean("fail_transcript") or False,
        lifecycle=_lifecycle(fields),
    )


def lifecycle_of(scripts: Sequence[Script], default: Lifecycle) -> Lifecycle:
    """``default``, changed by what the scripts say about it; of a list, the first that does."""
    written: dict[str, Any] = {}
    for script in reversed(scripts):
        written.update(script.lifecycle)
    return msgspec.structs.replace(default, **written)


def _lifecycle(fields: Fields) -> dict[str, Any]:
    """The fields of ``Lifecycle`` that ``fields`` has."""
    values = {
        "open_delay_ms": fields.integer("open_delay_ms", minimum=0, maximum=_MAX_MS),
        "fail_open": fields.boolean("fail_open"),
        "cleanup_delay_ms": fields.integer("cleanup_delay_ms", minimum=0, maximum=_MAX_MS),
        "hang_on_close": fields.boolean("hang_on_close"),
    }
    return {key: value for key, value in values.items() if value is not None}


def _parts(fields: Fields, audio_ms: int, text: str) -> tuple[Part, ...]:
    """``items``, else one message; then ``tool_calls``, which stand alone where no speech was written."""
    items = fields.objects("items")
    calls = fields.objects("tool_calls")
    speaks = calls is None or any(fields.get(key) is not None for key in ("audio_ms", "text", "words"))
    parts: list[Part] = []
    if items is not None:
        parts += [_item(item, audio_ms, text) for item in items]
    elif speaks:
        parts.append(Message(audio_ms, text))
    for call in calls or ():
        _refuse_unknown(call, ("name", "arguments"))
        parts.append(_call(call))
    return tuple(parts)


def _item(fields: Fields, audio_ms: int, text: str) -> Part:
    _refuse_unknown(fields, ("type", "audio_ms", "text", "name", "arguments"))
    if fields.choice("type", ("message", "function_call")) == "function_call":
        return _call(fields)
    own_text = fields.string("text")
    return Message(_millis(fields, "audio_ms", audio_ms), text if own_text is None else own_text)


def _call(fields: Fields) -> Call:
    return Call(fields.required_string("name"), fields.string("arguments") or "{}")


def _millis(fields: Fields, key: str, default: int = 0) -> int:
    value = fields.integer(key, minimum=0, maximum=_MAX_MS)
    return default if value is None else value


def _refuse_unknown(fields: Fields, known: tuple[str, ...]) -> None:
    for key in fields.values:
        if key not in known:
            raise fields.refuse(key, f"unknown; known are {', '.join(known)}")


_KEYS: Final = (
    "audio_ms",
    "chunk_ms",
    "pace",
    "words",
    "text",
    "stall_first_ms",
    "fail_at_chunk",
    "hang",
    "ignore_cancel_ms",
    *Lifecycle.__struct_fields__,
    "items",
    "tool_calls",
    "echo_input",
    "echo_history",
    "listen",
    "input_transcript",
    "transcript_delay_ms",
    "fail_transcript",
)

#: What is played when a session has no script.
DEFAULT_SCRIPT: Final = _script(Fields({}, PARAM))
