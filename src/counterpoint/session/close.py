"""The end of a session, whatever brings it about.

Owns: the way from open over closing to ended; the one terminal event.
Does not own: the cleanup itself (the runner answers ``CloseModel``), leases and their expiry (``runtime``).
Here because: a session ends once, with one event, and only after the cleanup of its model was attempted.
"""

from __future__ import annotations

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import CLOSED_REASONS, EXPIRED_REASONS, CloseCode, ErrorCode, FailureCode
from counterpoint.protocol.events import SessionClosed, SessionExpired

from .effects import CloseModel, EndSession
from .out import Out
from .response import Outcome
from .responses import Responses
from .state import Lifecycle, ModelSide, RunState
from .turns import Turns


class Closing:
    def __init__(self, state: RunState, out: Out, responses: Responses, turns: Turns) -> None:
        self._state = state
        self._out = out
        self._responses = responses
        self._turns = turns

    def close(self, reason: str) -> None:
        """Idempotent: the first reason counts. Nothing more is submitted to the model (invariant 32)."""
        if self._state.lifecycle is not Lifecycle.OPEN:
            return
        if reason not in CLOSED_REASONS and reason not in EXPIRED_REASONS:
            raise ValueError(f"{reason} ends no session")
        self._state.lifecycle = Lifecycle.CLOSING
        self._state.reason = reason
        self._turns.drop_waiting()
        self._responses.end_all(_outcome(reason))
        self._state.model = ModelSide.CLOSED
        self._out.do(CloseModel())

    def fail(self, message: str, code: ErrorCode = ErrorCode.INTERNAL_ERROR) -> None:
        """The session cannot go on: one error says so before it ends (invariant 28)."""
        if self._state.lifecycle is not Lifecycle.OPEN:
            return
        self._responses.end_all(_outcome("failed"))
        self._out.error(ProtocolError(code, message), None)
        self.close("failed")

    def cleaned_up(self) -> None:
        """The cleanup was attempted; a slot that it could not free stays taken, and that is not told here."""
        if self._state.lifecycle is not Lifecycle.CLOSING:
            return
        reason, session_id = self._state.reason, self._state.session_id
        assert reason is not None
        self._state.lifecycle = Lifecycle.ENDED
        if reason in EXPIRED_REASONS:
            self._out.emit(SessionExpired(session_id=session_id, reason=reason))
        else:
            self._out.emit(SessionClosed(session_id=session_id, reason=reason))
        self._out.do(EndSession(reason, CLOSED_REASONS.get(reason, CloseCode.NORMAL)))


def _outcome(reason: str) -> Outcome:
    """Of the responses that the end of the session cuts off."""
    match reason:
        case "failed" | "model_closed":
            return Outcome.failed(FailureCode.MODEL_FAILED)
        case "client_closed":
            return Outcome.cancelled("client_cancelled")
        case _:
            return Outcome.cancelled(None)
