"""What each command does, said in one line.

Owns: which part a command goes to; creating and cancelling a response.
Does not own: any other rule of a part, the order in which commands apply (``machine``), the end (``close``).
Here because: the list of commands is long, closed, and must be total.
"""

from __future__ import annotations

from typing import assert_never

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckEvents,
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearAudio,
    ClearOutput,
    CloseSession,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Heartbeat,
    ResumeSession,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)

from .configure import Configuring
from .input import InputLine
from .items import Items
from .plan import Planner
from .playing import Playing
from .responses import Responses
from .turns import Turns


class Commands:
    def __init__(
        self,
        input: InputLine,
        turns: Turns,
        items: Items,
        playing: Playing,
        planner: Planner,
        responses: Responses,
        configuring: Configuring,
    ) -> None:
        self._input = input
        self._turns = turns
        self._items = items
        self._playing = playing
        self._planner = planner
        self._responses = responses
        self._configuring = configuring

    def apply(self, command: Command, *, extended: bool) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        match command:
            case AppendAudio():
                self._input.append(command)
            case AppendText():
                self._input.append_text(command)
            case CommitAudio():
                self._input.commit(command)
            case ClearAudio():
                self._input.clear()
            case CancelInput():
                self.cancel_active()
                self._input.clear()
            case BargeIn():
                self._turns.barge_in()
            case CreateItem():
                self._items.create(command)
            case RetrieveItem():
                self._items.retrieve(command)
            case DeleteItem():
                self._items.delete(command)
            case TruncateItem():
                self._playing.truncate(command)
            case CreateResponse():
                self._create_response(command)
            case CancelResponse():
                self._cancel_response(command)
            case ClearOutput():
                self._playing.clear(command)
            case AckPlayback():
                self._playing.acknowledge(command)
            case UpdateSession():
                self._configuring.update(command, extended=extended)
            case CloseSession() | Heartbeat() | AckEvents() | ResumeSession():
                raise AssertionError("these concern more, or less, than an open session")
            case _:
                assert_never(command)

    def _create_response(self, command: CreateResponse) -> None:
        plan = self._planner.asked(command.options)
        if self._responses.active is not None and not plan.out_of_band:
            code = ErrorCode.CONVERSATION_ALREADY_HAS_ACTIVE_RESPONSE
            raise ProtocolError(code, "the conversation has an active response")
        self._responses.start(plan)

    def _cancel_response(self, command: CancelResponse) -> None:
        active = self._responses.active
        if active is not None and command.response_id in (None, active.id):
            self._responses.interrupt("client_cancelled")
            return
        running = None if command.response_id is None else self._responses.find(command.response_id)
        if running is None:
            message = "Cancellation failed: no such response is active"
            param = None if command.response_id is None else "response_id"
            raise ProtocolError(ErrorCode.RESPONSE_CANCEL_NOT_ACTIVE, message, param=param)
        self._responses.cancel_out_of_band(running)

    def cancel_active(self) -> None:
        if self._responses.active is not None:
            self._responses.interrupt("client_cancelled")
