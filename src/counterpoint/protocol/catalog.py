"""What is known of every event type: the one table that purge, replay, projection and durability read.

Owns: ``EventSpec`` for every type in ``events``.
Does not own: acting on it (``delivery``, ``projection``, ``testing``).
Here because: two tables of event types would disagree one day (design, "The session core").
"""

from __future__ import annotations

import enum
from typing import get_args

import msgspec

from . import events
from .events import Event


class Fence(enum.Enum):
    """By what a pending entry becomes stale, if it does.

    ``EPOCH``: by an interruption of the response that it belongs to (an entry that belongs to none, such as
    a user's item, does not). An out-of-band response dies by its own id alone, whatever the epoch.
    """

    EPOCH = "epoch"
    ITEM = "item"  #: work on input: by its item
    RESPONSE = "response"  #: about a response, and outlives its interruption
    SESSION = "session"  #: never, while the session lives
    NONE = "none"  #: not in the log


class Nature(enum.Enum):
    """What an event is to a history rebuilt from events."""

    FACT = "fact"  #: durable before it is handed to a transport
    DELTA = "delta"  #: a piece of a response's stream, its openings included; written behind
    TERMINAL = "terminal"  #: closes a part or an item of a response, or a session
    NOTICE = "notice"  #: worth knowing, no part of any state


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    id: int  #: small and dense, for compact arrays; not stable over versions
    fence: Fence
    nature: Nature
    official: bool  #: known to stock clients
    connection_scoped: bool  #: no number, no replay; ``error`` is too, if its frame carried no number
    audio: bool  #: carries audio

    @property
    def droppable(self) -> bool:
        """Whether a replay policy may pass it over: audio only; text and terminals are always sent again."""
        return self.audio


def _type(event: type[events.BaseEvent]) -> str:
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


_Row = tuple[type[events.BaseEvent], Fence, Nature]

_OFFICIAL: tuple[_Row, ...] = (
    (events.SessionUpdated, Fence.SESSION, Nature.FACT),
    (events.Error, Fence.SESSION, Nature.NOTICE),
    (events.InputCommitted, Fence.ITEM, Nature.FACT),
    (events.InputCleared, Fence.SESSION, Nature.NOTICE),
    (events.SpeechStarted, Fence.ITEM, Nature.NOTICE),
    (events.SpeechStopped, Fence.ITEM, Nature.NOTICE),
    (events.InputTimeout, Fence.ITEM, Nature.NOTICE),
    (events.ItemAdded, Fence.EPOCH, Nature.FACT),
    (events.ItemDone, Fence.EPOCH, Nature.FACT),
    (events.ItemRetrieved, Fence.ITEM, Nature.NOTICE),
    (events.ItemDeleted, Fence.ITEM, Nature.FACT),
    (events.ItemTruncated, Fence.ITEM, Nature.FACT),
    (events.TranscriptionDelta, Fence.ITEM, Nature.DELTA),
    (events.TranscriptionCompleted, Fence.ITEM, Nature.FACT),
    (events.TranscriptionFailed, Fence.ITEM, Nature.NOTICE),
    (events.ResponseCreated, Fence.RESPONSE, Nature.FACT),
    (events.ResponseDone, Fence.RESPONSE, Nature.FACT),
    (events.OutputItemAdded, Fence.EPOCH, Nature.DELTA),
    (events.OutputItemDone, Fence.EPOCH, Nature.TERMINAL),
    (events.ContentPartAdded, Fence.EPOCH, Nature.DELTA),
    (events.ContentPartDone, Fence.EPOCH, Nature.TERMINAL),
    (events.OutputTextDelta, Fence.EPOCH, Nature.DELTA),
    (events.OutputTextDone, Fence.EPOCH, Nature.TERMINAL),
    (events.OutputAudioDelta, Fence.EPOCH, Nature.DELTA),
    (events.OutputAudioDone, Fence.EPOCH, Nature.TERMINAL),
    (events.OutputTranscriptDelta, Fence.EPOCH, Nature.DELTA),
    (events.OutputTranscriptDone, Fence.EPOCH, Nature.TERMINAL),
    (events.ArgumentsDelta, Fence.EPOCH, Nature.DELTA),
    (events.ArgumentsDone, Fence.EPOCH, Nature.FACT),
    (events.RateLimitsUpdated, Fence.SESSION, Nature.NOTICE),
    (events.OutputStarted, Fence.RESPONSE, Nature.NOTICE),
    (events.OutputStopped, Fence.RESPONSE, Nature.NOTICE),
    (events.OutputCleared, Fence.RESPONSE, Nature.NOTICE),
)

_EXTENSIONS: tuple[_Row, ...] = (
    (events.SessionClosed, Fence.SESSION, Nature.TERMINAL),
    (events.SessionExpired, Fence.SESSION, Nature.TERMINAL),
    (events.SessionExpiring, Fence.SESSION, Nature.NOTICE),
    (events.OverlapDecision, Fence.SESSION, Nature.NOTICE),
    (events.ResponseSpeak, Fence.EPOCH, Nature.NOTICE),
    (events.ResponseListen, Fence.RESPONSE, Nature.NOTICE),
    (events.PlaybackAcknowledged, Fence.RESPONSE, Nature.NOTICE),
)

_CONNECTION: tuple[_Row, ...] = (
    (events.SessionCreated, Fence.NONE, Nature.FACT),
    (events.SessionResumed, Fence.NONE, Nature.NOTICE),
    (events.SessionSnapshot, Fence.NONE, Nature.NOTICE),
    (events.SessionSkipped, Fence.NONE, Nature.NOTICE),
    (events.SessionReplaced, Fence.NONE, Nature.NOTICE),
    (events.HeartbeatAcknowledged, Fence.NONE, Nature.NOTICE),
    (events.InputAcknowledged, Fence.NONE, Nature.NOTICE),
    (events.SessionGoAway, Fence.NONE, Nature.NOTICE),
    (events.SessionQueued, Fence.NONE, Nature.NOTICE),
)


def _specs() -> tuple[EventSpec, ...]:
    return tuple(
        EventSpec(
            type=_type(event),
            id=number,
            fence=fence,
            nature=nature,
            official=(event, fence, nature) in _OFFICIAL or event is events.SessionCreated,
            connection_scoped=(event, fence, nature) in _CONNECTION,
            audio=event is events.OutputAudioDelta,
        )
        for number, (event, fence, nature) in enumerate(_OFFICIAL + _EXTENSIONS + _CONNECTION)
    )


#: Every spec; ``SPECS[spec.id] is spec``.
SPECS: tuple[EventSpec, ...] = _specs()

#: The same by the wire's event type.
CATALOG: dict[str, EventSpec] = {spec.type: spec for spec in SPECS}

_BY_CLASS: dict[type[events.BaseEvent], EventSpec] = {
    event: CATALOG[_type(event)] for event in get_args(Event)
}


def spec_of(event: Event) -> EventSpec:
    """The spec of an event's type."""
    return _BY_CLASS[type(event)]
