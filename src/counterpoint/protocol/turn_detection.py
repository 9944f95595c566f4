"""How a session finds the turns of its user: the settings of the detectors.

Owns: ``ServerVad``, ``SemanticVad``, their defaults and their merging (wire contract, section 4).
Does not own: detection (``counterpoint.audio``), what a detected turn does (``session.turns``).
Here because: unknown and unreachable values must be refused before anything uses them (case L-03).
"""

from __future__ import annotations

from typing import Any

import msgspec

from .fields import Fields

EAGERNESS = ("low", "medium", "high", "auto")

#: Detectors that a client may ask for by name; None leaves the choice to the server.
DETECTORS = ("amp", "energy", "silero")

#: A threshold below this lets digital silence count as speech, so that the turn never ends.
MIN_THRESHOLD = 0.01

#: No setting of a detector waits longer than this.
_MAX_MS = 600_000


class ServerVad(msgspec.Struct, frozen=True, tag_field="type", tag="server_vad", kw_only=True):
    """A turn ends after a fixed silence."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    min_speech_ms: int = 96  #: shorter bursts are noise (extension)
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: int | None = None
    false_interruption_ms: int = 0  #: 0: an interruption is never taken back (extension)
    detector: str | None = None  #: extension


class SemanticVad(msgspec.Struct, frozen=True, tag_field="type", tag="semantic_vad", kw_only=True):
    """A turn ends when a turn model believes that the speaker is done."""

    eagerness: str = "auto"
    create_response: bool = True
    interrupt_response: bool = True
    false_interruption_ms: int = 0  #: extension
    detector: str | None = None  #: extension


TurnDetection = ServerVad | SemanticVad

_DEFAULTS: dict[str, TurnDetection] = {"server_vad": ServerVad(), "semantic_vad": SemanticVad()}

#: Keys that stock clients do not know.
EXTENSION_KEYS = ("min_speech_ms", "false_interruption_ms", "detector")


def merge_turn_detection(current: TurnDetection | None, patch: Fields) -> TurnDetection:
    """``patch`` laid over ``current``, or over the defaults when it names another type.

    Raises ``ProtocolError`` for unknown enum values and values that no turn could end with.
    """
    name = patch.choice("type", _DEFAULTS)
    if name is None:
        if current is None:
            raise patch.refuse("type", f"is required: one of {', '.join(_DEFAULTS)}")
        base = current
    else:
        default = _DEFAULTS[name]
        base = current if isinstance(current, type(default)) else default
    special = _server_changes(patch) if isinstance(base, ServerVad) else _semantic_changes(patch)
    return msgspec.structs.replace(base, **_common_changes(patch), **special)


def _common_changes(patch: Fields) -> dict[str, Any]:
    values = {
        "create_response": patch.boolean("create_response"),
        "interrupt_response": patch.boolean("interrupt_response"),
        "false_interruption_ms": patch.integer("false_interruption_ms", minimum=0, maximum=_MAX_MS),
        "detector": patch.choice("detector", DETECTORS),
    }
    return _given(patch, values, nullable=("detector",))


def _server_changes(patch: Fields) -> dict[str, Any]:
    values = {
        "threshold": patch.number("threshold", minimum=MIN_THRESHOLD, maximum=1.0),
        "prefix_padding_ms": patch.integer("prefix_padding_ms", minimum=0, maximum=_MAX_MS),
        "silence_duration_ms": patch.integer("silence_duration_ms", minimum=0, maximum=_MAX_MS),
        "min_speech_ms": patch.integer("min_speech_ms", minimum=0, maximum=_MAX_MS),
        "idle_timeout_ms": patch.integer("idle_timeout_ms", minimum=1, maximum=_MAX_MS),
    }
    return _given(patch, values, nullable=("idle_timeout_ms",))


def _semantic_changes(patch: Fields) -> dict[str, Any]:
    return _given(patch, {"eagerness": patch.choice("eagerness", EAGERNESS)}, nullable=())


def _given(patch: Fields, values: dict[str, Any], nullable: tuple[str, ...]) -> dict[str, Any]:
    """What the patch changes: values that it gives, and nulls where null means something."""
    return {k: v for k, v in values.items() if v is not None or (k in nullable and patch.has(k))}
