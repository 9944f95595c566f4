"""The fields of every client event: one reader per type, in one table.

Owns: ``READERS``; which types are known and not served.
Does not own: JSON (``codec``), the forms of fields (``fields``), what a command does.
Here because: behind this module no event of a client is told by a string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from counterpoint.errors import ProtocolError

from . import commands
from .audio import PCM16_24K, PCM_RATES, SESSION_RATE
from .b64 import decode_audio
from .codes import ErrorCode
from .commands import Command
from .fields import MAX_ID_CHARS, MAX_INTEGER, Fields
from .formats import read_format
from .items import parse_item
from .response_options import ResponseOptions, read_response_options


class Header(TypedDict):
    """What every command carries, and what an error about a frame says of it."""

    event_id: str | None
    client_event_seq: int | None


class _Context(NamedTuple):
    """What a reader may need beside the fields."""

    header: Header
    extended: bool
    max_audio_bytes: int | None


_Reader = Callable[[Fields, _Context], Command]


def read_header(values: dict[str, Any]) -> Header:
    """What can be read, without complaint, of a frame that may be refused."""
    event_id = values.get("event_id")
    if event_id is not None and not (isinstance(event_id, str) and _is_echoable(event_id)):
        event_id = None
    number = values.get("client_event_seq")
    if number is not None and not (
        type(number) is int and 1 <= number <= MAX_INTEGER and _is_numbered(values)
    ):
        number = None
    return {"event_id": event_id, "client_event_seq": number}


def _is_numbered(values: dict[str, Any]) -> bool:
    """Whether events of this type use up numbers (wire contract, section 2)."""
    return values.get("type") not in ("session.resume", "session.heartbeat", "session.event_ack")


def _is_echoable(text: str) -> bool:
    if not 0 < len(text) <= MAX_ID_CHARS:
        return False
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def read_command(values: dict[str, Any], *, extended: bool, max_audio_bytes: int | None) -> Command:
    """The command that a decoded frame describes. Raises ``ProtocolError``, with the frame's header."""
    header = read_header(values)
    fields = Fields(values)
    try:
        reader = _find_reader(fields)
        _check_header(fields, header)
        return reader(fields, _Context(header, extended, max_audio_bytes))
    except ProtocolError as error:
        error.event_id, error.client_event_seq = header["event_id"], header["client_event_seq"]
        raise


def _find_reader(fields: Fields) -> _Reader:
    name = fields.get("type")
    if not isinstance(name, str):
        raise fields.refuse("type", "is required and must be a string")
    reader = READERS.get(name)
    if reader is not None:
        return reader
    if name in _UNSERVED:
        raise fields.refuse("type", f"{name} is not served", ErrorCode.UNSUPPORTED)
    raise fields.refuse("type", "there is no such event", ErrorCode.UNKNOWN_EVENT)


def _check_header(fields: Fields, header: Header) -> None:
    if header["event_id"] is None and "event_id" in fields.values:
        fields.string("event_id", max_chars=MAX_ID_CHARS)
    if header["client_event_seq"] is None and "client_event_seq" in fields.values:
        _check_number(fields)


def _check_number(fields: Fields) -> None:
    if fields.get("client_event_seq") is not None and _is_numbered(fields.values):
        raise fields.refuse("client_event_seq", "must be an integer of at least 1")


def _bare(command: Callable[..., Command]) -> _Reader:
    """The reader of an event that has no fields of its own."""
    return lambda _fields, context: command(**context.header)


# --------------------------------------------------------------------------- session


def _update_session(fields: Fields, context: _Context) -> Command:
    return commands.UpdateSession(
        **context.header,
        patch=fields.required_object("session").values,
        extensions=fields.boolean("extensions") or False,
    )


def _update_transcription_session(fields: Fields, context: _Context) -> Command:
    patch = fields.required_object("session").values | {"type": "transcription"}
    return commands.UpdateSession(**context.header, patch=patch)


def _ack_events(fields: Fields, context: _Context) -> Command:
    fields = Fields(fields.values, code=ErrorCode.INVALID_EVENT_ACK)
    number = fields.required_integer("server_event_seq", minimum=0)
    return commands.AckEvents(**context.header, server_event_seq=number)


def _resume_session(fields: Fields, context: _Context) -> Command:
    fields = Fields(fields.values, code=ErrorCode.INVALID_SESSION_RESUME)
    policy = fields.choice("replay", commands.ReplayPolicy) or commands.ReplayPolicy.FULL
    return commands.ResumeSession(
        **context.header,
        session_id=fields.required_identifier("session_id"),
        resume_token=fields.required_identifier("resume_token"),
        last_received_server_event_seq=fields.required_integer("last_received_server_event_seq", minimum=0),
        replay=commands.ReplayPolicy(policy),
    )


# --------------------------------------------------------------------------- input


def _append_audio(fields: Fields, context: _Context) -> Command:
    audio = decode_audio(fields, "audio", max_bytes=context.max_audio_bytes)
    audio_format = None
    if fields.get("format") is not None:
        audio_format = read_format(fields, "format", PCM16_24K, extended=context.extended)
    return commands.AppendAudio(
        **context.header,
        audio=audio,
        format=audio_format,
        sample_rate_hz=_sample_rate(fields, context),
        is_speech=fields.boolean("is_speech"),
        video_frames=_video_frames(fields),
    )


