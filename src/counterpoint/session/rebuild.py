"""A model side that was lost, and one that takes its place.

Owns: whether a lost model side is replaced, what the new one is told.
Does not own: making it (the runner answers ``ReopenModel``), the end of a session (``close``).
Here because: a crash of the model is the end of its answer and of what it remembers, not of the conversation
(invariant 79).

A native model hears as its first step what was said and heard so far; a turn-based one is told with every
answer. What the user says meanwhile waits
behind that. Steps of the old one are of an older epoch, and so is what it may still say.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from counterpoint.plugins.contract import Failure, Fence
from counterpoint.protocol.codes import FailureCode

from .close import Closing
from .effects import ReopenModel
from .out import Out
from .plan import Planner
from .response import Outcome
from .responses import Responses
from .state import ModelSide, RunState
from .steps import Steps

#: A model that is lost more often than this cannot do what is asked of it.
_MOST: Final = 3
_WITHIN_S: Final = 60.0


class Rebuild:
    def __init__(
        self,
        state: RunState,
        out: Out,
        planner: Planner,
        responses: Responses,
        closing: Closing,
        steps: Steps | None,
    ) -> None:
        self._state = state
        self._out = out
        self._planner = planner
        self._responses = responses
        self._closing = closing
        self._steps = steps
        #: The model side that serves now was asked for in this epoch; failures of older ones are of another.
        self._since_epoch = 0
        self._lost_at: deque[float] = deque(maxlen=_MOST)

    def lose(self, fence: Fence, failure: Failure) -> None:
        """The model side is lost, by what was done under ``fence``."""
        if fence.epoch < self._since_epoch:
            return
        if not failure.retryable or self._is_hopeless():
            self._closing.fail("the model side was lost")
            return
        self._lost_at.append(self._state.now)
        if self._responses.active is None:
            self._responses.advance_epoch(self._state.fence())
        self._responses.end_all(Outcome.failed(FailureCode.MODEL_FAILED))
        self._since_epoch = self._state.epoch
        self._state.model = ModelSide.OPENING
        self._out.do(ReopenModel())
        if self._steps is not None:
            self._steps.retell(self._planner.conversation_text())

    def _is_hopeless(self) -> bool:
        return len(self._lost_at) == _MOST and self._lost_at[0] > self._state.now - _WITHIN_S
