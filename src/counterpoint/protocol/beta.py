"""The beta dialect: its shapes of ``session``, ``response`` and items, and its event names.

Owns: where each beta field lives in the official shape, in both directions.
Does not own: the official shapes (``config``, ``response_options``, ``items``), who is shown the beta
dialect (``projection``).
Here because: the beta shape is accepted from everyone and must not leak further in
(wire contract, "Stock and extended connections").
"""

from __future__ import annotations

from typing import Any

from counterpoint.errors import ProtocolError

_OFFICIAL_PATHS: dict[str, tuple[str, ...]] = {
    "modalities": ("output_modalities",),
    "voice": ("audio", "output", "voice"),
    "speed": ("audio", "output", "speed"),
    "input_audio_format": ("audio", "input", "format"),
    "output_audio_format": ("audio", "output", "format"),
    "input_audio_transcription": ("audio", "input", "transcription"),
    "input_audio_noise_reduction": ("audio", "input", "noise_reduction"),
    "turn_detection": ("audio", "input", "turn_detection"),
    "max_response_output_tokens": ("max_output_tokens",),
}

_FORMAT_NAMES = {"audio/pcm": "pcm16", "audio/pcmu": "g711_ulaw", "audio/pcma": "g711_alaw"}

#: Beta names of official events, where they differ.
EVENT_NAMES: dict[str, str] = {
    "conversation.item.added": "conversation.item.created",
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio.done": "response.audio.done",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
    "response.output_audio_transcript.done": "response.audio_transcript.done",
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
}

#: Official events that the beta does not have.
ABSENT_EVENTS = frozenset({"conversation.item.done", "input_audio_buffer.timeout_triggered"})

#: Events that hold something whose beta shape differs.
SHAPED_EVENTS = frozenset(
    {
        "session.created",
        "session.updated",
        "session.resumed",
        "conversation.item.added",
        "conversation.item.retrieved",
        "response.output_item.added",
        "response.output_item.done",
        "response.created",
        "response.done",
    }
)


# --------------------------------------------------------------------------- from the beta


def to_official(values: dict[str, Any]) -> dict[str, Any]:
    """A copy of ``values`` with every beta field in its official place; an official field given too wins."""
    official = {key: value for key, value in values.items() if key not in _OFFICIAL_PATHS}
    for key, path in _OFFICIAL_PATHS.items():
        if key in values:
            _place(official, path, values[key])
    return official


def in_clients_words(error: ProtocolError, values: dict[str, Any], root: str) -> ProtocolError:
    """``error`` with its ``param`` as the client spelled it, when the field came in the beta shape."""
    param = error.param or ""
    for key, path in _OFFICIAL_PATHS.items():
        official = ".".join((root, *path))
        if key in values and f"{param}.".startswith(f"{official}."):
            spelled = f"{root}.{key}{param.removeprefix(official)}"
            return ProtocolError(error.code, error.message.replace(param, spelled, 1), param=spelled)
    return error


def _place(target: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        inner = target.get(parent)
        if inner is not None and not isinstance(inner, dict):
            return  # the official field is malformed, and is refused as such
        inner = dict(inner or {})
        target[parent] = inner
        target = inner
    target.setdefault(last, value)


# --------------------------------------------------------------------------- to the beta


def to_beta(event: dict[str, Any]) -> None:
    """Give what an event (one of ``SHAPED_EVENTS``) holds the beta shape, in place."""
    if "session" in event:
        _shape(event["session"])
        if event["type"] == "session.updated" and event["session"]["type"] == "transcription":
            event["type"] = "transcription_session.updated"
    if "response" in event:
        response = event["response"]
        _shape(response)
        response["output"] = [_beta_item(item) for item in response["output"]]
        response["max_output_tokens"] = response.pop("max_response_output_tokens")
    if "item" in event:
        event["item"] = _beta_item(event["item"])


def _shape(values: dict[str, Any]) -> None:
    for key, path in _OFFICIAL_PATHS.items():
        found, value = _look_up(values, path)
        if found:
            values[key] = _BETA_VALUES.get(key, _same)(value)
    for key in ("audio", "output_modalities", "max_output_tokens"):
        values.pop(key, None)
    choice = values.get("tool_choice")
    if isinstance(choice, dict):
        values["tool_choice"] = choice["name"]  # the beta has strings only


def _look_up(values: Any, path: tuple[str, ...]) -> tuple[bool, Any]:
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return False, None
        values = values[key]
    return True, values


def _same(value: Any) -> Any:
    return value


def _beta_modalities(names: list[str]) -> list[str]:
    return ["text", "audio"] if "audio" in names else ["text"]


def _beta_format(written: dict[str, Any] | None) -> str | None:
    return None if written is None else _FORMAT_NAMES.get(written["type"])


_BETA_VALUES: dict[str, Any] = {
    "modalities": _beta_modalities,
    "input_audio_format": _beta_format,
    "output_audio_format": _beta_format,
}


def _beta_item(item: dict[str, Any]) -> dict[str, Any]:
    """The beta has no images, and its assistant's content has no prefix."""
    if "content" not in item:
        return item
    shown = [part for part in item["content"] if part["type"] != "input_image"]
    return item | {"content": [part | {"type": part["type"].removeprefix("output_")} for part in shown]}
