"""The items of one conversation, as its client builds them from events.

Owns: one consistent order, one beginning and one end per item (CASE-INV-10).
Does not own: what a response writes into its items (``responses``).
Here because: the list that a client shows must be the list that the model is given.
"""

from __future__ import annotations

from typing import Any

from .violation import Violation

ORDER = "CASE-INV-10"


class Items:
    def __init__(self) -> None:
        #: Ids in the order of the conversation.
        self.order: list[str] = []
        self._done: dict[str, bool] = {}
        self._deleted: dict[str, None] = {}

    def added(self, event: dict[str, Any]) -> None:
        item_id, previous = event["item"]["id"], event["previous_item_id"]
        if item_id in self._done or item_id in self._deleted:
            raise Violation(ORDER, f"{item_id} was added twice")
        if previous is None:
            self.order.insert(0, item_id)
        elif previous in self._done:
            self.order.insert(self.order.index(previous) + 1, item_id)
        else:
            raise Violation(ORDER, f"{item_id} comes after {previous}, which is not there")
        self._done[item_id] = False

    def done(self, event: dict[str, Any]) -> None:
        item_id = event["item"]["id"]
        if item_id in self._deleted:
            return
        if self._done.get(item_id) is not False:
            raise Violation(ORDER, f"{item_id} is done and was not open")
        if event["item"]["status"] == "in_progress":
            raise Violation(ORDER, f"{item_id} is done and in progress")
        self._done[item_id] = True

    def deleted(self, event: dict[str, Any]) -> None:
        item_id = event["item_id"]
        if item_id not in self._done:
            raise Violation(ORDER, f"{item_id} was deleted and is not there")
        del self._done[item_id]
        self._deleted[item_id] = None
        self.order.remove(item_id)

    def truncated(self, event: dict[str, Any]) -> None:
        if event["item_id"] not in self._done:
            raise Violation(ORDER, f"{event['item_id']} was truncated and is not there")

    def replace(self, items: list[dict[str, Any]]) -> None:
        """A snapshot takes the place of events that were lost."""
        self.order = [item["id"] for item in items]
        self._done = {item["id"]: item["status"] != "in_progress" for item in items}

    def compare(self, items: list[dict[str, Any]]) -> None:
        """A snapshot although nothing was lost: it must say what is known."""
        order = [item["id"] for item in items]
        if order != self.order:
            raise Violation(ORDER, f"the snapshot lists {order}, the events were {self.order}")

    def restart(self) -> None:
        """A stock connection is about to be told all items anew."""
        self.order, self._done = [], {}
