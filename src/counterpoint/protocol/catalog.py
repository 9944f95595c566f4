"""What is known of every event type: the one table that purge, replay, projection and durability read.

Owns: ``EventKind`` for every type in ``events``.
Does not own: acting on it (``delivery``, ``projection``, ``store``, ``testing``).
Here because: two tables of event types would disagree one day (design, "The session core").
"""

from __future__ import annotations

import enum
from typing import get_args

import msgspec

from . import events
from .events import BaseEvent, Event


class Fence(enum.Enum):
    """With what a pending entry (one that no transport was handed) dies."""

    EPOCH = (
        "epoch"  #: with its response, when that is interrupted (out of band: when that alone is cancelled)
    )
    ITEM = "item"  #: with its item: an opening of one not yet announced, or work on input
    RESPONSE = "response"  #: about a response as a whole, and outlives its interruption
    SESSION = "session"  #: with the session
    NONE = "none"  #: not in the log


class Nature(enum.Enum):
    """What an event is to a history rebuilt from events."""

    FACT = "fact"  #: durable before it is handed to a transport
    DELTA = "delta"  #: a piece of a stream, or the opening of one; written behind
    TERMINAL = "terminal"  #: closes a part or an item of a response, or a session
    NOTICE = "notice"  #: worth knowing, no part of any state


class EventKind(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    id: int  #: small and dense, for compact arrays; not stable over versions
    fence: Fence
    nature: Nature
    official: bool  #: known to stock clients
    connection_scoped: bool  #: no number, no replay; ``error`` is too, if its frame carried no number
    audio: bool  #: carries audio

    @property
    def discarded(self) -> bool:
        """Whether an interruption of its response removes it while it is pending."""
        return self.fence is Fence.EPOCH

    @property
    def droppable(self) -> bool:
        """Whether a replay policy may pass it over: audio only; text and terminals are always sent again."""
        return self.audio


_Rows = dict[type[BaseEvent], tuple[Fence, Nature]]

_OFFICIAL: _Rows = {
    events.SessionUpdated: (Fence.SESSION, Nature.FACT),
    events.Error: (Fence.SESSION, Nature.NOTICE),
    events.InputCommitted: (Fence.ITEM, Nature.FACT),
    events.InputCleared: (Fence.SESSION, Nature.NOTICE),
    events.SpeechStarted: (Fence.ITEM, Nature.NOTICE),
    events.SpeechStopped: (Fence.ITEM, Nature.NOTICE),
    events.InputTimeout: (Fence.ITEM, Nature.NOTICE),
    events.ItemAdded: (Fence.ITEM, Nature.FACT),
    events.ItemDone: (Fence.EPOCH, Nature.FACT),
    events.ItemRetrieved: (Fence.ITEM, Nature.NOTICE),
    events.ItemDeleted: (Fence.ITEM, Nature.FACT),
    events.ItemTruncated: (Fence.ITEM, Nature.FACT),
    events.TranscriptionDelta: (Fence.ITEM, Nature.DELTA),
    events.TranscriptionCompleted: (Fence.ITEM, Nature.FACT),
    events.TranscriptionFailed: (Fence.ITEM, Nature.NOTICE),
    events.ResponseCreated: (Fence.RESPONSE, Nature.FACT),
    events.ResponseDone: (Fence.RESPONSE, Nature.FACT),
    events.OutputItemAdded: (Fence.ITEM, Nature.DELTA),
    events.OutputItemDone: (Fence.EPOCH, Nature.TERMINAL),
    events.ContentPartAdded: (Fence.ITEM, Nature.DELTA),
    events.ContentPartDone: (Fence.EPOCH, Nature.TERMINAL),
    events.OutputTextDelta: (Fence.EPOCH, Nature.DELTA),
    events.OutputTextDone: (Fence.EPOCH, Nature.TERMINAL),
    events.OutputAudioDelta: (Fence.EPOCH, Nature.DELTA),
    events.OutputAudioDone: (Fence.EPOCH, Nature.TERMINAL),
    events.OutputTranscriptDelta: (Fence.EPOCH, Nature.DELTA),
    events.OutputTranscriptDone: (Fence.EPOCH, Nature.TERMINAL),
    events.ArgumentsDelta: (Fence.EPOCH, Nature.DELTA),
    events.ArgumentsDone: (Fence.EPOCH, Nature.FACT),
    events.RateLimitsUpdated: (Fence.SESSION, Nature.NOTICE),
    events.OutputStarted: (Fence.RESPONSE, Nature.NOTICE),
    events.OutputStopped: (Fence.RESPONSE, Nature.NOTICE),
    events.OutputCleared: (Fence.RESPONSE, Nature.NOTICE),
}

_EXTENSIONS: _Rows = {
    events.SessionClosed: (Fence.SESSION, Nature.TERMINAL),
    events.SessionExpired: (Fence.SESSION, Nature.TERMINAL),
    events.SessionExpiring: (Fence.SESSION, Nature.NOTICE),
    events.OverlapDecision: (Fence.SESSION, Nature.NOTICE),
    events.ResponseSpeak: (Fence.RESPONSE, Nature.NOTICE),
    events.ResponseListen: (Fence.RESPONSE, Nature.NOTICE),
    events.PlaybackAcknowledged: (Fence.RESPONSE, Nature.NOTICE),
}

_CONNECTION_SCOPED: _Rows = {
    events.SessionCreated: (Fence.NONE, Nature.FACT),
    events.SessionResumed: (Fence.NONE, Nature.NOTICE),
    events.SessionSnapshot: (Fence.NONE, Nature.NOTICE),
    events.SessionSkipped: (Fence.NONE, Nature.NOTICE),
    events.SessionReplaced: (Fence.NONE, Nature.NOTICE),
    events.HeartbeatAcknowledged: (Fence.NONE, Nature.NOTICE),
    events.InputAcknowledged: (Fence.NONE, Nature.NOTICE),
    events.SessionGoAway: (Fence.NONE, Nature.NOTICE),
    events.SessionQueued: (Fence.NONE, Nature.NOTICE),
}


def _kinds() -> dict[type[BaseEvent], EventKind]:
    rows = (_OFFICIAL | _EXTENSIONS | _CONNECTION_SCOPED).items()
    return {
        event: EventKind(
            type=str(event.__struct_config__.tag),
            id=number,
            fence=fence,
            nature=nature,
            official=event in _OFFICIAL or event is events.SessionCreated,
            connection_scoped=event in _CONNECTION_SCOPED,
            audio=event is events.OutputAudioDelta,
        )
        for number, (event, (fence, nature)) in enumerate(rows)
    }


_BY_CLASS = _kinds()

#: Every kind, by the wire's event type; in the order of their ids.
CATALOG: dict[str, EventKind] = {kind.type: kind for kind in _BY_CLASS.values()}

assert set(_BY_CLASS) == set(get_args(Event)), "an event type without a line in the catalog"


def kind_of(event: Event) -> EventKind:
    """What is known of an event's type."""
    return _BY_CLASS[type(event)]
