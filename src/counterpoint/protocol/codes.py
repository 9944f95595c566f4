"""The numbers and words by which the wire says that something ended or was refused.

Owns: close codes, error codes with their classes, failure codes of responses.
Does not own: when each is used (``session``, ``delivery``, ``serving``).
Here because: clients branch on these, so each is written once and the tables are total.
"""

from __future__ import annotations

import enum


class CloseCode(enum.IntEnum):
    """WebSocket close codes (wire contract, section 1)."""

    NORMAL = 1000  #: the session is closed; also what a client sends to end its session
    GOING_AWAY = 1001  #: only from clients: a detach
    NO_STATUS = 1005  #: never sent: what a close frame without a code reads as
    MALFORMED = 1007  #: a text frame that is not UTF-8
    REFUSED = 1008  #: unknown model, refused resume, key revoked
    TOO_LARGE = 1009  #: a frame over ``limits.max_frame_bytes``
    INTERNAL = 1011
    DRAINED = 1012  #: resume elsewhere
    TRY_AGAIN = 1013  #: no capacity, or a consumer too slow
    REPLACED = 4001  #: another connection took the session over
    HANDSHAKE_TIMEOUT = 4408


class ErrorClass(enum.StrEnum):
    """``error.type`` (wire contract, section 8)."""

    INVALID_REQUEST = "invalid_request_error"
    RATE_LIMIT = "rate_limit_error"
    SERVER = "server_error"


class ErrorCode(enum.StrEnum):
    """``error.code``. OpenAI's spelling where its clients branch on it, ours elsewhere."""

    # form
    INVALID_EVENT = "invalid_event"  #: not JSON, not an object, or a field of the wrong form
    UNKNOWN_EVENT = "unknown_event"  #: no such event type
    UNSUPPORTED = "unsupported"  #: known, and not served here
    INVALID_AUDIO = "invalid_audio"

    # access and opening
    INVALID_API_KEY = "invalid_api_key"
    MODEL_NOT_FOUND = "model_not_found"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    SESSION_OPEN_FAILED = "session_open_failed"
    SESSION_NOT_OPEN = "session_not_open"
    CONFIG_TIMEOUT = "config_timeout"

    # life of a session
    SESSION_CLOSED = "session_closed"
    SESSION_EXPIRED = "session_expired"
    INTERNAL_ERROR = "internal_error"  #: the session failed; it ends after this

    # resume and numbering
    INVALID_SESSION_RESUME = "invalid_session_resume"
    INVALID_RESUME_TOKEN = "invalid_resume_token"
    SESSION_RESUME_EXPIRED = "session_resume_expired"
    SESSION_RESUME_CONFLICT = "session_resume_conflict"
    UNSUPPORTED_SESSION_RESUME = "unsupported_session_resume"
    INVALID_EVENT_ACK = "invalid_event_ack"
    CLIENT_EVENT_GAP = "client_event_gap"

    # input
    INPUT_BACKPRESSURE = "input_backpressure"
    INPUT_AUDIO_BUFFER_COMMIT_EMPTY = "input_audio_buffer_commit_empty"

    # responses
    CONVERSATION_ALREADY_HAS_ACTIVE_RESPONSE = "conversation_already_has_active_response"
    RESPONSE_CREATE_WITHOUT_INPUT = "response_create_without_input"
    RESPONSE_CANCEL_NOT_ACTIVE = "response_cancel_not_active"

    # items
    ITEM_CREATE_DUPLICATE_ITEM_ID = "item_create_duplicate_item_id"
    ITEM_CREATE_INVALID_PREVIOUS_ITEM_ID = "item_create_invalid_previous_item_id"
    ITEM_RETRIEVE_INVALID_ITEM_ID = "item_retrieve_invalid_item_id"
    ITEM_DELETE_INVALID_ITEM_ID = "item_delete_invalid_item_id"
    ITEM_TRUNCATE_INVALID_ITEM_ID = "item_truncate_invalid_item_id"

    # tool results
    STALE_FUNCTION_CALL_OUTPUT = "stale_function_call_output"
    DUPLICATE_FUNCTION_CALL_OUTPUT = "duplicate_function_call_output"
    UNKNOWN_FUNCTION_CALL_OUTPUT = "unknown_function_call_output"
    LATE_FUNCTION_CALL_OUTPUT = "late_function_call_output"


class FailureCode(enum.StrEnum):
    """``status_details.error.code`` of a failed response; never the code of an ``error`` event."""

    MODEL_TIMEOUT = "model_timeout"
    MODEL_FAILED = "model_failed"
    HOST_LOST = "host_lost"


