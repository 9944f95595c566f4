"""What one session showed its client, over all of its connections, held to the wire contract.

Owns: which check sees which event, and that each sees an event once.
Does not own: the checks (``invariants``), what the client does about an event (``simulated_client``).
Here because: a session has one truth, and connections come and go around it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from .invariants.fence import Fence
from .invariants.heard import Heard
from .invariants.history import History
from .invariants.items import Items
from .invariants.outcomes import Outcomes
from .invariants.responses import Responses
from .invariants.sequence import Place, Sequence


class Witness:
    """``extended``: its connections are; ``numbered``: its input is; ``detected``: a detector finds turns;
    ``acknowledges``: what was heard is what it acknowledges; ``turns``: of a model that is not asked
    (``invariants.responses``)."""

    def __init__(
        self,
        *,
        extended: bool,
        numbered: bool,
        detected: bool,
        acknowledges: bool,
        outcomes: Outcomes,
        turns: Container[int] | None = None,
    ) -> None:
        self._numbered = numbered
        self._acknowledges = acknowledges
        self.sequence = Sequence(extended=extended)
        self.responses = Responses(turns)
        self.items = Items()
        self.heard = Heard(detected=detected)
        self.history = History()
        self.fence = Fence()
        self.outcomes = outcomes
        #: Events were lost and a snapshot came instead.
        self.torn = False
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
                self._tear()
            if self.sequence.take(place, event):
                self._take_new(event, stamp)
            else:
                self.fence.take_again(event, stamp)
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
                self._restated(event)
            case _:
                pass

    def _take_new(self, event: dict[str, Any], stamp: int) -> None:
        self.responses.take(event)
        self.fence.take(event, stamp, out_of_band=self.responses.is_out_of_band(event.get("response_id")))
        handler = self._handlers.get(event["type"])
        if handler is not None:
            handler(event)
        self.outcomes.take(event)
        if self._numbered:
            self.heard.take(event)
        if self._acknowledges and not self.torn:
            self.history.take(event)

    def _tear(self) -> None:
        self.torn = True
        self.responses.tear()
        self.heard.tear()

    def _snapshot(self, place: Place, event: dict[str, Any]) -> None:
        ahead = self.sequence.snapshot(place, event)
        items = event["conversation"]["items"]
        if ahead > 0:
            self._tear()
            self.responses.resync(event["active_response"])
            self.items.replace(items)
        elif ahead == 0:
            self.items.compare(items)

    def _may_hide_a_gap(self, place: Place, event: dict[str, Any]) -> bool:
        """With a gap and nothing to restate, a stock connection sees a hole and nothing else."""
        return not self.sequence.extended and place.untouched and event["server_event_seq"] != place.next

    def _restated(self, event: dict[str, Any]) -> None:
        """A stock connection with a gap is told every item, without numbers; the first has none before it."""
        if event["type"] == "conversation.item.added" and event["previous_item_id"] is None:
            self._tear()
            self.items.restart()
        self._handlers[event["type"]](event)
