"""Errors: their form, whom they answer, what they must not say.

Owns: the rules of the wire contract's section 8 that show in the events.
Does not own: which mistake has which code (the checks of a live server).
Here because: a client acts on an error by its class, its code and the event that it names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from counterpoint.protocol.codes import ERROR_CLASSES, ErrorClass, ErrorCode

from .stream import Event, Rule, Scope, Stream

_CLASSES = frozenset(ErrorClass)
_CODES = {code.value: kind.value for code, kind in ERROR_CLASSES.items()}

#: What only the inside of a server looks like.
_INSIDE = re.compile(
    r"""Traceback | \bFile\s" | \bline\s\d+,\sin\b | \.py\b | site-packages | 0x[0-9a-f]{6,} | <class\s
      | (?:^|[\s'"(])/(?:home|usr|opt|var|tmp|root|srv|work|etc)/
      | \b\w+(?:Error|Exception)\b""",
    re.VERBOSE,
)


def _errors(stream: Stream) -> Iterator[Event]:
    return (event["error"] for event in stream.of("error") if isinstance(event.get("error"), dict))


def _form(stream: Stream) -> Iterator[str]:
    for error in _errors(stream):
        for key in ("type", "code", "message", "param", "event_id"):
            if key not in error:
                yield f"an error {error.get('code')} without {key}"
        if error.get("type") not in _CLASSES:
            yield f"an error of class {error.get('type')!r}"


def _class_of_code(stream: Stream) -> Iterator[str]:
    for error in _errors(stream):
        expected = _CODES.get(str(error.get("code")))
        if expected is not None and error.get("type") != expected:
            yield f"{error['code']} is of class {error.get('type')}, not {expected}"


def _retry_hint(stream: Stream) -> Iterator[str]:
    for error in _errors(stream):
        if error.get("code") in (ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.INPUT_BACKPRESSURE):
            hint = error.get("retry_after_ms")
            if not isinstance(hint, int) or hint <= 0:
                yield f"{error['code']} says {hint!r} for when to try again"


def _names_event(stream: Stream) -> Iterator[str]:
    sent = {event.get("event_id") for event in stream.sent}
    for error in _errors(stream):
        event_id = error.get("event_id")
        if event_id is not None and event_id not in sent:
            yield f"{error.get('code')} names {event_id!r}, which nobody sent"


def _one_per_event(stream: Stream) -> Iterator[str]:
    """A numbered event that found no room, or came too early, is sent again under its id."""
    again = (ErrorCode.INPUT_BACKPRESSURE, ErrorCode.CLIENT_EVENT_GAP)
    named = Counter(
        error.get("event_id")
        for error in _errors(stream)
        if error.get("event_id") is not None and error.get("code") not in again
    )
    said = Counter(event.get("event_id") for event in stream.sent)
    for event_id, count in named.items():
        if count > max(said[event_id], 1):
            yield f"{event_id} is answered by {count} errors"


def _numbered_like_their_event(stream: Stream) -> Iterator[str]:
    if not stream.numbered:
        return
    numbered: dict[Any, set[bool]] = {}
    for event in stream.sent:
        numbered.setdefault(event.get("event_id"), set()).add(event.get("client_event_seq") is not None)
    is_open = False
    for event in stream.of("session.created", "session.resumed", "error"):
        is_open = is_open or event["type"] != "error"
        event_id = event["error"].get("event_id") if event["type"] == "error" else None
        if not is_open or event_id is None or event_id not in numbered:
            continue  # before there is a session nothing has a number
        if ("server_event_seq" in event) not in numbered[event_id]:
            said = "has a number" if "server_event_seq" in event else "has none"
            yield f"the error about {event_id} {said}, unlike the event"


def _says_nothing_of_the_inside(stream: Stream) -> Iterator[str]:
    for error in _errors(stream):
        text = f"{error.get('message')} {error.get('param')} {error.get('code')}"
        if found := _INSIDE.search(text):
            yield f"an error says {found.group().strip()!r}"
        for secret in stream.secrets:
            if secret and secret in text:
                yield "an error holds a key or a token"


_ERROR = ("error",)

RULES = (
    Rule(
        "error-form", "8", "an error has class, code, message, param and event", _form, Scope.SESSION, _ERROR
    ),
    Rule("error-class", "8", "a code belongs to one class", _class_of_code, Scope.SESSION, _ERROR),
    Rule(
        "retry-hint",
        "8",
        "an error for lack of room says when to try again",
        _retry_hint,
        Scope.SESSION,
        _ERROR,
    ),
    Rule(
        "error-names-event", "8", "an error names an event of its client", _names_event, Scope.SESSION, _ERROR
    ),
    Rule(
        "one-error-per-event",
        "8",
        "no event is answered by two errors",
        _one_per_event,
        Scope.SESSION,
        _ERROR,
    ),
    Rule(
        "error-numbered-like-event",
        "2",
        "an error has a number if and only if its event has one",
        _numbered_like_their_event,
        Scope.SESSION,
        _ERROR,
    ),
    Rule(
        "error-reveals-nothing",
        "8",
        "no exception, path or token in an error",
        _says_nothing_of_the_inside,
        Scope.SESSION,
        _ERROR,
    ),
)
