"""The form of each event by itself.

Owns: the rules that hold an event against the schemas.
Does not own: the schemas (``testing.schema``), what a sequence of events must fulfil.
Here because: form is the first thing that a client of another maker trips over.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.protocol.catalog import CATALOG
from counterpoint.testing.schema.events import duplex_problems, official, server_event_problems

from .stream import Event, Rule, Scope, Stream

_EXTENSIONS = frozenset(kind.type for kind in CATALOG.values() if not kind.official)


def _are_events(stream: Stream) -> Iterator[str]:
    for oddity in stream.oddities:
        yield f"{oddity} is no event"


def _official_form(stream: Stream) -> Iterator[str]:
    for event in stream.received:
        if event["type"] not in _EXTENSIONS:
            yield from _problems(event, stream, strict=False)


def _nothing_else(stream: Stream) -> Iterator[str]:
    """Only where there are extensions to leak; others may have keys of their own."""
    if stream.ever_extended or not stream.numbered:
        return
    for event in stream.received:
        if event["type"] in _EXTENSIONS:
            yield f"{event['type']} reached a connection that did not ask for extensions"
        elif event["type"] in official()["server"] or stream.beta:
            lenient = set(server_event_problems(event, beta=stream.beta, strict=False))
            strict = server_event_problems(event, beta=stream.beta, strict=True)
            yield from (f"{event['type']}: {problem}" for problem in strict if problem not in lenient)


def _extension_form(stream: Stream) -> Iterator[str]:
    if not stream.extended:
        return
    for event in stream.received:
        if event["type"] in _EXTENSIONS or "session" in event:
            yield from _problems(event, stream, strict=True)
        elif "duplex" in event:
            yield from (f"{event['type']}: {problem}" for problem in duplex_problems(event["duplex"]))


def _problems(event: Event, stream: Stream, *, strict: bool) -> Iterator[str]:
    extended = stream.ever_extended
    for problem in server_event_problems(event, extended=extended, beta=stream.beta, strict=strict):
        yield f"{event['type']}: {problem}"


RULES = (
    Rule(
        "frames-are-events", "8", "every frame is one JSON object with a type", _are_events, Scope.CONNECTION
    ),
    Rule(
        "official-form",
        "8",
        "official events have the form that is published",
        _official_form,
        Scope.CONNECTION,
    ),
    Rule(
        "stock-sees-official-only",
        "0",
        "a connection that did not ask for extensions sees none",
        _nothing_else,
        Scope.CONNECTION,
    ),
    Rule(
        "extension-form",
        "2",
        "extensions have the form that is published",
        _extension_form,
        Scope.CONNECTION,
        (*sorted(_EXTENSIONS), "session.created"),
    ),
)
