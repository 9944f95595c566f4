"""What one session showed its client, over all of its connections, held to the wire contract.

Owns: which check sees which event, and that each sees an event once.
Does not own: the checks (``invariants``), what the client does about an event (``simulated_client``).
Here because: a session has one truth, and connections come and go around it.
"""

from __future__ import annotations

from typing import Any

from .invariants.heard import Heard
from .invariants.items import Items
from .invariants.outcomes import Outcomes
from .invariants.responses import Responses
from .invariants.sequence import Place, Sequence
from .invariants.violation import Violation

SILENCED = "no audio of an interrupted response after its end"


class Witness:
    """``extended``: its connections are; ``numbered``: its input is; ``detected``: a detector finds turns."""

    def __init__(self, *, extended: bool, numbered: bool, detected: bool, outcomes: Outcomes) -> None:
        self._numbered = numbered
        self.sequence = Sequence(extended=extended)
        self.responses = Responses()
        self.items = Items()
        self.heard = Heard(detected=detected)
        self.outcomes = outcomes
        #: Events were lost and a snapshot came instead.
        self.torn = False
        #: The connection that was told all items anew, last.
        self._restated_to: Place | None = None
        #: Responses that were cancelled, with the stamp of their end.
        self._cancelled: dict[str, int] = {}
        self._handlers = {
            "conversation.item.added": self.items.added,
            "conversation.item.done": self.items.done,
            "conversation.item.deleted": self.items.deleted,
            "conversation.item.truncated": self.items.truncated,
        }

    def take(self, place: Place, event: dict[str, Any], stamp: int) -> None:
        """An event of a connection that is, or was, attached; ``stamp`` says when it was written."""
        if "server_event_seq" in event:
            if self._may_hide_a_gap(place, event):
                self.torn = True
                self.responses.tear()
            if self.sequence.take(place, event):
                self._take_new(event, stamp)
            elif event["type"] == "response.output_audio.delta":
                self._check_silence(event, stamp)
            return
        match event["type"]:
            case "session.skipped":
                if self.sequence.skipped(place, event):
                    self.responses.tear_audio()
            case "session.snapshot":
                self._snapshot(place, event)
            case "error":
                self.outcomes.error(event["error"])
            case "conversation.item.added" | "conversation.item.done":
                self._restated(place, event)
            case _:
                pass

    def _take_new(self, event: dict[str, Any], stamp: int) -> None:
        self.responses.take(event)
        if event["type"] == "response.done" and event["response"]["status"] == "cancelled":
            self._cancelled[event["response"]["id"]] = stamp
        handler = self._handlers.get(event["type"])
        if handler is not None:
            handler(event)
        self.outcomes.take(event)
        if self._numbered:
            self.heard.take(event)

    def _check_silence(self, event: dict[str, Any], stamp: int) -> None:
        """Audio that was seen before is sent again."""
        ended = self._cancelled.get(event["response_id"])
        if ended is not None and stamp > ended:
            raise Violation(SILENCED, f"{event['response_id']} ended at step {ended}, heard again at {stamp}")

    def _snapshot(self, place: Place, event: dict[str, Any]) -> None:
        ahead = self.sequence.snapshot(place, event)
        items = event["conversation"]["items"]
        if ahead > 0:
            self.torn = True
            self.responses.tear()
            self.responses.resync(event["active_response"])
            self.items.replace(items)
        elif ahead == 0:
            self.items.compare(items)

    def _may_hide_a_gap(self, place: Place, event: dict[str, Any]) -> bool:
        """A stock connection with a gap and nothing to restate sees a hole, as for an extension event."""
        return not self.sequence.extended and place.untouched and event["server_event_seq"] != place.next

    def _restated(self, place: Place, event: dict[str, Any]) -> None:
        """A stock connection with a gap is told every item, without numbers."""
        if self._restated_to is not place:
            self._restated_to = place
            self.torn = True
            self.items.restart()
            self.responses.tear()
        self._handlers[event["type"]](event)
