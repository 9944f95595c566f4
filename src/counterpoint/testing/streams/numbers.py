"""Order and identity of events: what comes first and last, numbers, epochs.

Owns: the rules about ``server_event_seq``, ``event_id`` and ``duplex.epoch``.
Does not own: what events say.
Here because: a client that resumes knows what it missed by these alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.protocol.codes import CLOSED_REASONS, CloseCode
from counterpoint.testing.schema.extensions import CONNECTION_EVENTS

from .stream import Rule, Scope, Stream

#: Events that never have a number.
_UNNUMBERED = CONNECTION_EVENTS.keys() | {"session.created"}
#: Events that have one or not: errors by what they answer, items where they stand for a gap.
_EITHER = frozenset({"error", "conversation.item.added", "conversation.item.done"})

_FIRST = frozenset({"session.created", "session.resumed"})
#: What may come before there is a session.
_BEFORE = frozenset({"session.queued", "error"})
_TERMINAL = frozenset({"session.closed", "session.expired"})


def _created_first(stream: Stream) -> Iterator[str]:
    first = next((event for event in stream.received if event["type"] not in _BEFORE), None)
    if first is not None and first["type"] not in _FIRST:
        yield f"the first event is {first['type']}"


def _dense(stream: Stream) -> Iterator[str]:
    if not stream.extended:
        return
    expected = (stream.after or 0) + 1
    for event in stream.received:
        match event["type"]:
            case "session.skipped":
                if event["from"] != expected:
                    yield f"{event['from']} to {event['to']} are skipped where {expected} comes next"
                expected = event["to"] + 1
            case "session.snapshot":
                expected = event["as_of_server_event_seq"] + 1
            case kind:
                number = event.get("server_event_seq", expected)
                if number != expected:
                    yield f"{kind} has number {number} where {expected} comes next"
                expected = number + ("server_event_seq" in event)


def _rising(stream: Stream) -> Iterator[str]:
    newest = stream.after or 0
    for event in stream.received:
        number = event.get("server_event_seq")
        if number is not None:
            if number <= newest:
                yield f"{event['type']} has number {number} after {newest}"
            newest = number


def _unnumbered(stream: Stream) -> Iterator[str]:
    for event in stream.of(*_UNNUMBERED):
        if "server_event_seq" in event:
            yield f"{event['type']} has number {event['server_event_seq']}"


def _numbered(stream: Stream) -> Iterator[str]:
    if not stream.numbered:
        return
    for event in stream.received:
        kind = event["type"]
        if kind not in _UNNUMBERED and kind not in _EITHER and "server_event_seq" not in event:
            yield f"{kind} has no number"


def _unique_ids(stream: Stream) -> Iterator[str]:
    seen: dict[str, str] = {}
    for event in stream.received:
        event_id = event.get("event_id")
        if not isinstance(event_id, str) or not event_id:
            yield f"{event['type']} has no event_id"
        elif event_id in seen:
            yield f"{event['type']} has the event_id of {seen[event_id]}"
        else:
            seen[event_id] = event["type"]


def _epochs_rise(stream: Stream) -> Iterator[str]:
    newest = 0
    for event in stream.received:
        epoch = event.get("duplex", {}).get("epoch", newest)
        if epoch < newest:
            yield f"{event['type']} of epoch {epoch} comes after epoch {newest}"
        newest = max(newest, epoch)


def _terminal_last(stream: Stream) -> Iterator[str]:
    over: str | None = None
    for event in stream.received:
        if over is not None and event["type"] != "error":
            yield f"{event['type']} comes after {over}"
        if event["type"] in _TERMINAL:
            over = event["type"]


def _close_code(stream: Stream) -> Iterator[str]:
    for event in stream.of(*_TERMINAL, "session.replaced"):
        match event["type"]:
            case "session.closed":
                code = CLOSED_REASONS.get(event["reason"])
            case "session.expired":
                code = CloseCode.NORMAL
            case _:
                code = CloseCode.REPLACED
        if stream.closed is not None and code is not None and stream.closed != code:
            yield f"{event['type']} ({event.get('reason', '')}) is followed by {stream.closed}, not {code}"


RULES = (
    Rule(
        "created-first", "1", "session.created comes before anything else", _created_first, Scope.CONNECTION
    ),
    Rule("numbers-dense", "1", "numbers of an extended connection have no holes", _dense, Scope.CONNECTION),
    Rule("numbers-rise", "1", "numbers rise on every connection", _rising, Scope.CONNECTION),
    Rule(
        "connection-events-unnumbered",
        "1",
        "what concerns a connection has no number",
        _unnumbered,
        Scope.CONNECTION,
        tuple(sorted(_UNNUMBERED)),
    ),
    Rule(
        "session-events-numbered", "1", "what concerns the session has a number", _numbered, Scope.CONNECTION
    ),
    Rule("event-ids-unique", "5", "every event has an id of its own", _unique_ids, Scope.SESSION),
    Rule("epochs-rise", "9", "no event is of an older epoch than one before it", _epochs_rise, Scope.SESSION),
    Rule(
        "terminal-last",
        "2",
        "session.closed or session.expired comes once, and last",
        _terminal_last,
        Scope.CONNECTION,
        tuple(sorted(_TERMINAL)),
    ),
    Rule(
        "close-code",
        "1",
        "the close code is that of how the session, or the connection, ended",
        _close_code,
        Scope.CONNECTION,
        (*sorted(_TERMINAL), "session.replaced"),
    ),
)
