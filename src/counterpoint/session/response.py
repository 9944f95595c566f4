"""One running response and its items: what was written of them, and what a transport took.

Owns: ``RunningResponse``, ``OutputItem``, ``Outcome``; how each is shown on the wire.
Does not own: writing events (``output``), when a response starts and ends (``responses``).
Here because: an interruption must say exactly what was handed over, and the difference between written and
handed over is all that is needed for it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from counterpoint.audio.encoder import OutputEncoder
from counterpoint.plugins.contract import AudioDelta, Fence, ItemEnd, TextDelta, ToolCall, TurnStatus, Usage
from counterpoint.protocol.codes import ErrorClass
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.events import (
    InputTokenDetails,
    OutputTokenDetails,
    Part,
    Response,
    ResponseUsage,
    StatusDetails,
    StatusError,
    TextMark,
)
from counterpoint.protocol.formats import write_format
from counterpoint.protocol.items import FunctionCall, Item, ItemStatus, Message, OutputAudio, OutputText, Role

from .effects import Progress, Tag

#: What a model says in a response, its end aside.
Output = AudioDelta | TextDelta | ItemEnd | ToolCall


class Kind(enum.Enum):
    """What an item is; decides which events it has."""

    SPOKEN = enum.auto()
    TEXT = enum.auto()
    CALL = enum.auto()


#: The events that end an item, in order. All items also have ``ADDED`` and ``LISTED`` before their content.
_TERMINALS: dict[Kind, tuple[Progress, ...]] = {
    Kind.SPOKEN: (
        Progress.AUDIO_DONE,
        Progress.TEXT_DONE,
        Progress.PART_DONE,
        Progress.DONE,
        Progress.LISTED_DONE,
    ),
    Kind.TEXT: (Progress.TEXT_DONE, Progress.PART_DONE, Progress.DONE, Progress.LISTED_DONE),
    Kind.CALL: (Progress.ARGUMENTS_DONE, Progress.DONE, Progress.LISTED_DONE),
}


@dataclass(slots=True)
class OutputItem:
    """An item of a response. Positions are samples of the response's output rate, and characters."""

    id: str
    index: int  #: ``output_index``
    kind: Kind
    call_id: str = ""
    name: str = ""
    call_index: int = 0  #: the model's, which tells parallel calls apart
    encoder: OutputEncoder | None = None
    status: ItemStatus = ItemStatus.IN_PROGRESS
    text: str = ""  #: transcript, text or arguments written so far
    samples: int = 0
    #: Marks of text whose audio has not been written yet.
    marks: list[TextMark] = field(default_factory=list)
    #: A later item was announced as coming after this one, so it may not vanish.
    pinned: bool = False
    handed: Progress = Progress.CREATED
    handed_samples: int = 0
    handed_chars: int = 0

    @property
    def announced(self) -> bool:
        return self.handed >= Progress.ADDED

    @property
    def open(self) -> bool:
        return self.status is ItemStatus.IN_PROGRESS

    def accept(self, tag: Tag) -> None:
        """An entry of this item was handed to a transport."""
        self.handed = max(self.handed, tag.progress)
        self.handed_samples = max(self.handed_samples, tag.samples)
        self.handed_chars = max(self.handed_chars, tag.chars)

    def cut(self) -> None:
        """Interrupted: what was not handed over never was. Once announced as done, it stays as it is."""
        if self.handed >= Progress.DONE:
            return
        self.text = self.text[: self.handed_chars]
        self.samples = self.handed_samples
        self.status = ItemStatus.INCOMPLETE

    def terminals(self, after: Progress = Progress.CREATED) -> Iterable[Progress]:
        """The events that end the item, those up to ``after`` aside.

        No audio event without audio (case D-12); the arguments of an incomplete call are never announced as
        done (case G-05).
        """
        for progress in _TERMINALS[self.kind]:
            if progress <= after:
                continue
            if progress is Progress.AUDIO_DONE and not self.samples:
                continue
            if progress is Progress.ARGUMENTS_DONE and self.status is ItemStatus.INCOMPLETE:
                continue
            yield progress

    def tag(self, response_id: str, progress: Progress) -> Tag:
        """The tag of an entry that is written now."""
        return Tag(response_id, self.id, 0, self.samples, len(self.text), progress)

    def part(self, *, empty: bool = False) -> Part:
        text = "" if empty else self.text
        return Part("audio", transcript=text) if self.kind is Kind.SPOKEN else Part("text", text=text)

    def render(self, *, empty: bool = False) -> Item:
        """The item as events show it; ``empty`` at its beginning, before it has content."""
        if self.kind is Kind.CALL:
            arguments = "" if empty else self.text
            return FunctionCall(
                id=self.id, status=self.status, call_id=self.call_id, name=self.name, arguments=arguments
            )
        part = OutputAudio(transcript=self.text) if self.kind is Kind.SPOKEN else OutputText(self.text)
        content = () if empty else (part,)
        return Message(id=self.id, status=self.status, role=Role.ASSISTANT, content=content)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a response ends: its status on the wire and why."""

    status: str
    details: StatusDetails | None = None

    @property
    def item_status(self) -> ItemStatus:
        """Of an item that is still open then."""
        return ItemStatus.COMPLETED if self.status == "completed" else ItemStatus.INCOMPLETE

    @classmethod
    def completed(cls) -> Outcome:
        return cls("completed")

    @classmethod
    def cancelled(cls, reason: str | None) -> Outcome:
        return cls("cancelled", StatusDetails(type="cancelled", reason=reason))

    @classmethod
    def incomplete(cls, reason: str) -> Outcome:
        return cls("incomplete", StatusDetails(type="incomplete", reason=reason))

    @classmethod
    def failed(cls, code: str) -> Outcome:
        return cls("failed", StatusDetails(type="failed", error=StatusError(ErrorClass.SERVER, code)))

    @classmethod
    def of_turn(cls, status: TurnStatus) -> Outcome:
        return cls.completed() if status is TurnStatus.COMPLETED else cls.incomplete(status.value)


@dataclass(slots=True)
class RunningResponse:
    """A response from ``response.created`` to ``response.done``."""

    id: str
    fence: Fence
    config: SessionConfig  #: the session's, with the response's own options laid over it
    conversation_id: str | None  #: None: out of band
    metadata: dict[str, Any] | None
    started_at: float
    last_output_at: float
    items: list[OutputItem] = field(default_factory=list)
    #: Output that belongs behind the call that is being written: items come one after the other.
    waiting: list[Output] = field(default_factory=list)
    #: Entries in the log that no transport has taken.
    pending: int = 0
    #: None while the model generates.
    outcome: Outcome | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def out_of_band(self) -> bool:
        return self.conversation_id is None

    @property
    def speaks(self) -> bool:
        return self.config.output_modalities == ("audio",)

    @property
    def current(self) -> OutputItem | None:
        """The item that is being written."""
        return self.items[-1] if self.items and self.items[-1].open else None

    @property
    def drained(self) -> bool:
        """Generation is over and all of it was handed over: only ``response.done`` is missing."""
        return self.outcome is not None and not self.pending

    @property
    def samples(self) -> int:
        """Of all items, at the rate of the output format."""
        return sum(item.samples for item in self.items)

    def accept(self, tag: Tag) -> OutputItem | None:
        """An entry was handed to a transport; returns the item that it was about."""
        self.pending -= 1
        for item in self.items:
            if item.id == tag.item_id:
                item.accept(tag)
                return item
        return None

    def vanishing(self) -> list[OutputItem]:
        """The items that an interruption removes: the last ones, never announced and named by nobody."""
        count = len(self.items)
        while count and not (self.items[count - 1].announced or self.items[count - 1].pinned):
            count -= 1
        return self.items[count:]

    def render(self) -> Response:
        output = self.config.audio.output
        limit = self.config.max_output_tokens
        audio = {"output": {"format": write_format(output.format), "voice": output.voice}}
        done = self.outcome is not None
        return Response(
            id=self.id,
            status=self.outcome.status if self.outcome else "in_progress",
            status_details=self.outcome.details if self.outcome else None,
            output=tuple(item.render() for item in self.items),
            conversation_id=self.conversation_id,
            output_modalities=self.config.output_modalities,
            max_output_tokens="inf" if limit is None else limit,
            audio=audio,
            usage=_usage(self.usage) if done else None,
            metadata=self.metadata,
        )


@dataclass(frozen=True, slots=True)
class Unheard:
    """The rest of response ``response_id``: text and audio (in its output format) of its messages."""

    response_id: str
    config: SessionConfig
    parts: tuple[tuple[str, bytes], ...]


def _usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        input_token_details=InputTokenDetails(
            text_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens
        ),
        output_token_details=OutputTokenDetails(text_tokens=usage.output_tokens),
    )
