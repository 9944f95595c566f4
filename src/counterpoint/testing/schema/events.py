"""Whether an event has the form that its connection may see.

Owns: holding one event against its schema; how the extensions are laid over the official schemas.
Does not own: the schemas (``official.json``, ``extensions``), what a sequence must fulfil (``streams``).
Here because: a key or an enum value that leaks to a stock client is found only by refusing what is not listed
(wire contract, "Stock and extended connections").
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from counterpoint.protocol.beta import ABSENT_EVENTS

from . import extensions
from .extensions import (
    CONNECTION_EVENTS,
    COUNT,
    SESSION_EVENTS,
    STRING,
    Properties,
    an_object,
    one_of,
    or_null,
)
from .validator import Validator


@functools.cache
def official() -> dict[str, Any]:
    """``client``, ``server``, ``beta_client``, ``beta_server``, ``values``, and what they refer to."""
    text = resources.files(__package__).joinpath("official.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def server_event_problems(
    event: dict[str, Any], *, extended: bool = False, beta: bool = False, strict: bool = True
) -> list[str]:
    """What is wrong with the form of ``event`` on such a connection; nothing if it is as it should be.

    Not ``strict``: keys that the schemas do not know are let pass, as they are from other servers.
    """
    kind = event.get("type")
    schemas, validator = _of_connection(extended=extended, beta=beta, strict=strict)
    schema = schemas.get(kind) if isinstance(kind, str) else None
    if schema is None:
        return [f"there is no server event {kind!r} on such a connection"]
    return list(validator.problems(schema, event))


def duplex_problems(duplex: Any) -> list[str]:
    """What is wrong with the ``duplex`` object of an official event."""
    return list(_DUPLEX.problems(extensions.DUPLEX, duplex, "duplex"))


_DUPLEX = Validator({}, strict=True)


@functools.cache
def _of_connection(*, extended: bool, beta: bool, strict: bool) -> tuple[dict[str, Any], Validator]:
    root = _root(extended=extended, beta=beta)
    return root["server"], Validator(root, strict=strict)


def client_event_problems(event: dict[str, Any]) -> list[str]:
    """What is wrong with a client event of the official API."""
    schema = official()["client"].get(event.get("type"))
    if schema is None:
        return [f"there is no client event {event.get('type')!r}"]
    return list(Validator(official(), strict=False).problems(schema, event))


def value_problems(name: str, value: Any) -> list[str]:
    """What is wrong with one of the official values that are no events (``client_secret``)."""
    return list(Validator(official(), strict=False).problems(official()["values"][name], value))


@functools.cache
def _root(*, extended: bool, beta: bool) -> dict[str, Any]:
    """The document that events of such a connection are held against."""
    root: dict[str, Any] = json.loads(json.dumps(official()))
    if beta:
        # An extended connection is shown what the beta has no name for: its numbers have no holes.
        absent = {name: root["server"][name] for name in ABSENT_EVENTS} if extended else {}
        root["server"] = root["beta_server"] | absent
    for schema in root["server"].values():
        schema["properties"].update(extensions.NUMBER_KEY)
    root["server"]["session.created"]["properties"].update(extensions.CREATED)
    for schema in _sessions(root):
        schema["properties"].update(extensions.UNPUBLISHED_SESSION)
    for schema in (root["defs"]["RealtimeError"], root["beta_defs"]["error_event__Error"]):
        schema["properties"].update(extensions.ERROR)
    _add_newer(root)
    if extended:
        _extend(root)
    return root


def _add_newer(root: dict[str, Any]) -> None:
    """What is official, and newer than the published types of the beta, whose clients pass over it.

    Those types also list the models of one vendor.
    """
    defs = root["beta_defs"]
    session = defs["session__Session"]["properties"]
    session |= {"type": one_of("realtime", "transcription"), "model": STRING}
    for key in ("truncation", "prompt", "include"):
        session[key] = root["defs"]["RealtimeSessionCreateRequest"]["properties"][key]
    defs["session__TurnDetection"]["properties"]["idle_timeout_ms"] = or_null(COUNT)
    defs["InputTokenDetails"]["properties"]["image_tokens"] = COUNT
    root["beta_server"]["response.function_call_arguments.done"]["properties"]["name"] = STRING
    transcription = defs["TranscriptionSession"]
    transcription["required"] = []  # of a client secret: only a session that was made with one has it
    transcription["properties"] |= {key: session[key] for key in ("type", "include", "turn_detection")}
    transcription["properties"]["input_audio_noise_reduction"] = session["input_audio_noise_reduction"]
    defs["transcription_session__InputAudioTranscription"]["properties"]["model"] = or_null(STRING)


def _sessions(root: dict[str, Any]) -> list[dict[str, Any]]:
    names = ("RealtimeSessionCreateRequest", "RealtimeTranscriptionSessionCreateRequest")
    beta = ("session__Session", "TranscriptionSession")
    return [*(root["defs"][name] for name in names), *(root["beta_defs"][name] for name in beta)]


def _extend(root: dict[str, Any]) -> None:
    for name in root["server"].keys() - {"session.created"}:
        root["server"][name]["properties"]["duplex"] = extensions.DUPLEX
    for name, fields in CONNECTION_EVENTS.items():
        root["server"][name] = _event(name, fields)
    for name, fields in SESSION_EVENTS.items():
        root["server"][name] = _event(
            name, fields, {**extensions.OPTIONAL.get(name, {}), **extensions.NUMBER_KEY}
        )
    for schema in _sessions(root):
        schema["properties"].update(extensions.SESSION)
    # A transcription session is shown in full as well.
    for group, full, short in (
        ("defs", "RealtimeSessionCreateRequest", "RealtimeTranscriptionSessionCreateRequest"),
        ("beta_defs", "session__Session", "TranscriptionSession"),
    ):
        shown = root[group][short]["properties"]
        shown |= {**root[group][full]["properties"], "type": shown["type"]}
    official = (root["defs"]["ServerVad"], root["defs"]["SemanticVad"])
    for schema in (*official, root["beta_defs"]["session__TurnDetection"]):
        schema["properties"].update(extensions.TURN_DETECTION)
    root["defs"]["AudioPCM"] = extensions.AUDIO_FORMAT
    for group in ("defs", "beta_defs"):
        root[group]["RealtimeResponse"]["properties"]["metadata"] = or_null(extensions.ANY_OBJECT)


def _event(name: str, fields: Properties, optional: Properties | None = None) -> dict[str, Any]:
    return an_object({"type": {"type": "string", "const": name}, "event_id": STRING, **fields}, optional)
