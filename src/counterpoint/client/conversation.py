"""The conversation as this client knows it: items in spoken order, with the words known so far.

Owns: following events that add, change and remove items, and the snapshot that replaces them all.
Does not own: the history that the model sees (the server's), audio.
Here because: transcripts come late and out of order (case J-03), and after a gap the whole is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .event import Event, text_of

_TRANSCRIPTION = "conversation.item.input_audio_transcription."


class Item:
    """One entry. ``data`` is the server's newest word on it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self._parts: dict[int, str] = {}
        #: ``message`` of the error if transcription failed, else None.
        self.transcription_error: str | None = None
        #: Where its audio was cut, if it was; ``Session.retrieve_item`` tells the words that are left.
        self.truncated_ms: int | None = None
        self.replace(data)

    def __repr__(self) -> str:
        return f"Item({self.id!r}, {self.role or self.type}, {self.text!r})"

    def replace(self, data: dict[str, Any]) -> None:
        """The server restates the item; words that it leaves out are kept."""
        self.data = data
        content = data.get("content")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and (text := text_of(part, "transcript") or text_of(part, "text")):
                self._parts[index] = text

    @property
    def id(self) -> str:
        return text_of(self.data, "id")

    @property
    def type(self) -> str:
        """``message``, ``function_call`` or ``function_call_output``."""
        return text_of(self.data, "type")

    @property
    def role(self) -> str:
        return text_of(self.data, "role")

    @property
    def status(self) -> str:
        return text_of(self.data, "status")

    @property
    def text(self) -> str:
        """What was written or said, as far as it is known."""
        return " ".join(self._parts[index] for index in sorted(self._parts))

    def append(self, index: int, text: str) -> None:
        self._parts[index] = self._parts.get(index, "") + text

    def set(self, index: int, text: str) -> None:
        self._parts[index] = text


class Conversation:
    """Iterates over its items in order."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._by_id: dict[str, Item] = {}

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, item_id: str) -> Item | None:
        return self._by_id.get(item_id)

    def follow(self, event: Event) -> None:
        """Change what the event changes; events about anything else have no effect."""
        match event.type:
            case "conversation.item.added" | "conversation.item.done" | "conversation.item.created":
                self._put(event.object("item"), event.string("previous_item_id"))
            case "conversation.item.deleted":
                self._remove(event.string("item_id"))
            case "session.snapshot":
                self._restate(event.object("conversation").get("items"))
            case _:
                item = self._by_id.get(event.string("item_id"))
                if item is not None:
                    _follow_words(item, event)

    def _put(self, data: dict[str, Any], previous_id: str) -> None:
        item_id = text_of(data, "id")
        known = self._by_id.get(item_id)
        if known is not None:
            known.replace(data)
        elif item_id:
            item = self._by_id[item_id] = Item(data)
            self._items.insert(self._place_after(previous_id), item)

    def _place_after(self, previous_id: str) -> int:
        """Without a predecessor an item is the first; after an unknown one, the last."""
        if not previous_id:
            return 0
        previous = self._by_id.get(previous_id)
        return len(self._items) if previous is None else self._items.index(previous) + 1

    def _remove(self, item_id: str) -> None:
        item = self._by_id.pop(item_id, None)
        if item is not None:
            self._items.remove(item)

    def _restate(self, items: Any) -> None:
        restated = [data for data in items if isinstance(data, dict)] if isinstance(items, list) else []
        self._items = [Item(data) for data in restated if text_of(data, "id")]
        self._by_id = {item.id: item for item in self._items}


def _follow_words(item: Item, event: Event) -> None:
    index = event.integer("content_index") or 0
    match event.type.removeprefix(_TRANSCRIPTION):
        case "delta" | "response.output_audio_transcript.delta" | "response.output_text.delta":
            item.append(index, event.string("delta"))
        case "completed" | "response.output_audio_transcript.done":
            item.set(index, event.string("transcript"))
        case "response.output_text.done":
            item.set(index, event.string("text"))
        case "failed":
            item.transcription_error = text_of(event.object("error"), "message") or "failed"
        case "conversation.item.truncated":
            item.truncated_ms = event.integer("audio_end_ms")
        case _:
            pass
