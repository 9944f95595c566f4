"""One example of every event that the server can say, and a session object to put into them."""

from __future__ import annotations

from typing import Any

from counterpoint.protocol import events
from counterpoint.protocol.config import SessionConfig, render
from counterpoint.protocol.events import Duplex, ErrorDetail, Event, PlaybackPositions, Response, TextMark
from counterpoint.protocol.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemStatus,
    Message,
    OutputAudio,
    OutputText,
    Role,
)

#: What is not configuration, as a session shows it.
LIVE: dict[str, Any] = {
    "id": "sess_1",
    "object": "realtime.session",
    "expires_at": None,
    "state": "open",
    "epoch": 3,
    "capabilities": {"interaction": "turn"},
}

SESSION = render(SessionConfig(model="gpt-realtime"), extended=True, live=LIVE)

ITEMS: tuple[Item, ...] = (
    Message(id="item_1", role=Role.SYSTEM, content=(InputText("be brief"),)),
    Message(
        id="item_2",
        role=Role.USER,
        content=(
            InputText("look"),
            InputAudio(b"\x00\x01", "hello"),
            InputImage("data:image/png;base64,AAAA"),
        ),
    ),
    Message(
        id="item_3",
        status=ItemStatus.INCOMPLETE,
        role=Role.ASSISTANT,
        content=(OutputAudio(transcript="well"), OutputText("well")),
    ),
    FunctionCall(id="item_4", call_id="call_1", name="clock", arguments="{}"),
    FunctionCallOutput(id="item_5", call_id="call_1", output="noon"),
)

RESPONSE = Response(
    id="resp_1",
    status="cancelled",
    status_details=events.StatusDetails(type="cancelled", reason="turn_detected"),
    output=ITEMS[2:4],
    conversation_id="conv_1",
    audio={"output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"}},
    usage=events.ResponseUsage(total_tokens=7, input_tokens=3, output_tokens=4),
    metadata={"topic": "time"},
)

DUPLEX = Duplex(
    epoch=3,
    turn_id=2,
    audio_duration_ms=20,
    audio_text_marks=(TextMark(20, 4),),
    playback=PlaybackPositions(80, 60, 40, 40),
)

_PART: dict[str, Any] = {"response_id": "resp_1", "item_id": "item_3", "output_index": 0, "content_index": 0}
_CALL: dict[str, Any] = {"response_id": "resp_1", "item_id": "item_4", "output_index": 1, "call_id": "call_1"}
_ERROR = ErrorDetail(
    type="server_error", code="internal_error", message="it broke", event_id="event_client_7"
)

EVENTS: tuple[Event, ...] = (
    events.SessionCreated(session=SESSION, resume_token="secret", attachment_generation=1),
    events.SessionUpdated(session=SESSION),
    events.SessionResumed(
        session_id="sess_1",
        session=SESSION,
        attachment_generation=2,
        resume_token="secret",
        replay=events.ReplaySummary(4, 9),
        last_client_event_seq=50,
        input_audio_ms=1000,
    ),
    events.SessionSnapshot(
        as_of_server_event_seq=9,
        session=SESSION,
        conversation=events.ConversationSnapshot(ITEMS),
        active_response=RESPONSE,
        playback=PlaybackPositions(1, 1, 1, 1),
    ),
    events.SessionSkipped(start=4, end=6, reason="interrupted"),
    events.SessionReplaced(session_id="sess_1", attachment_generation=1),
    events.HeartbeatAcknowledged(session_id="sess_1"),
    events.InputAcknowledged(client_event_seq=50, input_audio_ms=1000),
    events.SessionClosed(session_id="sess_1", reason="client_closed"),
    events.SessionExpired(session_id="sess_1", reason="idle_ttl_expired"),
    events.SessionExpiring(in_ms=30_000, reason="max_duration"),
    events.SessionGoAway(reason="drain", deadline_ms=30_000),
    events.SessionQueued(position=2, eta_ms=None),
    events.Error(error=_ERROR),
    events.InputCommitted(item_id="item_2", previous_item_id=None),
    events.InputCleared(),
    events.SpeechStarted(audio_start_ms=120, item_id="item_2"),
    events.SpeechStopped(audio_end_ms=920, item_id="item_2"),
    events.InputTimeout(audio_start_ms=0, audio_end_ms=0, item_id="item_2"),
    events.OverlapDecision(policy="graded", action="listen", reason="short", metadata={"ms": 300}),
    events.ItemAdded(previous_item_id="item_1", item=ITEMS[1]),
    events.ItemDone(previous_item_id=None, item=ITEMS[0]),
    events.ItemRetrieved(item=ITEMS[2]),
    events.ItemDeleted(item_id="item_2"),
    events.ItemTruncated(item_id="item_3", content_index=0, audio_end_ms=1500),
    events.TranscriptionDelta(item_id="item_2", content_index=0, delta="hel"),
    events.TranscriptionCompleted(
        item_id="item_2", content_index=0, transcript="hello", usage=events.DurationUsage(0.8)
    ),
    events.TranscriptionFailed(
        item_id="item_2",
        content_index=0,
        error=events.TranscriptionError(type="server_error", code="transcription_failed", message="no words"),
    ),
    events.ResponseCreated(response=Response(id="resp_1")),
    events.ResponseDone(response=RESPONSE),
    events.ResponseSpeak(response_id="resp_1"),
    events.ResponseListen(reason="listen"),
    events.OutputItemAdded(response_id="resp_1", output_index=0, item=ITEMS[2]),
    events.OutputItemDone(response_id="resp_1", output_index=1, item=ITEMS[3]),
    events.ContentPartAdded(**_PART, part=events.Part("audio", transcript="")),
    events.ContentPartDone(**_PART, part=events.Part("text", text="well")),
    events.OutputTextDelta(**_PART, delta="we"),
    events.OutputTextDone(**_PART, text="well"),
    events.OutputAudioDelta(**_PART, pcm=b"\x01\x00\xff\x7f"),
    events.OutputAudioDone(**_PART),
    events.OutputTranscriptDelta(**_PART, delta='w"e\\ \u00e9'),
    events.OutputTranscriptDone(**_PART, transcript="well"),
    events.ArgumentsDelta(**_CALL, delta="{"),
    events.ArgumentsDone(**_CALL, name="clock", arguments="{}"),
    events.RateLimitsUpdated(
        rate_limits=({"name": "tokens", "limit": 9, "remaining": 8, "reset_seconds": 1.5},)
    ),
    events.OutputStarted(response_id="resp_1"),
    events.OutputStopped(response_id="resp_1"),
    events.OutputCleared(response_id="resp_1"),
    events.PlaybackAcknowledged(
        response_id="resp_1", item_id="item_3", playback=PlaybackPositions(4, 3, 2, 2), history_committed=True
    ),
)
