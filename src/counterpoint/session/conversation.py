"""The items of one conversation, in order.

Owns: ids, order and the ``previous_item_id`` chain; transcripts and audio of items, bounded; what of it a
model may see.
Does not own: what was heard (``playback``), calls that may be answered (``tools``), events (``items`` of the
machine).
Here because: the snapshot, ``conversation.item.retrieve`` and every request to a model are views of one list.

Audio of user items is 24 kHz 16-bit; audio of generated items is in the format they were opened with.
"""

from __future__ import annotations

from collections.abc import Callable

from counterpoint.plugins.contract import HistoryItem
from counterpoint.protocol.audio import AudioFormat
from counterpoint.protocol.items import Item, ItemStatus

from .playback import Spoken

#: Characters of an item that were heard; None: not a matter of playback, all that stands counts.
Heard = Callable[[str], int | None]


class Conversation:
    """The conversation of one session; holds at most ``max_audio_bytes`` of audio (older audio goes)."""

    def __init__(self, max_audio_bytes: int) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------ items that are whole

    def check_new(self, item_id: str, previous_item_id: str | None) -> None:
        """Raises what ``add`` would raise, changing nothing."""

    def add(self, item: Item, previous_item_id: str | None = None, *, input: int | None = None) -> None:
        """Insert ``item`` (with its id) after ``previous_item_id``: None is the end, "root" the beginning.

        ``input`` numbers the utterance that the item was committed from; None for an item that a client
        created. Raises ``ProtocolError``: ``item_create_duplicate_item_id`` (param ``item.id``), or
        ``previous_item_id`` as param when there is no such item.
        """
        raise NotImplementedError

    def set_transcript(self, item_id: str, transcript: str) -> None:
        """The words of a user's spoken item became known. Ignored when it was deleted meanwhile."""
        raise NotImplementedError

    def delete(self, item_id: str) -> None:
        """Raises ``ProtocolError`` (param ``item_id``) when there is no such item."""
        raise NotImplementedError

    # ------------------------------------------------------------------ items that a response generates

    def reserve(self, response_id: str) -> None:
        """Keep the place at the end for the items of a response, whatever is added behind it (invariant 118)."""
        raise NotImplementedError

    def release(self, response_id: str) -> None:
        """The response adds no more items; an unused place vanishes. Idempotent."""
        raise NotImplementedError

    def open_message(self, response_id: str, item_id: str, audio: AudioFormat | None) -> None:
        """An assistant's message begins: spoken in ``audio``, or text."""
        raise NotImplementedError

    def open_call(self, response_id: str, item_id: str, call_id: str, name: str) -> None:
        """A function call begins."""
        raise NotImplementedError

    def append(self, item_id: str, text: str, audio: bytes = b"") -> None:
        """More text (transcript, arguments) and audio of a generated item."""
        raise NotImplementedError

    def close(self, item_id: str, status: ItemStatus) -> None:
        """A generated item is ``completed`` or ``incomplete``."""
        raise NotImplementedError

    def discard(self, item_id: str) -> None:
        """A generated item that was never announced disappears. Ignored when there is none."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what was heard

    def spoken(self, item_id: str, content_index: int = 0) -> Spoken:
        """The spoken part of an assistant's item.

        Raises ``ProtocolError``: param ``item_id`` (no such item, or nothing spoken in it) or ``content_index``.
        """
        raise NotImplementedError

    def cut(self, item_id: str, samples: int, chars: int) -> None:
        """Keep so much of a generated item, to the character: the rest was never handed over."""
        raise NotImplementedError

    def truncate(self, item_id: str, samples: int, chars: int) -> int:
        """Keep so much of a spoken item, rounded down to whole words; returns the characters that are left."""
        raise NotImplementedError

    def limit(self, item_id: str, chars: int) -> int:
        """A model sees at most so much of a spoken item, rounded down to whole words; returns the characters."""
        raise NotImplementedError

    # ------------------------------------------------------------------ reading

    def __contains__(self, item_id: object) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def previous_id(self, item_id: str) -> str | None:
        """The item before this one; None for the first."""
        raise NotImplementedError

    def render(self, item_id: str, audio: bool = False) -> Item:
        """The item as it stands now, with or without its audio (user audio as 24 kHz PCM).

        Raises ``ProtocolError`` ``item_retrieve_invalid_item_id``.
        """
        raise NotImplementedError

    def snapshot(self) -> tuple[Item, ...]:
        """All items in order, without audio."""
        raise NotImplementedError

    def history(self, heard: Heard) -> tuple[HistoryItem, ...]:
        """What a model may see: answers as far as they were heard, results right after their calls."""
        raise NotImplementedError
