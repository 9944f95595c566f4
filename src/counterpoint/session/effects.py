"""Everything that a session machine can ask for. The runner performs it and decides nothing.

Owns: the closed union ``Effect`` and ``Tag``, by which delivery reports back.
Does not own: how an effect is carried out (``runtime.runner``, ``delivery``).
Here because: what a step did is a value that tests compare and recordings keep.

Effects of one step are carried out in order and without an await in between: no entry of the log can be
handed to a transport between two of them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from counterpoint.plugins.contract import Fence, ResponseRequest, StepInput
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.events import Duplex, Event


class Progress(enum.IntEnum):
    """How far an entry takes its item. Entries of an item are written, and handed over, in this order."""

    CREATED = 0  #: no item yet: the response itself
    ADDED = 1  #: ``response.output_item.added``
    LISTED = 2  #: ``conversation.item.added``
    PART_ADDED = 3
    DELTA = 4
    AUDIO_DONE = 5
    TEXT_DONE = 6  #: of text, or of a transcript
    ARGUMENTS_DONE = 7
    PART_DONE = 8
    DONE = 9  #: ``response.output_item.done``
    LISTED_DONE = 10  #: ``conversation.item.done``


class Tag(msgspec.Struct, frozen=True, gc=False):
    """What delivery hands back, synchronously, in the moment an entry is handed to a transport (or evicted).

    ``samples`` and ``chars`` are where the part stands after this entry: the ledger's ``sent`` position.
    ``gc=False``: retained entries keep their tags, and the collector need not visit them.
    """

    response_id: str | None = None
    item_id: str | None = None
    content_index: int = 0
    samples: int = 0  #: of the part, at the rate of the session's output format
    chars: int = 0
    progress: Progress = Progress.CREATED


@dataclass(frozen=True, slots=True)
class Emit:
    """A session event: goes into the log, is numbered when taken. Extended connections see ``duplex``."""

    event: Event
    event_id: str
    duplex: Duplex | None = None
    tag: Tag | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A connection-scoped event for the attachment that is current; dropped when there is none."""

    event: Event
    event_id: str


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove from the log what is pending of a response: its deltas and terminals, and everything of
    ``items`` (those not yet announced). Its retained audio is passed over by replays from now on."""

    response_id: str
    items: frozenset[str]


@dataclass(frozen=True, slots=True)
class Detect:
    """Find speech in ``pcm`` (24 kHz). Answered by ``Detected`` with the same ``chunk``, in order."""

    chunk: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class UseDetector:
    """From the next ``Detect`` on use this detector (None: the server's default), with fresh state."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CheckTurn:
    """Ask the turn model about the utterance so far (``pcm``, 24 kHz). Answered by ``TurnChecked``."""

    check: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class Push:
    step: StepInput


@dataclass(frozen=True, slots=True)
class Prepare:
    request: ResponseRequest


@dataclass(frozen=True, slots=True)
class Respond:
    request: ResponseRequest


@dataclass(frozen=True, slots=True)
class Forget:
    input: int


@dataclass(frozen=True, slots=True)
class UpdateModel:
    config: SessionConfig


@dataclass(frozen=True, slots=True)
class TruncateModel:
    fence: Fence
    chars: int
    samples: int


@dataclass(frozen=True, slots=True)
class CancelModel:
    """Overtakes everything queued for the model; what is queued of ``old`` and older is not submitted."""

    old: Fence
    new: Fence


@dataclass(frozen=True, slots=True)
class AbortResponse:
    """Overtakes everything queued for the model; ends one (out-of-band) response."""

    fence: Fence


@dataclass(frozen=True, slots=True)
class ReopenModel:
    """Give up the model side, which is lost, and open another; what follows is for that one.

    Answered like the first opening, by ``ModelOpened`` or ``ModelOpenFailed``.
    """


@dataclass(frozen=True, slots=True)
class CloseModel:
    """Clean up the model side, bounded by ``limits.cleanup_timeout_s``. Answered by ``CleanedUp``."""


@dataclass(frozen=True, slots=True)
class EndSession:
    """The terminal event was emitted; flush, close the connection with ``close_code``, forget the session."""

    reason: str
    close_code: int


Effect = (
    Emit
    | Reply
    | Discard
    | Detect
    | UseDetector
    | CheckTurn
    | Push
    | Prepare
    | Respond
    | Forget
    | UpdateModel
    | TruncateModel
    | CancelModel
    | AbortResponse
    | ReopenModel
    | CloseModel
    | EndSession
)
