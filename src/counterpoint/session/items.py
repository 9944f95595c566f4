"""What clients do to the items of the conversation.

Owns: ``conversation.item.create``, ``.retrieve`` and ``.delete``.
Does not own: the items (``conversation``), truncation (``playing``), results that fit no call (``tools``).
Here because: each of these checks everything first and then changes several parts at once.
"""

from __future__ import annotations

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CreateItem, DeleteItem, RetrieveItem, Scheduling
from counterpoint.protocol.config import SessionType
from counterpoint.protocol.events import ItemAdded, ItemDeleted, ItemDone, ItemRetrieved
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import FunctionCall, FunctionCallOutput, Message

from .conversation import Conversation
from .given import complete, in_format
from .out import Out
from .playback import PlaybackLedger
from .responses import Responses
from .state import RunState
from .tools import ToolLedger
from .turns import Turns


class Items:
    def __init__(
        self,
        state: RunState,
        out: Out,
        ids: IdSource,
        conversation: Conversation,
        ledger: PlaybackLedger,
        tools: ToolLedger,
        responses: Responses,
        turns: Turns,
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._conversation = conversation
        self._ledger = ledger
        self._tools = tools
        self._responses = responses
        self._turns = turns

    def create(self, command: CreateItem) -> None:
        """Raises ``ProtocolError`` with nothing changed."""
        silent = command.scheduling is Scheduling.SILENT
        if not silent and self._state.config.type is SessionType.TRANSCRIPTION:
            message = "scheduling: a transcription session has no responses"
            raise ProtocolError(ErrorCode.UNSUPPORTED, message, param="scheduling")
        item = complete(command.item, self._state, self._ids, "item")
        self._conversation.check_new(item.id, command.previous_item_id)
        match item:
            case FunctionCallOutput(call_id=call_id):
                self._tools.answer(call_id)
            case FunctionCall(call_id=call_id):
                self._tools.restore(call_id, item.id)
            case Message():
                pass
        self._conversation.add(item, command.previous_item_id)
        previous = self._conversation.previous_id(item.id)
        self._responses.pin(previous)
        shown = self._conversation.render(item.id)
        self._out.emit(ItemAdded(previous_item_id=previous, item=shown))
        self._out.emit(ItemDone(previous_item_id=previous, item=shown))
        if not silent:
            self._turns.answer_item(item.id, interrupts=command.scheduling is Scheduling.INTERRUPT)

    def retrieve(self, command: RetrieveItem) -> None:
        item = self._conversation.render(command.item_id, audio=True)
        self._out.emit(ItemRetrieved(item=in_format(item, self._state.config.audio.input.format)))

    def delete(self, command: DeleteItem) -> None:
        """An item that is being generated ends its response first."""
        if self._responses.writing(command.item_id) is not None and command.item_id in self._conversation:
            self._responses.interrupt("client_cancelled")
        self._conversation.delete(command.item_id)
        self._ledger.forget(command.item_id)
        self._tools.delete_item(command.item_id)
        self._out.emit(ItemDeleted(item_id=command.item_id))
