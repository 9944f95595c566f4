"""The session extensions as JSON schemas: our events, and what is added to official ones.

Owns: every key and value that only extended connections see (wire contract, sections 2 to 7).
Does not own: the official schemas (``official.json``), when an event is sent.
Here because: other servers and clients that speak the extensions need their form in one readable place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterpoint.protocol.codes import CLOSED_REASONS, EXPIRED_REASONS

Properties = Mapping[str, Any]

STRING = {"type": "string"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
ANY_OBJECT = {"type": "object"}


def an_object(required: Properties, optional: Properties | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


PLAYBACK = an_object(dict.fromkeys(("generated_ms", "sent_ms", "played_ms", "committed_ms"), COUNT))

#: The ``duplex`` object on official session events.
DUPLEX = an_object(
    {"epoch": COUNT, "turn_id": COUNT},
    {
        "audio_duration_ms": COUNT,
        "audio_text_marks": {
            "type": "array",
            "items": an_object({"audio_ms": COUNT, "text_chars": COUNT}),
        },
        "playback": PLAYBACK,
        "reason": STRING,
        "continues": STRING,
    },
)

CAPABILITIES = an_object(
    {
        "interaction": one_of("frame", "unit", "turn", "remote"),
        "unit_ms": or_null(NUMBER),
        "supports_barge_in": BOOLEAN,
        "supports_session_resume": BOOLEAN,
        "supports_audio_truncate": BOOLEAN,
        "supports_text_input": BOOLEAN,
        "supports_video_input": BOOLEAN,
        "supports_tools": BOOLEAN,
        "input_audio_formats": {"type": "array", "items": STRING},
        "output_audio_formats": {"type": "array", "items": STRING},
        "max_sessions": or_null(POSITIVE),
    }
)

#: Extra keys of ``session``.
SESSION = {
    "state": one_of("open", "closing", "closed"),
    "turn_state": STRING,
    "epoch": COUNT,
    "turn_id": COUNT,
    "active_response_id": or_null(STRING),
    "capabilities": CAPABILITIES,
    "overlap_policy": or_null(one_of("listen_only", "barge_in_on_speech", "graded")),
    "overlap_short_ack_ms": COUNT,
    "overlap_barge_in_ms": COUNT,
    "overlap_silence_rms": NUMBER,
    "playback_commit_policy": one_of("ack_only", "commit_all_on_done", "auto"),
    "playback": PLAYBACK,
    "idle_timeout_s": or_null(NUMBER),
    "extra_body": ANY_OBJECT,
}

#: Extra keys of ``turn_detection``.
TURN_DETECTION = {"min_speech_ms": COUNT, "false_interruption_ms": COUNT, "detector": or_null(STRING)}

#: Encodings and rates that stock connections cannot ask for.
AUDIO_FORMAT = an_object({"type": one_of("audio/pcm", "pcm_f32le")}, {"rate": POSITIVE})

#: Extra keys of ``error``, which everybody gets.
ERROR = {"retry_after_ms": COUNT, "expected": POSITIVE}

#: What the published models leave out of a session and every known server says.
UNPUBLISHED_SESSION = {"id": STRING, "object": STRING, "expires_at": or_null(COUNT)}

#: Our additions to official events that everybody gets.
NUMBER_KEY = {"server_event_seq": POSITIVE}
CREATED = {"resume_token": STRING, "attachment_generation": POSITIVE}

#: The session object, official and extended like that of ``session.created``.
ANY_SESSION = {
    "anyOf": [
        {"$ref": "#/defs/RealtimeSessionCreateRequest"},
        {"$ref": "#/defs/RealtimeTranscriptionSessionCreateRequest"},
    ]
}

#: Events of the connection: they have no number.
CONNECTION_EVENTS: dict[str, Properties] = {
    "session.resumed": {
        "session_id": STRING,
        "session": ANY_SESSION,
        "attachment_generation": POSITIVE,
        "resume_token": STRING,
        "replay": an_object(
            {
                "from": or_null(POSITIVE),
                "to": or_null(POSITIVE),
                "gap": BOOLEAN,
                "dropped_audio_events": COUNT,
            }
        ),
        "last_client_event_seq": COUNT,
        "input_audio_ms": COUNT,
    },
    "session.snapshot": {
        "as_of_server_event_seq": COUNT,
        "session": ANY_OBJECT,
        "conversation": an_object({"items": {"type": "array", "items": ANY_OBJECT}}),
        "active_response": or_null(ANY_OBJECT),
        "playback": PLAYBACK,
    },
    "session.skipped": {
        "from": POSITIVE,
        "to": POSITIVE,
        "reason": one_of("interrupted", "replay_policy"),
    },
    "session.replaced": {"session_id": STRING, "attachment_generation": POSITIVE},
    "session.heartbeat_ack": {"session_id": STRING},
    "session.input_ack": {"client_event_seq": POSITIVE, "input_audio_ms": COUNT},
    "session.go_away": {"reason": STRING, "deadline_ms": COUNT},
    "session.queued": {"position": COUNT, "eta_ms": or_null(COUNT)},
}

#: Events of the session: numbered and replayed.
SESSION_EVENTS: dict[str, Properties] = {
    "session.closed": {"session_id": STRING, "reason": one_of(*CLOSED_REASONS)},
    "session.expired": {"session_id": STRING, "reason": one_of(*EXPIRED_REASONS)},
    "session.expiring": {"in_ms": COUNT, "reason": one_of("max_duration", "context_limit")},
    "overlap.decision": {
        "policy": STRING,
        "action": one_of("drop", "listen", "barge_in"),
        "reason": STRING,
        "metadata": ANY_OBJECT,
    },
    "response.speak": {"response_id": STRING},
    "response.listen": {"reason": STRING},
    "playback.acknowledged": {
        "response_id": STRING,
        "item_id": STRING,
        "playback": PLAYBACK,
        "history_committed": BOOLEAN,
    },
}

#: Keys that such events may do without: outside of any response ``response.listen`` names none.
OPTIONAL: dict[str, Properties] = {"response.listen": {"response_id": STRING}}
