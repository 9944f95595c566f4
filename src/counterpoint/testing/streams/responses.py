"""A response from its creation to its one end.

Owns: the rules about a response as a whole (wire contract, section 5).
Does not own: its items and parts (``parts``), the conversation (``items``).
Here because: clients open and close their idea of an answer by these few events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .stream import Event, Rule, Scope, Stream

_REASONS: dict[str, frozenset[str | None]] = {
    "cancelled": frozenset({"turn_detected", "client_cancelled", None}),
    "incomplete": frozenset({"max_output_tokens", "content_filter"}),
}
_FINAL = ("completed", "cancelled", "incomplete", "failed")

_CREATED, _DONE = "response.created", "response.done"


def response_id(event: Event) -> str | None:
    """The response that an event is about; None for events that are about none."""
    if not event["type"].startswith("response."):
        return None
    found = event["response"].get("id") if "response" in event else event.get("response_id")
    return found if isinstance(found, str) else None


def _names_its_response(stream: Stream) -> Iterator[str]:
    for event in stream.received:
        kind = event["type"]
        if kind.startswith("response.") and kind != "response.listen" and response_id(event) is None:
            yield f"{kind} names no response"


def _created_once(stream: Stream) -> Iterator[str]:
    created: set[str] = set()
    for event in stream.received:
        found = response_id(event)
        if found is None:
            continue
        if event["type"] == _CREATED:
            if found in created:
                yield f"{found} was created twice"
            created.add(found)
        elif found not in created:
            yield f"{event['type']} is about {found}, which was not created"
            created.add(found)


def _done_once(stream: Stream) -> Iterator[str]:
    done: set[str] = set()
    for event in stream.of(_DONE):
        found = response_id(event)
        if found in done:
            yield f"{found} was done twice"
        done.add(found or "")


def _nothing_after(stream: Stream) -> Iterator[str]:
    done: set[str] = set()
    for event in stream.received:
        found = response_id(event)
        if found in done and event["type"] != _DONE:
            yield f"{event['type']} comes after the end of {found}"
        if event["type"] == _DONE and found:
            done.add(found)


def _one_active(stream: Stream) -> Iterator[str]:
    active: str | None = None
    for event in stream.of(_CREATED, _DONE):
        found = response_id(event)
        if event["type"] == _DONE:
            active = None if active == found else active
        elif event["response"].get("conversation_id", "") is not None:
            if active is not None:
                yield f"{found} was created while {active} was in progress"
            active = found


def _status(stream: Stream) -> Iterator[str]:
    for event in stream.of(_CREATED, _DONE):
        status = event["response"].get("status")
        if event["type"] == _CREATED and status != "in_progress":
            yield f"{response_id(event)} was created {status}"
        if event["type"] == _DONE and status not in _FINAL:
            yield f"{response_id(event)} is done and {status}"


def _reason(stream: Stream) -> Iterator[str]:
    for event in stream.of(_DONE):
        response = event["response"]
        details: dict[str, Any] = response.get("status_details") or {}
        status, reason = response.get("status"), details.get("reason")
        if status in _REASONS and reason not in _REASONS[status]:
            yield f"{response_id(event)} is {status} because of {reason!r}"
        if status == "failed":
            error = details.get("error") or {}
            if not (error.get("type") and error.get("code")):
                yield f"{response_id(event)} failed and does not say why"
        if details and details.get("type") != status:
            yield f"{response_id(event)} is {status}, its details are of {details.get('type')!r}"


def _usage(stream: Stream) -> Iterator[str]:
    for event in stream.of(_DONE):
        if event["response"].get("status") == "completed" and not isinstance(
            event["response"].get("usage"), dict
        ):
            yield f"{response_id(event)} has no usage"


def _output(stream: Stream) -> Iterator[str]:
    ended: dict[str, list[Event]] = {}
    for event in stream.received:
        found = response_id(event) or ""
        if event["type"] == "response.output_item.done":
            ended.setdefault(found, []).append(event)
        if event["type"] == _DONE:
            listed = event["response"].get("output") or []
            if [item["id"] for item in listed] != [end["item"]["id"] for end in ended.get(found, [])]:
                yield f"{found} lists other items than those that were done"
            elif listed != [end["item"] for end in ended.get(found, [])]:
                yield f"{found} lists an item otherwise than it was done"


_BOTH = (_CREATED, _DONE)

RULES = (
    Rule(
        "response-named", "5", "every event of a response names it", _names_its_response, Scope.SESSION, _BOTH
    ),
    Rule(
        "response-created-once",
        "5",
        "a response is created once, before all else",
        _created_once,
        about=_BOTH,
    ),
    Rule("response-done-once", "5", "a response is done once", _done_once, Scope.SESSION, (_DONE,)),
    Rule(
        "nothing-after-done",
        "5",
        "no event of a response comes after its end",
        _nothing_after,
        Scope.SESSION,
        (_DONE,),
    ),
    Rule("one-active-response", "5", "a conversation has one response at a time", _one_active, about=_BOTH),
    Rule(
        "response-status",
        "5",
        "a response is in progress, then ends in one of four ways",
        _status,
        about=_BOTH,
    ),
    Rule("response-reason", "5", "what was not completed says why", _reason, about=(_DONE,)),
    Rule("response-usage", "5", "what was completed says what it cost", _usage, about=(_DONE,)),
    Rule("response-output", "5", "a response ends with its items as they were done", _output, about=(_DONE,)),
)
