"""What became of every command of one client.

Owns: that a command has its effect or one error, never both and never twice, and none if it was sent by a
connection that had been replaced (CASE-INV-7).
Does not own: what effects mean (``items``, ``responses``), audio (``heard``).
Here because: exactly-once is a promise about commands, whatever became of the connections that carried them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .violation import Violation

OUTCOME = "CASE-INV-7"
STALE = "a replaced connection has no effect"

#: Refusals that do not use up a number: the command is sent again under it.
RETRYABLE = ("input_backpressure", "client_event_gap")


@dataclass(slots=True)
class Sent:
    """A command. ``number`` is its ``client_event_seq``; ``lasting``: its effect can be recognised."""

    event_id: str
    type: str
    number: int | None
    lasting: bool
    outcome: str | None = None
    #: It reached the server by a connection that was not current any more.
    void: bool = False


def _created_item(event: dict[str, Any]) -> str | None:
    item_id: str = event["item"]["id"]
    return item_id.removeprefix("own_") if item_id.startswith("own_") else None


def _created_response(event: dict[str, Any]) -> str | None:
    metadata = event["response"]["metadata"]
    return metadata.get("command") if metadata else None


#: Events that name the command whose effect they are.
_EFFECTS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "conversation.item.added": _created_item,
    "response.created": _created_response,
}


class Outcomes:
    def __init__(self) -> None:
        self._sent: dict[str, Sent] = {}

    def __getitem__(self, event_id: str) -> Sent:
        return self._sent[event_id]

    def add(self, sent: Sent) -> None:
        self._sent[sent.event_id] = sent

    def void(self, event_id: str) -> None:
        """The command arrived on a connection that had been replaced."""
        if self._sent[event_id].number is None:
            self._sent[event_id].void = True

    def take(self, event: dict[str, Any]) -> None:
        """An event that nobody saw before."""
        kind = event["type"]
        if kind == "error":
            self.error(event["error"])
        elif kind in _EFFECTS and (event_id := _EFFECTS[kind](event)) is not None:
            self._settle(event_id, kind)

    def error(self, error: dict[str, Any]) -> None:
        event_id = error["event_id"]
        if event_id is None or error["code"] in RETRYABLE:
            return
        if event_id not in self._sent:
            raise Violation(OUTCOME, f"{error['code']} is about {event_id}, which was never sent")
        self._settle(event_id, f"error {error['code']}")

    def missing(self, last_number: int) -> Sent | None:
        """A numbered command up to ``last_number`` whose effect can be recognised and did not come."""
        for sent in self._sent.values():
            if sent.lasting and sent.number is not None and sent.number <= last_number and not sent.outcome:
                return sent
        return None

    def _settle(self, event_id: str, outcome: str) -> None:
        sent = self._sent[event_id]
        if sent.void:
            raise Violation(STALE, f"{sent.type} {event_id} led to {outcome}")
        if sent.outcome is not None:
            raise Violation(OUTCOME, f"{sent.type} {event_id} led to {sent.outcome} and to {outcome}")
        sent.outcome = outcome