#: The class of every code. Total; a new code does not pass the tests without a line here.
ERROR_CLASSES: dict[ErrorCode, ErrorClass] = {
    ErrorCode.INVALID_EVENT: ErrorClass.INVALID_REQUEST,
    ErrorCode.UNKNOWN_EVENT: ErrorClass.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED: ErrorClass.INVALID_REQUEST,
    ErrorCode.INVALID_AUDIO: ErrorClass.INVALID_REQUEST,
    ErrorCode.INVALID_API_KEY: ErrorClass.INVALID_REQUEST,
    ErrorCode.MODEL_NOT_FOUND: ErrorClass.INVALID_REQUEST,
    ErrorCode.RESOURCE_EXHAUSTED: ErrorClass.RATE_LIMIT,
    ErrorCode.SESSION_OPEN_FAILED: ErrorClass.SERVER,
    ErrorCode.SESSION_NOT_OPEN: ErrorClass.INVALID_REQUEST,
    ErrorCode.CONFIG_TIMEOUT: ErrorClass.INVALID_REQUEST,
    ErrorCode.SESSION_CLOSED: ErrorClass.INVALID_REQUEST,
    ErrorCode.SESSION_EXPIRED: ErrorClass.INVALID_REQUEST,
    ErrorCode.INTERNAL_ERROR: ErrorClass.SERVER,
    ErrorCode.INVALID_SESSION_RESUME: ErrorClass.INVALID_REQUEST,
    ErrorCode.INVALID_RESUME_TOKEN: ErrorClass.INVALID_REQUEST,
    ErrorCode.SESSION_RESUME_EXPIRED: ErrorClass.INVALID_REQUEST,
    ErrorCode.SESSION_RESUME_CONFLICT: ErrorClass.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_SESSION_RESUME: ErrorClass.INVALID_REQUEST,
    ErrorCode.INVALID_EVENT_ACK: ErrorClass.INVALID_REQUEST,
    ErrorCode.CLIENT_EVENT_GAP: ErrorClass.INVALID_REQUEST,
    ErrorCode.INPUT_BACKPRESSURE: ErrorClass.RATE_LIMIT,
    ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY: ErrorClass.INVALID_REQUEST,
    ErrorCode.CONVERSATION_ALREADY_HAS_ACTIVE_RESPONSE: ErrorClass.INVALID_REQUEST,
    ErrorCode.RESPONSE_CREATE_WITHOUT_INPUT: ErrorClass.INVALID_REQUEST,
    ErrorCode.RESPONSE_CANCEL_NOT_ACTIVE: ErrorClass.INVALID_REQUEST,
    ErrorCode.ITEM_CREATE_DUPLICATE_ITEM_ID: ErrorClass.INVALID_REQUEST,
    ErrorCode.ITEM_CREATE_INVALID_PREVIOUS_ITEM_ID: ErrorClass.INVALID_REQUEST,
    ErrorCode.ITEM_RETRIEVE_INVALID_ITEM_ID: ErrorClass.INVALID_REQUEST,
    ErrorCode.ITEM_DELETE_INVALID_ITEM_ID: ErrorClass.INVALID_REQUEST,
    ErrorCode.ITEM_TRUNCATE_INVALID_ITEM_ID: ErrorClass.INVALID_REQUEST,
    ErrorCode.STALE_FUNCTION_CALL_OUTPUT: ErrorClass.INVALID_REQUEST,
    ErrorCode.DUPLICATE_FUNCTION_CALL_OUTPUT: ErrorClass.INVALID_REQUEST,
    ErrorCode.UNKNOWN_FUNCTION_CALL_OUTPUT: ErrorClass.INVALID_REQUEST,
    ErrorCode.LATE_FUNCTION_CALL_OUTPUT: ErrorClass.INVALID_REQUEST,
}

#: What a session ends with (``session.closed.reason``) and the close code that follows (wire, section 2).
CLOSED_REASONS: dict[str, CloseCode] = {
    "client_closed": CloseCode.NORMAL,
    "model_closed": CloseCode.NORMAL,
    "failed": CloseCode.INTERNAL,
    "drained": CloseCode.DRAINED,
    "admin": CloseCode.REFUSED,
}

#: The reasons of ``session.expired``; the close code is always 1000.
EXPIRED_REASONS = ("idle_ttl_expired", "disconnect_grace_expired", "max_duration")
