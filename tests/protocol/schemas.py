"""The official events as JSON schemas, for tests to hold our frames against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "realtime_schema.json").read_text()
)

SERVER_EVENTS = frozenset(_SCHEMA["server"])
CLIENT_EVENTS = frozenset(_SCHEMA["client"])
BETA_SERVER_EVENTS = frozenset(_SCHEMA["beta_server"])


def check_server_event(event: dict[str, Any]) -> None:
    """Raise unless ``event`` is a valid official server event."""
    schema = {**_SCHEMA["server"][event["type"]], "defs": _SCHEMA["defs"]}
    Draft202012Validator(schema).validate(event)
