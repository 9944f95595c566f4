"""The items of one conversation, in order.

Owns: ids, the order and the ``previous_item_id`` chain, the places that responses keep for their items, what
of it all a model may see.
Does not own: what was heard (``playback``), which calls may be answered (``tools``), how an item is kept
(``records``), the events about items.
Here because: the snapshot, ``conversation.item.retrieve`` and every request to a model are views of one list.

Audio of users is 24 kHz 16-bit PCM; audio of a generated item is in the format it was opened with. Whatever
names a generated item that was deleted meanwhile is ignored: a client may delete what is being spoken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import HistoryItem
from counterpoint.protocol.audio import AudioFormat
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.items import FunctionCall, Item, ItemStatus, Message, Role

from .alignment import whole_words
from .audio_shelf import AudioShelf
from .ordering import Ordering
from .playback import Spoken
from .records import CALL, RESULT, Generated, Given, Record

#: Characters that were heard of an item, None where nothing limits them (``PlaybackLedger.heard``).
Heard = Callable[[str], int | None]

#: ``previous_item_id`` of an item that is to become the first.
ROOT = "root"


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place behind the newest item of a response that may add more (invariant 118)."""

    response_id: str


class Conversation:
    """The conversation of one session, with at most ``max_audio_bytes`` of audio: older audio goes first."""

    def __init__(self, max_audio_bytes: int) -> None:
        self._order: Ordering[str | _Slot] = Ordering()
        self._records: dict[str, Record] = {}
        self._shelf = AudioShelf(max_audio_bytes)

    # ------------------------------------------------------------------ items that come whole

    def check_new(self, item_id: str, previous_item_id: str | None = None) -> None:
        """Raise what ``add`` would raise, changing nothing."""
        if item_id in self._records:
            message = f"item.id: there is an item {item_id} already"
            raise ProtocolError(ErrorCode.ITEM_CREATE_DUPLICATE_ITEM_ID, message, param="item.id")
        if previous_item_id not in (None, ROOT) and previous_item_id not in self._records:
            message = f"previous_item_id: there is no item {previous_item_id}"
            code = ErrorCode.ITEM_CREATE_INVALID_PREVIOUS_ITEM_ID
            raise ProtocolError(code, message, param="previous_item_id")

    def add(self, item: Item, previous_item_id: str | None = None, *, input: int | None = None) -> None:
        """Insert ``item`` behind another: None is the last, "root" makes it the first (case I-07).

        ``input`` is the number of the utterance that was committed as this item. Raises ``ProtocolError``
        for an id that is taken (``param`` ``item.id``) and an unknown ``previous_item_id``.
        """
        self.check_new(item.id, previous_item_id)
        if previous_item_id is None:
            self._order.append(item.id)
        else:
            self._order.insert(item.id, None if previous_item_id == ROOT else previous_item_id)
        self._records[item.id] = Given(item, input, self._shelf)

    def set_transcript(self, item_id: str, transcript: str) -> None:
        """The words of an utterance became known, however late (case J-03)."""
        record = self._records.get(item_id)
        if isinstance(record, Given):
            record.set_transcript(transcript)

    def delete(self, item_id: str) -> None:
        """Raises ``ProtocolError`` (``param`` ``item_id``) when there is no such item."""
        self._find(item_id, ErrorCode.ITEM_DELETE_INVALID_ITEM_ID)
        self.discard(item_id)

    def discard(self, item_id: str) -> None:
        """An item disappears, if it is there."""
        record = self._records.pop(item_id, None)
        if record is not None:
            record.drop_audio(self._shelf)
            self._order.remove(item_id)

    # ------------------------------------------------------------------ items that a response writes

    def reserve(self, response_id: str) -> None:
        """Keep a place at the end for the items of a response, whatever is added behind it. Idempotent."""
        slot = _Slot(response_id)
        if slot not in self._order:
            self._order.append(slot)

    def release(self, response_id: str) -> None:
        """The response writes no more items; a place that it did not use is gone."""
        slot = _Slot(response_id)
        if slot in self._order:
            self._order.remove(slot)

    def open_message(self, response_id: str, item_id: str, audio: AudioFormat | None) -> None:
        """An answer begins in the place of its response: spoken in format ``audio``, or text."""
        head = Message(id=item_id, status=ItemStatus.IN_PROGRESS, role=Role.ASSISTANT)
        self._open(response_id, Generated(head, audio))
        if audio is not None:
            self._shelf.open((item_id, 0))

    def open_call(self, response_id: str, item_id: str, call_id: str, name: str) -> None:
        """A function call begins in the place of its response."""
        head = FunctionCall(
            id=item_id, status=ItemStatus.IN_PROGRESS, call_id=call_id, name=name, arguments=""
        )
        self._open(response_id, Generated(head, None))

    def append(self, item_id: str, text: str, audio: bytes = b"") -> None:
        """More text (transcript, arguments) and audio (whole samples) of an item."""
        record = self._generated(item_id)
        if record is not None:
            record.append(text, audio, self._shelf)

    def close(self, item_id: str, status: ItemStatus) -> None:
        """An item is ``completed`` or ``incomplete``."""
        record = self._generated(item_id)
        if record is not None:
            record.set_status(status)

    def cut(self, item_id: str, samples: int, chars: int) -> None:
        """Keep of an item what was handed over, to the character."""
        record = self._generated(item_id)
        if record is not None:
            record.cut(samples, chars, self._shelf)

    # ------------------------------------------------------------------ what was heard of them

    def spoken(self, item_id: str, content_index: int = 0) -> Spoken:
        """The audio part of an item.

        Raises ``ProtocolError``: ``param`` ``item_id`` for an item that is unknown or was not spoken here
        (case F-10), ``content_index`` for a part that it does not have.
        """
        record = self._find(item_id, ErrorCode.ITEM_TRUNCATE_INVALID_ITEM_ID)
        if not isinstance(record, Generated) or record.format is None:
            message = f"item_id: {item_id} is not a spoken answer"
            raise ProtocolError(ErrorCode.ITEM_TRUNCATE_INVALID_ITEM_ID, message, param="item_id")
        if content_index != 0:
            message = "content_index: a spoken answer has one part, with index 0"
            raise ProtocolError(ErrorCode.INVALID_EVENT, message, param="content_index")
        return Spoken(item_id, record.samples, record.format.rate, len(record.text))

    def truncate(self, item_id: str, samples: int, chars: int) -> int:
        """Keep so much of a spoken item, in whole words; returns the characters that are left."""
        record = self._generated(item_id)
        if record is None:
            return 0
        kept = whole_words(record.text, chars)
        record.cut(samples, kept, self._shelf)
        return kept

    def limit(self, item_id: str, chars: int) -> int:
        """A model sees no more than this of an item, in whole words; returns the characters that it sees.

        The item itself stays as it was handed over.
        """
        record = self._generated(item_id)
        if record is None:
            return 0
        record.limit = min(chars, len(record.text) if record.limit is None else record.limit)
        return whole_words(record.text, record.limit)

    # ------------------------------------------------------------------ reading

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._records

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[str]:
        """Ids in order."""
        return (key for key in self._order if isinstance(key, str))

    @property
    def audio_bytes(self) -> int:
        """Bytes of audio held."""
        return self._shelf.size

    def previous_id(self, item_id: str) -> str | None:
        """The item before this one; None for the first. Places kept for a response do not count."""
        key = self._order.before(item_id)
        while isinstance(key, _Slot):
            key = self._order.before(key)
        return key

    def render(self, item_id: str, *, audio: bool = False) -> Item:
        """The item as it stands, with or without its audio.

        Raises ``ProtocolError`` ``item_retrieve_invalid_item_id`` when there is none.
        """
        record = self._find(item_id, ErrorCode.ITEM_RETRIEVE_INVALID_ITEM_ID)
        return record.render(self._shelf if audio else None)

    def snapshot(self) -> tuple[Item, ...]:
        """All items in order, without audio."""
        return tuple(self._records[item_id].render(None) for item_id in self)

    def history(self, heard: Heard) -> tuple[HistoryItem, ...]:
        """What a model may see: answers as far as they were heard, results directly behind their calls.

        Left out: answers of which nothing was heard, calls whose arguments are not complete, results whose
        call was deleted.
        """
        entries = (self._seen(item_id, heard) for item_id in self)
        return results_behind_calls([entry for entry in entries if entry is not None])

    # ------------------------------------------------------------------ inside

    def _seen(self, item_id: str, heard: Heard) -> HistoryItem | None:
        record = self._records[item_id]
        return record.history(self._shelf) if isinstance(record, Given) else record.history(heard(item_id))

    def _find(self, item_id: str, code: ErrorCode) -> Record:
        record = self._records.get(item_id)
        if record is None:
            raise ProtocolError(code, f"item_id: there is no item {item_id}", param="item_id")
        return record

    def _generated(self, item_id: str) -> Generated | None:
        record = self._records.get(item_id)
        return record if isinstance(record, Generated) else None

    def _open(self, response_id: str, record: Generated) -> None:
        self._order.insert(record.head.id, self._order.before(_Slot(response_id)))
        self._records[record.head.id] = record


def results_behind_calls(entries: Sequence[HistoryItem]) -> tuple[HistoryItem, ...]:
    """``entries`` with every result directly behind its call; a result whose call is missing is left out."""
    results: dict[str | None, list[HistoryItem]] = {}
    for entry in entries:
        if entry.type == RESULT:
            results.setdefault(entry.call_id, []).append(entry)
    history: list[HistoryItem] = []
    for entry in entries:
        if entry.type != RESULT:
            history.append(entry)
        if entry.type == CALL:
            history += results.get(entry.call_id, ())
    return tuple(history)
