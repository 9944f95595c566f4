"""One owner of one slot: its steps in order, and where their outputs go.

Owns: the backlog, its bound, receipts, the fence under which a step is made.
Does not own: the slot's number and its reuse, batching (``slots``), the model.
Here because: a result belongs to the owner for whom its step was made. The lease is made anew for every
owner, so whatever comes late finds a lease that is over, and not the slot's next owner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from .contract import Failure, Fence, Listen, Outlet, ResponseRequest, Scope, StepDone, StepInput, TurnEnd
from .step_model import Row, StepEvent

#: So many full backlogs dropped behind one step: it will not come back.
_STUCK: Final = 4


class SlotLease:
    """``backlog``: steps that may wait; beyond it the oldest is dropped: what is said now matters more.

    ``wake`` is called when there is something to step.
    """

    def __init__(
        self, slot: int, session_id: str, outlet: Outlet, backlog: int, wake: Callable[[], None]
    ) -> None:
        self.slot = slot
        self.is_over = False
        self._session_id = session_id
        self._outlet = outlet
        self._backlog = backlog
        self._wake = wake
        self._waiting: deque[StepInput] = deque()
        #: Dropped behind the step under way: their receipts come after its own (invariant 130).
        self._dropped: deque[StepInput] = deque()
        self._stepping = False
        self._epoch = 0
        #: Of the answer that the client asked for, until it ends; 0: the model speaks when it wants to.
        self._turn = 0
        self._text = ""
        self._force_listen = False

    # ------------------------------------------------------------------ the owner

    def push(self, step: StepInput) -> None:
        if self.is_over:
            return
        self._waiting.append(step)
        if len(self._waiting) > self._backlog:
            self._dropped.append(self._waiting.popleft())
            if len(self._dropped) > _STUCK * self._backlog:
                self._fail()
            elif not self._stepping:
                self._report_dropped()
        self._wake()

    def has_read(self, step: StepInput) -> None:
        """A step that was no audio was made apart from the others."""
        if not self.is_over:
            self._outlet.emit(step.fence, StepDone(step.step))

    def ask(self, request: ResponseRequest, text: str) -> None:
        """From the next step on the model answers ``text``, and what it says is of this request."""
        if request.fence.epoch < self._epoch:
            return  # interrupted before it got here
        self._epoch, self._turn, self._text = request.fence.epoch, request.fence.turn, text

    def interrupt(self, epoch: int) -> None:
        """What is said before the next step begins is stale; input that waits stays input (invariant 100)."""
        if epoch > self._epoch:
            self._epoch = epoch
            self.hush()

    def hush(self) -> None:
        """The model is to listen from the next step on."""
        self._turn, self._text, self._force_listen = 0, "", True

    def close(self) -> None:
        """Nothing is stepped and nothing is said any more."""
        self.is_over = True
        self._waiting.clear()
        self._dropped.clear()

    # ------------------------------------------------------------------ the scheduler

    @property
    def is_ready(self) -> bool:
        return bool(self._waiting)

    def take(self) -> Row:
        """The next step, as the model is to see it; answered by ``finish``."""
        step = self._waiting.popleft()
        self.interrupt(step.fence.epoch)
        made = replace(
            step,
            fence=Fence(self._session_id, self._epoch, self._turn),
            text=self._text or step.text,
            force_listen=self._force_listen or step.force_listen,
        )
        self._text, self._force_listen = "", False
        self._stepping = True
        return Row(self.slot, made)

    def finish(self, step: StepInput, outcome: Sequence[StepEvent] | Exception) -> None:
        """What came of the step, then its receipt."""
        self._stepping = False
        if self.is_over:
            return
        if isinstance(outcome, Exception):
            self._fail(step)
            return
        for event in outcome:
            self._outlet.emit(step.fence, event)
            if step.fence.turn == self._turn and _ends_turn(event):
                self._turn = 0
        self._outlet.emit(step.fence, StepDone(step.step, consumed=_samples(step)))
        self._report_dropped()

    def _report_dropped(self) -> None:
        while self._dropped:
            self._discard(self._dropped.popleft(), "dropped")

    def _fail(self, step: StepInput | None = None) -> None:
        """The model side of this session is lost; ``step`` is the one that did it."""
        rest = (*self._dropped, *self._waiting)
        newest = max((behind.fence.epoch for behind in rest), default=0)
        fence = Fence(self._session_id, max(self._epoch, newest))
        self._outlet.emit(fence, Failure(scope=Scope.SESSION))
        if step is not None:
            self._discard(step, "failed")
        for behind in rest:
            self._discard(behind, "cancelled")
        self.close()

    def _discard(self, step: StepInput, label: str) -> None:
        self._outlet.emit(step.fence, StepDone(step.step, label, discarded=_samples(step)))


def _samples(step: StepInput) -> int:
    return len(step.audio) // 2


def _ends_turn(event: StepEvent) -> bool:
    match event:
        case TurnEnd() | Failure():
            return True
        case Listen(end_of_turn=ends):
            return ends
        case _:
            return False
