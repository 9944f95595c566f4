"""What a server owes to a client that sends anything at all.

Owns: one answer or effect per frame, no end that was not asked for.
Does not own: rules over the events alone (``testing.streams``).
Here because: "it did not crash" is the least of it.

Whether a frame is an event is asked of the server's own codec: what it refuses must be answered by one error,
what it accepts by its effect, or by one error.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from counterpoint.errors import ProtocolError
from counterpoint.protocol import codec
from counterpoint.protocol.beta import EVENT_NAMES
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    CancelInput,
    ClearAudio,
    CloseSession,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Heartbeat,
    ResumeSession,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from counterpoint.testing.streams.rules import check_session
from counterpoint.testing.streams.stream import Stream

from .mutation import Frame
from .session import Record

#: What shows that a command had its effect. The others have effects that nobody is told of.
_EFFECTS: dict[type[Any], tuple[str, ...]] = {
    UpdateSession: ("session.updated", "session.created", "transcription_session.updated"),
    CommitAudio: ("input_audio_buffer.committed",),
    ClearAudio: ("input_audio_buffer.cleared",),
    CancelInput: ("input_audio_buffer.cleared",),
    CreateItem: ("conversation.item.added",),
    RetrieveItem: ("conversation.item.retrieved",),
    DeleteItem: ("conversation.item.deleted",),
    TruncateItem: ("conversation.item.truncated",),
    CreateResponse: ("response.created",),
    Heartbeat: ("session.heartbeat_ack",),
    ResumeSession: ("error",),
}

#: Ends that a client brings about by what it asks for.
_ASKED_FOR = ("session_expired", "invalid_session_resume", "invalid_resume_token", "session_resume_conflict")

#: Errors of events that may come again under their number.
_AGAIN = (ErrorCode.INPUT_BACKPRESSURE, ErrorCode.CLIENT_EVENT_GAP)


def complaints(record: Record) -> list[str]:
    """Everything that is wrong with how a session went. Each begins with the name of what is broken."""
    read = list(_read_all(record))
    return [*_ended(record, read), *_answered(record, read), *_by_rules(record, read)]


def _read_all(record: Record) -> Iterator[Command | ProtocolError]:
    extended = record.opening.extended
    for frame in record.sent:
        one = _read(frame, extended)
        extended = extended or (isinstance(one, UpdateSession) and one.extensions)
        yield one


def _read(frame: Frame, extended: bool) -> Command | ProtocolError:
    try:
        return codec.decode(frame, extended=extended, max_audio_bytes=16 * 1024 * 1024)
    except ProtocolError as refusal:
        return refusal


def _ended(record: Record, read: list[Command | ProtocolError]) -> Iterator[str]:
    if record.closed is None:
        return
    if any(isinstance(command, CloseSession) for command in read):
        return
    last = [event for event in record.received[-3:] if event["type"] in ("error", "session.expired")]
    codes = [event["error"]["code"] for event in last if event["type"] == "error"]
    if any(event["type"] == "session.expired" for event in last) or any(code in _ASKED_FOR for code in codes):
        return
    yield f"connection-closed: {record.closed}, {codes}"


def _answered(record: Record, read: list[Command | ProtocolError]) -> Iterator[str]:
    """Errors by ``event_id``, over the whole session; effects by their kind, step by step."""
    if record.closed is not None:
        return  # what came after the end has no answer
    errors = [event["error"] for event in record.received if event["type"] == "error"]
    refused = Counter(error["event_id"] for error in errors if error["code"] not in _AGAIN)
    owed = Counter(
        one.event_id for one in read if isinstance(one, ProtocolError) and one.client_event_seq is None
    )
    for event_id, count in owed.items():
        if refused[event_id] < count:
            yield f"unanswered: {count - refused[event_id]} frames that are no events (event_id {event_id!r})"
    frames = Counter(one.event_id for one in read)
    for event_id, count in refused.items():
        if count > frames[event_id]:
            yield f"answered-twice: {count} errors about {frames[event_id]} frames with event_id {event_id!r}"
    left = iter(read)
    for count, events in record.answers:
        yield from _effects(record, list(itertools.islice(left, count)), record.received[events])


def _effects(
    record: Record, step: list[Command | ProtocolError], events: list[dict[str, Any]]
) -> Iterator[str]:
    """Of the commands of one step: those that were accepted have as many effects, told at once."""
    errors = [event["error"] for event in events if event["type"] == "error"]
    named = {error["event_id"] for error in errors}
    anonymous = sum(error["event_id"] is None for error in errors)
    seen = Counter(event["type"] for event in events)
    for kinds, count in _expected(record, step, named).items():
        names = {EVENT_NAMES.get(kind, kind) if record.opening.beta else kind for kind in kinds}
        found = sum(seen[name] for name in names)
        if found + anonymous < count:
            yield f"no-effect: {count} commands, {found} of {' or '.join(sorted(names))}"


def _expected(
    record: Record, step: list[Command | ProtocolError], refused: set[str | None]
) -> Counter[tuple[str, ...]]:
    """How many effects of each kind are owed for what was not refused by name."""
    expected: Counter[tuple[str, ...]] = Counter()
    for command in step:
        if isinstance(command, ProtocolError) or command.client_event_seq is not None:
            continue  # a number that was used already has no effect
        if isinstance(command, Heartbeat) and not record.opening.extended:
            continue
        if (kinds := _EFFECTS.get(type(command))) and command.event_id not in refused - {None}:
            expected[kinds] += 1
    return expected


def _by_rules(record: Record, read: list[Command | ProtocolError]) -> Iterator[str]:
    sent = [
        {
            "event_id": one.event_id,
            "client_event_seq": one.client_event_seq,
            "extensions": isinstance(one, UpdateSession) and one.extensions,
        }
        for one in read
    ]
    stream = Stream(record.received, sent, record.opening.extended, record.opening.beta)
    yield from map(str, check_session([stream]))
