"""What clients do to the items of the conversation.

Owns: ``conversation.item.create``, ``.retrieve`` and ``.delete``.
Does not own: the items (``conversation``), truncation (``playing``), results that fit no call (``tools``).
Here because: each of these checks everything first and then changes several parts at once.
"""

from __future__ import annotations

import msgspec

from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.encoder import OutputEncoder
from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import PCM16_24K, SESSION_RATE, AudioFormat
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CreateItem, DeleteItem, RetrieveItem, Scheduling
from counterpoint.protocol.events import ItemAdded, ItemDeleted, ItemDone, ItemRetrieved
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    Item,
    Message,
)

from .conversation import Conversation
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
        item = self._complete(command.item)
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
        if command.scheduling is not Scheduling.SILENT:
            self._turns.answer_item(item.id, interrupts=command.scheduling is Scheduling.INTERRUPT)

    def retrieve(self, command: RetrieveItem) -> None:
        item = self._conversation.render(command.item_id, audio=True)
        self._out.emit(ItemRetrieved(item=_in_format(item, self._state.config.audio.input.format)))

    def delete(self, command: DeleteItem) -> None:
        """An item that is being generated ends its response first."""
        if self._responses.writing(command.item_id) is not None and command.item_id in self._conversation:
            self._responses.interrupt("client_cancelled")
        self._conversation.delete(command.item_id)
        self._ledger.forget(command.item_id)
        self._tools.delete_item(command.item_id)
        self._out.emit(ItemDeleted(item_id=command.item_id))

    # ------------------------------------------------------------------ parts

    def _complete(self, item: Item) -> Item:
        """``item`` with all its ids and with canonical audio. Raises for what the model cannot take."""
        item = msgspec.structs.replace(item, id=item.id or self._ids.item())
        if isinstance(item, FunctionCall) and not item.call_id:
            return msgspec.structs.replace(item, call_id=self._ids.call())
        if isinstance(item, Message):
            content = tuple(self._take(part, index) for index, part in enumerate(item.content))
            return msgspec.structs.replace(item, content=content)
        return item

    def _take(self, part: ContentPart, index: int) -> ContentPart:
        capabilities = self._state.capabilities
        match part:
            case InputImage() if not capabilities.images:
                raise _unsupported("images", index)
            case InputAudio(audio=bytes() as audio, transcript=transcript):
                if not capabilities.audio_input:
                    raise _unsupported("audio", index)
                return InputAudio(_canonical(audio, self._state.config.audio.input.format), transcript)
            case _:
                return part


def _unsupported(what: str, index: int) -> ProtocolError:
    param = f"item.content[{index}].type"
    return ProtocolError(ErrorCode.UNSUPPORTED, f"{param}: the model takes no {what}", param=param)


def _canonical(audio: bytes, fmt: AudioFormat) -> bytes:
    decoder = InputDecoder()
    return decoder.push(audio, fmt) + decoder.end()


def _in_format(item: Item, fmt: AudioFormat) -> Item:
    """A user's audio as the session's input format has it."""
    if not isinstance(item, Message) or fmt == PCM16_24K:
        return item
    return msgspec.structs.replace(item, content=tuple(_part_in_format(part, fmt) for part in item.content))


def _part_in_format(part: ContentPart, fmt: AudioFormat) -> ContentPart:
    if not isinstance(part, InputAudio) or part.audio is None:
        return part
    encoder = OutputEncoder(SESSION_RATE, fmt)
    return msgspec.structs.replace(part, audio=encoder.process(part.audio) + encoder.flush())
