"""Which function calls may still be answered.

Owns: the state of every call of the conversation, the refusal of a result that fits no call.
Does not own: the items of calls and results (``conversation``), asking for an answer (the client does).
Here because: results come in any order, late, twice and after interruptions; one table says what each is.

A call that waits for its result is kept as long as its item; of calls that are over, the newest are.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode

#: Calls that are over and still told apart; a result for an older one is refused as unknown.
MAX_OVER = 1024


class CallState(enum.Enum):
    """Where a call stands (wire contract, section 5)."""

    OPEN = "open"  #: its arguments are being written
    COMPLETED = "completed"  #: waits for its result, whatever the epoch
    ANSWERED = "answered"
    CANCELLED = "cancelled"  #: interrupted before its arguments were complete
    DELETED = "deleted"  #: its item is gone


_REFUSALS: dict[CallState | None, tuple[ErrorCode, str]] = {
    CallState.ANSWERED: (ErrorCode.DUPLICATE_FUNCTION_CALL_OUTPUT, "this call has its result already"),
    CallState.CANCELLED: (
        ErrorCode.STALE_FUNCTION_CALL_OUTPUT,
        "this call was interrupted before it was complete",
    ),
    CallState.DELETED: (ErrorCode.LATE_FUNCTION_CALL_OUTPUT, "this call was deleted from the conversation"),
}
_UNKNOWN = (ErrorCode.UNKNOWN_FUNCTION_CALL_OUTPUT, "no call with this id waits for a result")


@dataclass(slots=True)
class _Call:
    call_id: str
    item_id: str
    state: CallState = CallState.OPEN


class ToolLedger:
    """The calls of one conversation."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._by_item: dict[str, _Call] = {}
        self._over: deque[_Call] = deque()  #: in the order in which they ended

    def __len__(self) -> int:
        return len(self._calls)

    def state(self, call_id: str) -> CallState | None:
        """None: there is no such call, or it was over long ago."""
        call = self._calls.get(call_id)
        return None if call is None else call.state

    def open(self, call_id: str, item_id: str) -> None:
        """The model began a call, as item ``item_id``; its arguments follow."""
        self._calls[call_id] = self._by_item[item_id] = _Call(call_id, item_id)

    def complete(self, call_id: str) -> None:
        """Its arguments were announced as done: from now on it can be answered."""
        call = self._calls.get(call_id)
        if call is not None and call.state is CallState.OPEN:
            call.state = CallState.COMPLETED

    def cancel(self, call_id: str) -> None:
        """It was interrupted. Nothing happens to a call whose arguments are complete (invariant 97)."""
        call = self._calls.get(call_id)
        if call is not None and call.state is CallState.OPEN:
            self._end(call, CallState.CANCELLED)

    def restore(self, call_id: str, item_id: str) -> None:
        """A client created the item of a complete call. Raises ``ProtocolError`` when its id is taken."""
        if call_id in self._calls:
            message = f"item.call_id: there is a call {call_id} already"
            raise ProtocolError(ErrorCode.INVALID_EVENT, message, param="item.call_id")
        self.open(call_id, item_id)
        self.complete(call_id)

    def check(self, call_id: str) -> None:
        """Raise what ``answer`` would raise, changing nothing."""
        state = self.state(call_id)
        if state is not CallState.COMPLETED:
            code, message = _REFUSALS.get(state, _UNKNOWN)
            raise ProtocolError(code, f"item.call_id: {message}: {call_id}", param="item.call_id")

    def answer(self, call_id: str) -> None:
        """Take the result of a call.

        Raises ``ProtocolError`` with ``param`` ``item.call_id`` and one of ``unknown_``, ``stale_``,
        ``duplicate_`` or ``late_function_call_output``; the result must then not reach the model.
        """
        self.check(call_id)
        self._end(self._calls[call_id], CallState.ANSWERED)

    def delete_item(self, item_id: str) -> None:
        """An item was deleted; if it was that of a call, a result for it is late from now on."""
        call = self._by_item.get(item_id)
        if call is not None:
            self._end(call, CallState.DELETED)

    def _end(self, call: _Call, state: CallState) -> None:
        if call.state in (CallState.OPEN, CallState.COMPLETED):
            self._over.append(call)
        call.state = state
        if len(self._over) > MAX_OVER:
            oldest = self._over.popleft()
            del self._calls[oldest.call_id], self._by_item[oldest.item_id]
