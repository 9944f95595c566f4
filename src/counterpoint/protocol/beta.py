"""The beta shape of ``session`` and ``response``, read as the official one.

Owns: where each beta field lives in the official shape.
Does not own: the official shape (``config``, ``response_options``), beta event names (``projection``).
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


def to_official(values: dict[str, Any]) -> dict[str, Any]:
    """A copy of ``values`` with every beta field in its official place; an official field given too wins."""
    official = {key: value for key, value in values.items() if key not in _OFFICIAL_PATHS}
    for key in values.keys() & _OFFICIAL_PATHS.keys():
        _place(official, _OFFICIAL_PATHS[key], values[key])
    return official


def in_clients_words(error: ProtocolError, values: dict[str, Any], root: str) -> ProtocolError:
    """``error`` with its ``param`` as the client spelled it, when the field came in the beta shape."""
    for key in values.keys() & _OFFICIAL_PATHS.keys():
        official = ".".join((root, *_OFFICIAL_PATHS[key]))
        if error.param is not None and f"{error.param}.".startswith(f"{official}."):
            param = f"{root}.{key}{error.param.removeprefix(official)}"
            return ProtocolError(error.code, error.message.replace(error.param, param, 1), param=param)
    return error


def _place(target: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        inner = target.get(parent)
        if inner is not None and not isinstance(inner, dict):
            return  # the official field is malformed, and is refused as such
        target[parent] = target = dict(inner or {})
    target.setdefault(last, value)
