"""Everything that a server says, one frozen class per event type.

Owns: the event types, ``Response`` and ``Duplex``, the closed union ``Event``.
Does not own: ids and numbers of events (``codec`` writes the id, ``delivery`` the number), how an event
looks to which connection (``projection``), what is known of its type (``catalog``).
Here because: the session emits facts in one dialect, the official one, with bytes still bytes.

An event encodes (``codec.encode_body``) to its official JSON; None is an explicit null, UNSET is absent.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from counterpoint.errors import ProtocolError

from .codes import ERROR_CLASSES, ErrorCode
from .items import Item

_UNSET = msgspec.UNSET
_Unset = msgspec.UnsetType


class BaseEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every event has: a type."""


# --------------------------------------------------------------------------- values


class PlaybackPositions(msgspec.Struct, frozen=True):
    """Milliseconds of a part's (or the newest response's) audio; each at most the one before it."""

    generated_ms: int = 0
    sent_ms: int = 0
    played_ms: int = 0
    committed_ms: int = 0


class TextMark(msgspec.Struct, frozen=True):
    """By ``audio_ms`` of the part, ``text_chars`` characters of its transcript have been spoken."""

    audio_ms: int
    text_chars: int


class Duplex(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ``duplex`` object that extended connections see on official events.

    Kept apart from the event: both kinds of connection share one encoding of the body.
    """

    epoch: int | _Unset = _UNSET  #: the session's, in the moment the event was written
    turn_id: int | _Unset = _UNSET  #: the model's turn
    audio_duration_ms: int | _Unset = _UNSET  #: of the delta, or of the part when it is done
    audio_text_marks: tuple[TextMark, ...] | _Unset = _UNSET
    playback: PlaybackPositions | _Unset = _UNSET
    reason: str | _Unset = _UNSET
    continues: str | _Unset = _UNSET  #: the response that was falsely interrupted


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """``error`` of an error event. ``event_id`` is the client's, of the event at fault."""

    type: str
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None
    retry_after_ms: int | _Unset = _UNSET
    expected: int | _Unset = _UNSET  #: with ``client_event_gap``: the number that is waited for


class TranscriptionError(msgspec.Struct, frozen=True, kw_only=True):
    """Why input has no transcript; nobody's event is at fault."""

    type: str
    code: str
    message: str
    param: str | None = None


class StatusError(msgspec.Struct, frozen=True):
    type: str
    code: str


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a response ended otherwise than in full."""

    type: str
    reason: str | None = None  #: turn_detected, client_cancelled, max_output_tokens, content_filter
    error: StatusError | None = None


class InputTokenDetails(msgspec.Struct, frozen=True):
    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0


class OutputTokenDetails(msgspec.Struct, frozen=True):
    text_tokens: int = 0
    audio_tokens: int = 0


class ResponseUsage(msgspec.Struct, frozen=True):
    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_token_details: InputTokenDetails = InputTokenDetails()
    output_token_details: OutputTokenDetails = OutputTokenDetails()


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response as the wire shows it. ``status``: in_progress, completed, cancelled, incomplete, failed."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: str = "in_progress"
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    conversation_id: str | None = None  #: None: out of band
    output_modalities: tuple[str, ...] = ("audio",)
    max_output_tokens: int | str = "inf"
    audio: dict[str, Any] | None = None  #: ``{"output": {"format", "voice"}}``
    usage: ResponseUsage | None = None
    metadata: dict[str, Any] | None = None


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A content part as ``response.content_part.*`` shows it: type ``audio`` or ``text``."""

    type: str
    text: str | None = None
    transcript: str | None = None


class ReplaySummary(msgspec.Struct, frozen=True):
    """What a resume sends again: retained numbers after the cursor, None when there are none."""

    start: int | None = msgspec.field(name="from")
    end: int | None = msgspec.field(name="to")
    gap: bool = False
    dropped_audio_events: int = 0


class DurationUsage(msgspec.Struct, frozen=True, tag_field="type", tag="duration"):
    """What a transcription cost: seconds of audio."""

    seconds: float


# --------------------------------------------------------------------------- session


class SessionCreated(BaseEvent, frozen=True, tag="session.created"):
    """``session`` is rendered in full (``config.render(extended=True)``); the projection strips it."""

    session: dict[str, Any]
    resume_token: str
    attachment_generation: int

    def __repr__(self) -> str:
        """Without the token, which must reach no log."""
        return f"SessionCreated(id={self.session.get('id')!r}, generation={self.attachment_generation})"


class SessionUpdated(BaseEvent, frozen=True, tag="session.updated"):
    session: dict[str, Any]  #: rendered in full


class SessionResumed(BaseEvent, frozen=True, tag="session.resumed"):
    session_id: str
    session: dict[str, Any]
    attachment_generation: int
    resume_token: str
    replay: ReplaySummary
    last_client_event_seq: int
    input_audio_ms: int

    def __repr__(self) -> str:
        """Without the token, which must reach no log."""
        return f"SessionResumed(id={self.session_id!r}, generation={self.attachment_generation})"


class ConversationSnapshot(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]  #: without audio


class SessionSnapshot(BaseEvent, frozen=True, tag="session.snapshot"):
    """The state after the last number that was dropped: takes the place of a replay with a gap."""

    as_of_server_event_seq: int
    session: dict[str, Any]  #: in full: a ``session.updated`` may be among what was lost
    conversation: ConversationSnapshot
    active_response: Response | None
    playback: PlaybackPositions


class SessionSkipped(BaseEvent, frozen=True, tag="session.skipped"):
    """Retained numbers that a replay passes over. ``reason``: interrupted, replay_policy."""

    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    reason: str


class SessionReplaced(BaseEvent, frozen=True, tag="session.replaced"):
    session_id: str
    attachment_generation: int  #: of the connection that is told


class HeartbeatAcknowledged(BaseEvent, frozen=True, tag="session.heartbeat_ack"):
    session_id: str


class InputAcknowledged(BaseEvent, frozen=True, tag="session.input_ack"):
    client_event_seq: int
    input_audio_ms: int


class SessionClosed(BaseEvent, frozen=True, tag="session.closed"):
    session_id: str
    reason: str  #: one of ``codes.CLOSED_REASONS``


class SessionExpired(BaseEvent, frozen=True, tag="session.expired"):
    session_id: str
    reason: str  #: one of ``codes.EXPIRED_REASONS``


class SessionExpiring(BaseEvent, frozen=True, tag="session.expiring"):
    in_ms: int
    reason: str  #: max_duration, context_limit


class SessionGoAway(BaseEvent, frozen=True, tag="session.go_away"):
    reason: str
    deadline_ms: int


class SessionQueued(BaseEvent, frozen=True, tag="session.queued"):
    position: int
    eta_ms: int | None


class Error(BaseEvent, frozen=True, tag="error"):
    error: ErrorDetail


def error_event(refusal: ProtocolError) -> Error:
    """The one event that answers a refused command."""
    return Error(
        error=ErrorDetail(
            type=ERROR_CLASSES[ErrorCode(refusal.code)],
            code=refusal.code,
            message=refusal.message,
            param=refusal.param,
            event_id=refusal.event_id,
            retry_after_ms=_UNSET if refusal.retry_after_ms is None else refusal.retry_after_ms,
            expected=_UNSET if refusal.expected is None else refusal.expected,
        )
    )


# --------------------------------------------------------------------------- input


class InputCommitted(BaseEvent, frozen=True, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | None


class InputCleared(BaseEvent, frozen=True, tag="input_audio_buffer.cleared"):
    pass


class SpeechStarted(BaseEvent, frozen=True, tag="input_audio_buffer.speech_started"):
    audio_start_ms: int  #: on the session's input clock
    item_id: str


class SpeechStopped(BaseEvent, frozen=True, tag="input_audio_buffer.speech_stopped"):
    audio_end_ms: int
    item_id: str


class InputTimeout(BaseEvent, frozen=True, tag="input_audio_buffer.timeout_triggered"):
    """``idle_timeout_ms`` passed without speech."""

    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class OverlapDecision(BaseEvent, frozen=True, tag="overlap.decision"):
    policy: str
    action: str  #: drop, listen, barge_in
    reason: str
    metadata: dict[str, Any] = {}


# --------------------------------------------------------------------------- conversation


class ItemAdded(BaseEvent, frozen=True, tag="conversation.item.added"):
    previous_item_id: str | None
    item: Item


class ItemDone(BaseEvent, frozen=True, tag="conversation.item.done"):
    previous_item_id: str | None
    item: Item


class ItemRetrieved(BaseEvent, frozen=True, tag="conversation.item.retrieved"):
    item: Item  #: with audio


class ItemDeleted(BaseEvent, frozen=True, tag="conversation.item.deleted"):
    item_id: str


class ItemTruncated(BaseEvent, frozen=True, tag="conversation.item.truncated"):
    item_id: str
    content_index: int
    audio_end_ms: int


class TranscriptionDelta(BaseEvent, frozen=True, tag="conversation.item.input_audio_transcription.delta"):
    item_id: str
    content_index: int
    delta: str


class TranscriptionCompleted(
    BaseEvent, frozen=True, tag="conversation.item.input_audio_transcription.completed"
):
    item_id: str
    content_index: int
    transcript: str
    usage: DurationUsage


class TranscriptionFailed(BaseEvent, frozen=True, tag="conversation.item.input_audio_transcription.failed"):
    item_id: str
    content_index: int
    error: TranscriptionError


# --------------------------------------------------------------------------- responses


class ResponseCreated(BaseEvent, frozen=True, tag="response.created"):
    response: Response


class ResponseDone(BaseEvent, frozen=True, tag="response.done"):
    response: Response


class ResponseSpeak(BaseEvent, frozen=True, tag="response.speak"):
    """A native model decided to speak."""

    response_id: str


class ResponseListen(BaseEvent, frozen=True, tag="response.listen"):
    """A native model decided to listen; outside any response ``response_id`` is absent."""

    reason: str
    response_id: str | _Unset = _UNSET


class OutputItemAdded(BaseEvent, frozen=True, tag="response.output_item.added"):
    response_id: str
    output_index: int
    item: Item


class OutputItemDone(BaseEvent, frozen=True, tag="response.output_item.done"):
    response_id: str
    output_index: int
    item: Item


class PartEvent(BaseEvent, frozen=True):
    """What every event about one content part carries."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int


class ContentPartAdded(PartEvent, frozen=True, tag="response.content_part.added"):
    part: Part


class ContentPartDone(PartEvent, frozen=True, tag="response.content_part.done"):
    part: Part


class OutputTextDelta(PartEvent, frozen=True, tag="response.output_text.delta"):
    delta: str


class OutputTextDone(PartEvent, frozen=True, tag="response.output_text.done"):
    text: str


class OutputAudioDelta(PartEvent, frozen=True, tag="response.output_audio.delta"):
    pcm: bytes = msgspec.field(name="delta")  #: whole samples in the response's output format

    def __repr__(self) -> str:
        return f"OutputAudioDelta({self.response_id!r}, {self.item_id!r}, {len(self.pcm)} bytes)"


class OutputAudioDone(PartEvent, frozen=True, tag="response.output_audio.done"):
    pass


class OutputTranscriptDelta(PartEvent, frozen=True, tag="response.output_audio_transcript.delta"):
    delta: str


class OutputTranscriptDone(PartEvent, frozen=True, tag="response.output_audio_transcript.done"):
    transcript: str


class ArgumentsDelta(BaseEvent, frozen=True, tag="response.function_call_arguments.delta"):
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


class ArgumentsDone(BaseEvent, frozen=True, tag="response.function_call_arguments.done"):
    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str


class RateLimitsUpdated(BaseEvent, frozen=True, tag="rate_limits.updated"):
    rate_limits: tuple[dict[str, Any], ...] = ()


# --------------------------------------------------------------------------- playback


class OutputStarted(BaseEvent, frozen=True, tag="output_audio_buffer.started"):
    response_id: str


class OutputStopped(BaseEvent, frozen=True, tag="output_audio_buffer.stopped"):
    response_id: str


class OutputCleared(BaseEvent, frozen=True, tag="output_audio_buffer.cleared"):
    response_id: str


class PlaybackAcknowledged(BaseEvent, frozen=True, tag="playback.acknowledged"):
    response_id: str
    item_id: str
    playback: PlaybackPositions
    history_committed: bool


Event = (
    SessionCreated
    | SessionUpdated
    | SessionResumed
    | SessionSnapshot
    | SessionSkipped
    | SessionReplaced
    | HeartbeatAcknowledged
    | InputAcknowledged
    | SessionClosed
    | SessionExpired
    | SessionExpiring
    | SessionGoAway
    | SessionQueued
    | Error
    | InputCommitted
    | InputCleared
    | SpeechStarted
    | SpeechStopped
    | InputTimeout
    | OverlapDecision
    | ItemAdded
    | ItemDone
    | ItemRetrieved
    | ItemDeleted
    | ItemTruncated
    | TranscriptionDelta
    | TranscriptionCompleted
    | TranscriptionFailed
    | ResponseCreated
    | ResponseDone
    | ResponseSpeak
    | ResponseListen
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | OutputTextDone
    | OutputAudioDelta
    | OutputAudioDone
    | OutputTranscriptDelta
    | OutputTranscriptDone
    | ArgumentsDelta
    | ArgumentsDone
    | RateLimitsUpdated
    | OutputStarted
    | OutputStopped
    | OutputCleared
    | PlaybackAcknowledged
)