def _sample_rate(fields: Fields, context: _Context) -> int | None:
    rate = fields.get("sample_rate_hz")
    rates = PCM_RATES if context.extended else (8_000, SESSION_RATE)
    if rate is not None and (type(rate) is not int or rate not in rates):
        raise fields.refuse("sample_rate_hz", f"must be one of {', '.join(map(str, rates))}")
    return rate


def _video_frames(fields: Fields) -> tuple[str, ...]:
    frames = fields.array("video_frames") or []
    for index, frame in enumerate(frames):
        if not isinstance(frame, str):
            raise fields.refuse(f"video_frames[{index}]", "must be a string")
    return tuple(frames)


def _append_text(fields: Fields, context: _Context) -> Command:
    return commands.AppendText(**context.header, text=fields.required_string("text"))


def _commit(fields: Fields, context: _Context) -> Command:
    return commands.CommitAudio(**context.header, response_create=fields.boolean("response_create"))


def _turn_signal(fields: Fields, context: _Context) -> Command:
    fields.required_choice("event", ("barge_in",))
    return commands.BargeIn(**context.header)


# --------------------------------------------------------------------------- conversation


def _create_item(fields: Fields, context: _Context) -> Command:
    scheduling = fields.choice("scheduling", commands.Scheduling) or commands.Scheduling.SILENT
    return commands.CreateItem(
        **context.header,
        item=parse_item(fields.required_object("item")),
        previous_item_id=fields.identifier("previous_item_id"),
        scheduling=commands.Scheduling(scheduling),
    )


def _retrieve_item(fields: Fields, context: _Context) -> Command:
    return commands.RetrieveItem(**context.header, item_id=fields.required_identifier("item_id"))


def _delete_item(fields: Fields, context: _Context) -> Command:
    return commands.DeleteItem(**context.header, item_id=fields.required_identifier("item_id"))


def _truncate_item(fields: Fields, context: _Context) -> Command:
    return commands.TruncateItem(
        **context.header,
        item_id=fields.required_identifier("item_id"),
        content_index=fields.required_integer("content_index", minimum=0),
        audio_end_ms=fields.required_integer("audio_end_ms", minimum=0),
    )


# --------------------------------------------------------------------------- responses and playback


def _create_response(fields: Fields, context: _Context) -> Command:
    response = fields.object("response")
    options = ResponseOptions()
    if response is not None:
        options = read_response_options(response.values, extended=context.extended)
    return commands.CreateResponse(**context.header, options=options)


def _cancel_response(fields: Fields, context: _Context) -> Command:
    return commands.CancelResponse(**context.header, response_id=fields.identifier("response_id"))


def _clear_output(fields: Fields, context: _Context) -> Command:
    return commands.ClearOutput(**context.header, response_id=fields.identifier("response_id"))


def _ack_playback(fields: Fields, context: _Context) -> Command:
    response_id, item_id = fields.identifier("response_id"), fields.identifier("item_id")
    if response_id is None and item_id is None:
        raise fields.refuse("item_id", "is required, or response_id is")
    played_ms = fields.number("played_ms")
    if played_ms is None:
        raise fields.refuse("played_ms", "is required and must be a number")
    return commands.AckPlayback(
        **context.header,
        response_id=response_id,
        item_id=item_id,
        content_index=fields.integer("content_index", minimum=0) or 0,
        # Impossible positions are no error (section 7): they are clamped, here to what a position can be.
        played_ms=int(min(max(played_ms, 0), MAX_INTEGER)),
        truncate=fields.boolean("truncate") or False,
    )


# --------------------------------------------------------------------------- tables

#: Every event type that we serve.
READERS: dict[str, _Reader] = {
    "session.update": _update_session,
    "transcription_session.update": _update_transcription_session,
    "session.heartbeat": _bare(commands.Heartbeat),
    "session.event_ack": _ack_events,
    "session.close": _bare(commands.CloseSession),
    "session.resume": _resume_session,
    "input_audio_buffer.append": _append_audio,
    "input_audio_buffer.commit": _commit,
    "input_audio_buffer.clear": _bare(commands.ClearAudio),
    "input.commit": _commit,
    "input.text.append": _append_text,
    "input.cancel": _bare(commands.CancelInput),
    "barge_in": _bare(commands.BargeIn),
    "turn.signal": _turn_signal,
    "conversation.item.create": _create_item,
    "conversation.item.retrieve": _retrieve_item,
    "conversation.item.delete": _delete_item,
    "conversation.item.truncate": _truncate_item,
    "response.create": _create_response,
    "response.cancel": _cancel_response,
    "output_audio_buffer.clear": _clear_output,
    "playback.ack": _ack_playback,
}

#: Client events of OpenAI's other realtime dialects (translation, Live), which we do not speak.
_UNSERVED = frozenset(
    {
        "decision.create",
        "decision.item.create",
        "decision.item.delete",
        "response.item.create",
        "session.commentary.append",
        "session.input_audio.append",
        "session.input_audio.mute",
        "session.input_audio.unmute",
        "session.input_audio_buffer.append",
        "session.instructions.append",
        "session.output_audio.fixture.play",
        "session.start",
        "session.thinking.append",
        "transport.dtmf.send",
    }
)
