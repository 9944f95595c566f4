"""The official events as JSON schemas, for tests to hold our frames against with a full validator."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

from counterpoint.testing.schema.events import official

#: What an official server says of tools that it calls itself, of telephone keys and of speakers, and two
#: events that are older than ``conversation.item.added``: we never do.
UNSAID_EVENTS = frozenset(
    {
        "conversation.created",
        "conversation.item.created",
        "conversation.item.input_audio_transcription.segment",
        "input_audio_buffer.dtmf_event_received",
        "mcp_list_tools.completed",
        "mcp_list_tools.failed",
        "mcp_list_tools.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
    }
)

SERVER_EVENTS = frozenset(official()["server"]) - UNSAID_EVENTS
CLIENT_EVENTS = frozenset(official()["client"])
BETA_SERVER_EVENTS = frozenset(official()["beta_server"])


def check_server_event(event: dict[str, Any]) -> None:
    """Raise unless ``event`` is a valid official server event."""
    schema = {**official()["server"][event["type"]], "defs": official()["defs"]}
    Draft202012Validator(schema).validate(event)
