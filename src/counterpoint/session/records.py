"""Items as a conversation keeps them.

Owns: ``Given`` (an item that came whole) and ``Generated`` (one that a model builds up piece by piece); how
each is shown to a client and to a model.
Does not own: their order (``conversation``), the bytes of their audio (``audio_shelf``).
Here because: an item of the wire is a frozen value, and an answer grows a hundred times a second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from counterpoint.plugins.contract import HistoryItem
from counterpoint.protocol.audio import AudioFormat
from counterpoint.protocol.items import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    Item,
    ItemStatus,
    Message,
    OutputAudio,
    OutputText,
)

from .alignment import whole_words
from .audio_shelf import AudioShelf

#: Types of a history's entries.
MESSAGE, CALL, RESULT = "message", "function_call", "function_call_output"


class Given:
    """An item of a client, or a committed utterance (then ``input`` is its number)."""

    __slots__ = ("input", "item")

    def __init__(self, item: Item, input: int | None, shelf: AudioShelf) -> None:
        self.input = input
        self.item = item  #: without its audio
        if isinstance(item, Message):
            content = tuple(_put_away(item.id, index, part, shelf) for index, part in enumerate(item.content))
            self.item = msgspec.structs.replace(item, content=content)

    def set_transcript(self, transcript: str) -> None:
        """The words of its spoken part."""
        if not isinstance(self.item, Message):
            return
        content = list(self.item.content)
        for index, part in enumerate(content):
            if isinstance(part, InputAudio):
                content[index] = InputAudio(transcript=transcript)
                break
        self.item = msgspec.structs.replace(self.item, content=tuple(content))

    def render(self, shelf: AudioShelf | None) -> Item:
        """The item; with its audio where a shelf is given."""
        if shelf is None or not isinstance(self.item, Message):
            return self.item
        content = tuple(
            msgspec.structs.replace(part, audio=shelf.get((self.item.id, index))) if _is_audio(part) else part
            for index, part in enumerate(self.item.content)
        )
        return msgspec.structs.replace(self.item, content=content)

    def drop_audio(self, shelf: AudioShelf) -> None:
        if isinstance(self.item, Message):
            for index in range(len(self.item.content)):
                shelf.drop((self.item.id, index))

    def history(self, shelf: AudioShelf) -> HistoryItem:
        """As a model sees it."""
        match self.item:
            case Message():
                return self._message(self.item, shelf)
            case FunctionCall() as call:
                return _call(call)
            case FunctionCallOutput() as result:
                return HistoryItem(result.id, RESULT, call_id=result.call_id, output=result.output)

    def _message(self, message: Message, shelf: AudioShelf) -> HistoryItem:
        texts = [text for text in map(_text_of, message.content) if text is not None]
        spoken = any(_is_audio(part) for part in message.content)
        audio = None
        if self.input is None:
            audio = b"".join(shelf.get((message.id, index)) or b"" for index in range(len(message.content)))
        return HistoryItem(
            message.id,
            MESSAGE,
            role=message.role.value,
            text="\n".join(texts) if texts or not spoken else None,
            input=self.input,
            audio=audio or None,
            images=tuple(part.image_url for part in message.content if isinstance(part, InputImage)),
        )


@dataclass(slots=True)
class Generated:
    """A message or a call that a response writes."""

    head: Message | FunctionCall  #: without its content
    format: AudioFormat | None  #: of its audio; None: it is not spoken
    samples: int = 0  #: of its audio, on the shelf or not
    #: Characters that a model sees at most, once it is settled that no more of them were heard.
    limit: int | None = None
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Transcript, text or arguments so far."""
        self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0]

    @property
    def audio_key(self) -> tuple[str, int]:
        return self.head.id, 0

    def append(self, text: str, audio: bytes, shelf: AudioShelf) -> None:
        if text:
            self.pieces.append(text)
        if audio and self.format is not None:
            self.samples += len(audio) // self.format.encoding.sample_bytes
            shelf.append(self.audio_key, audio)

    def cut(self, samples: int, chars: int, shelf: AudioShelf) -> None:
        """Keep the first ``chars`` characters and ``samples`` samples."""
        self.pieces[:] = [self.text[:chars]]
        if self.format is not None and samples < self.samples:
            self.samples = samples
            shelf.cut(self.audio_key, samples * self.format.encoding.sample_bytes)

    def set_status(self, status: ItemStatus) -> None:
        self.head = msgspec.structs.replace(self.head, status=status)

    def render(self, shelf: AudioShelf | None) -> Item:
        """The item as it stands; with its audio where a shelf is given."""
        if isinstance(self.head, FunctionCall):
            return msgspec.structs.replace(self.head, arguments=self.text)
        part: ContentPart = OutputText(self.text)
        if self.format is not None:
            audio = None if shelf is None else shelf.get(self.audio_key)
            part = OutputAudio(audio=audio, transcript=self.text)
        return msgspec.structs.replace(self.head, content=(part,))

    def drop_audio(self, shelf: AudioShelf) -> None:
        shelf.drop(self.audio_key)

    def history(self, heard: int | None) -> HistoryItem | None:
        """As a model sees it: whole words of what was heard. None: there is nothing of it to see."""
        if isinstance(self.head, FunctionCall):
            complete = self.head.status is ItemStatus.COMPLETED
            return _call(msgspec.structs.replace(self.head, arguments=self.text)) if complete else None
        chars = min(len(self.text) if limit is None else limit for limit in (heard, self.limit))
        text = self.text[: whole_words(self.text, chars)]
        if not text:
            return None
        return HistoryItem(self.head.id, MESSAGE, role=self.head.role.value, text=text)


Record = Given | Generated


def _put_away(item_id: str, index: int, part: ContentPart, shelf: AudioShelf) -> ContentPart:
    """``part`` without its audio, which goes onto the shelf."""
    if not isinstance(part, InputAudio | OutputAudio) or part.audio is None:
        return part
    shelf.open((item_id, index))
    shelf.append((item_id, index), part.audio)
    return msgspec.structs.replace(part, audio=None)


def _is_audio(part: ContentPart) -> bool:
    return isinstance(part, InputAudio | OutputAudio)


def _text_of(part: ContentPart) -> str | None:
    if isinstance(part, InputAudio | OutputAudio):
        return part.transcript
    return None if isinstance(part, InputImage) else part.text


def _call(call: FunctionCall) -> HistoryItem:
    return HistoryItem(call.id, CALL, call_id=call.call_id, name=call.name, arguments=call.arguments)
