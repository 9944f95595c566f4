"""Which function calls may still be answered.

Owns: the state of every call of the conversation, the refusal of a result that fits no call.
Does not own: the items of calls and results (``conversation``), asking for an answer (the client does).
Here because: results come in any order, late, twice and after interruptions; one table says what each is.
"""

from __future__ import annotations

import enum


class CallState(enum.Enum):
    """Where a call stands (wire contract, section 5)."""

    OPEN = "open"  #: its arguments are being written
    COMPLETED = "completed"  #: waits for its result, whatever the epoch
    ANSWERED = "answered"
    CANCELLED = "cancelled"  #: interrupted before its arguments were complete; a result is stale
    DELETED = "deleted"  #: its item is gone; a result is late


class ToolLedger:
    """The calls of one conversation."""

    def open(self, call_id: str, item_id: str) -> None:
        """A call appeared; its arguments follow."""
        raise NotImplementedError

    def complete(self, call_id: str) -> None:
        """Its arguments were announced as done: it can be answered from now on."""
        raise NotImplementedError

    def cancel(self, call_id: str) -> None:
        """It was interrupted. Nothing happens to a call that is no longer open."""
        raise NotImplementedError

    def answer(self, call_id: str) -> None:
        """Take a result.

        Raises ``ProtocolError`` with ``param`` ``item.call_id`` and one of ``unknown_``, ``stale_``,
        ``duplicate_`` or ``late_function_call_output``; the result must then not reach the model.
        """
        raise NotImplementedError

    def delete_item(self, item_id: str) -> None:
        """An item was deleted; if it was a call that waits for its result, the result is late from now on."""
        raise NotImplementedError

    def state(self, call_id: str) -> CallState | None: ...
