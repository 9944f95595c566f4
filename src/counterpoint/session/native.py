"""What a model that decides for itself says, and which response that belongs to.

Owns: opening and ending responses that nobody asked for, ``response.speak`` and ``response.listen``.
Does not own: the life of a response (``responses``), what the model hears (``steps``), what interrupts it
(``turns``).
Here because: a turn-based model is asked and answers; this one speaks, and it is then that a response begins.

Output of a response that the client asked for carries its fence. All other output carries turn 0 and the
epoch alone: the first of it opens a response, the end of the model's turn or its decision to listen ends it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    Listen,
    StepDone,
    TextDelta,
    ToolCall,
    TurnEnd,
)
from counterpoint.protocol.events import ResponseListen, ResponseSpeak

from .out import Out
from .plan import Planner
from .response import RunningResponse
from .responses import ResponseOutput, Responses
from .state import RunState

#: What may wait for the end of the response before its own: a minute of 80 ms frames, each with its receipt.
_MOST_WAITING: Final = 1500


class Native:
    def __init__(self, state: RunState, out: Out, planner: Planner, responses: Responses) -> None:
        self._state = state
        self._out = out
        self._planner = planner
        self._responses = responses
        self._epoch = state.epoch
        #: The response that the model opened by speaking, until its turn is over.
        self._own: RunningResponse | None = None
        #: Said while the response before is still being handed over; receipts keep their place in it.
        self._waiting: deque[ResponseOutput | StepDone] = deque()
        #: The response of which ``response.speak`` was sent last.
        self._spoken: RunningResponse | None = None
        #: Since it listens the client was told so, for this reason.
        self._told: str | None = None
        #: Something was said since the receipt before.
        self._is_speaking = False

    def take(self, fence: Fence, output: ResponseOutput) -> None:
        """Output of the model; stale output has no effect (invariants 52, 53, 90)."""
        if fence.turn:
            response = self._responses.fresh(fence)
            if response is not None:
                self._say(response, output)
        elif fence == self._state.fence():
            self._waiting.append(output)
            self.advance()

    def stepped(self, receipt: StepDone) -> None:
        """A step is over, with all that was said in it."""
        self._waiting.append(receipt)
        self.advance()

    def advance(self) -> None:
        """Write what waits, as soon as no other response is in its way (invariant 51)."""
        if self._epoch != self._state.epoch:
            self._epoch, self._own = self._state.epoch, None
            self._waiting.clear()
        while self._waiting and not self._is_held_up:
            self._take_own(self._waiting.popleft())
        if len(self._waiting) > _MOST_WAITING:
            self._waiting.clear()  # the client takes nothing: what it cannot hear in time it never hears

    @property
    def _is_held_up(self) -> bool:
        active = self._responses.active
        return active is not None and active is not self._own

    def _take_own(self, output: ResponseOutput | StepDone) -> None:
        if isinstance(output, StepDone):
            self._end_step()
            return
        self._is_speaking |= _says_something(output)
        if self._own is None and _says_something(output):
            self._own = self._responses.open(self._planner.unasked())
        if self._own is None:
            self._listen(output)
            return
        if self._own.outcome is None:
            self._say(self._own, output)
        if _ends_turn(output):
            self._own = None

    def _end_step(self) -> None:
        """A model that was told to stop and is silent has stopped, though it may not say so."""
        if self._own is not None and self._own.outcome is not None and not self._is_speaking:
            self._own = None
        self._is_speaking = False

    def _say(self, response: RunningResponse, output: ResponseOutput) -> None:
        if response is not self._spoken and _says_something(output):
            self._spoken, self._told = response, None
            self._out.emit(ResponseSpeak(response_id=response.id))
        self._responses.take(response, output)

    def _listen(self, output: ResponseOutput) -> None:
        """Outside a response a decision is told once, though it is made with every step (invariant 48)."""
        if isinstance(output, Listen) and output.end_of_turn and output.reason != self._told:
            self._told = output.reason
            self._out.emit(ResponseListen(reason=output.reason))


def _says_something(output: ResponseOutput) -> bool:
    """Padding is nothing (invariant 61)."""
    match output:
        case AudioDelta(pcm, text):
            return bool(pcm or text)
        case TextDelta(text):
            return bool(text)
        case _:
            return isinstance(output, ToolCall)


def _ends_turn(output: ResponseOutput) -> bool:
    match output:
        case TurnEnd() | Failure():
            return True
        case Listen(end_of_turn=ends):
            return ends
        case _:
            return False
