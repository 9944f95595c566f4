"""The configuration of a session: what is in force, how an update changes it, how it is shown.

Owns: ``SessionConfig`` and its parts, ``merge``, ``render``.
Does not own: what a model makes of it (``ModelPlugin.validate``), when it applies (``session``), whether
``model`` exists (``serving``).
Here because: an update is validated as a whole candidate before anything is changed
(wire contract, section 2); a frozen value makes all-or-nothing the only possibility.
"""

from __future__ import annotations

import enum
from typing import Any, Literal, TypeVar

import msgspec

from counterpoint.errors import ProtocolError

from . import beta
from .audio import PCM16_24K, AudioFormat
from .fields import MAX_ID_CHARS, Fields
from .formats import read_format, stock_format, write_format
from .tools import Tool, ToolChoice, read_tool_choice, read_tools
from .turn_detection import EXTENSION_KEYS, ServerVad, TurnDetection, merge_turn_detection

_T = TypeVar("_T")


class SessionType(enum.StrEnum):
    REALTIME = "realtime"
    TRANSCRIPTION = "transcription"


#: What the wire calls the ``session`` of each type (``session.object``).
SESSION_OBJECTS = {
    SessionType.REALTIME: "realtime.session",
    SessionType.TRANSCRIPTION: "realtime.transcription_session",
}


class OverlapPolicy(enum.StrEnum):
    """What speech over an answer does (wire contract, section 6)."""

    LISTEN_ONLY = "listen_only"
    BARGE_IN_ON_SPEECH = "barge_in_on_speech"
    GRADED = "graded"


class PlaybackCommitPolicy(enum.StrEnum):
    """Whose word counts for what was heard (wire contract, section 7)."""

    ACK_ONLY = "ack_only"
    COMMIT_ALL_ON_DONE = "commit_all_on_done"
    AUTO = "auto"


class NoiseReduction(enum.StrEnum):
    NEAR_FIELD = "near_field"
    FAR_FIELD = "far_field"


class Transcription(msgspec.Struct, frozen=True):
    """The client wants its input transcribed; the hints may be ignored."""

    model: str | None = None
    language: str | None = None
    prompt: str | None = None


class Tracing(msgspec.Struct, frozen=True, omit_defaults=True):
    workflow_name: str | None = None
    group_id: str | None = None
    metadata: dict[str, Any] | None = None


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A prompt stored elsewhere, for models behind another realtime server."""

    id: str
    version: str | None = None
    variables: dict[str, str] | None = None


class RetentionRatio(
    msgspec.Struct, frozen=True, tag_field="type", tag="retention_ratio", omit_defaults=True
):
    retention_ratio: float
    token_limits: dict[str, int] | None = None


class AudioInput(msgspec.Struct, frozen=True):
    format: AudioFormat = PCM16_24K
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: TurnDetection | None = ServerVad()  #: None: turns are committed by hand


class AudioOutput(msgspec.Struct, frozen=True):
    format: AudioFormat = PCM16_24K
    voice: str = "default"
    speed: float = 1.0


class AudioConfig(msgspec.Struct, frozen=True):
    input: AudioInput = AudioInput()
    output: AudioOutput = AudioOutput()


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a client can configure, with the contract's defaults."""

    type: SessionType = SessionType.REALTIME
    model: str = ""  #: the name that the client asked for
    instructions: str = ""
    output_modalities: tuple[str, ...] = ("audio",)  #: ("audio",) or ("text",)
    audio: AudioConfig = AudioConfig()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | None = None  #: None: no limit ("inf" on the wire)
    tracing: Literal["auto"] | Tracing | None = None
    include: tuple[str, ...] = ()
    prompt: Prompt | None = None
    truncation: Literal["auto", "disabled"] | RetentionRatio = "auto"

    # extensions (wire contract, section 2)
    overlap_policy: OverlapPolicy | None = None  #: None: ``interrupt_response`` decides
    overlap_short_ack_ms: int = 700
    overlap_barge_in_ms: int = 1200
    overlap_silence_rms: float = 0.003
    playback_commit_policy: PlaybackCommitPolicy = PlaybackCommitPolicy.AUTO
    idle_timeout_s: float | None = None  #: may shorten the server's, not lengthen it
    extra_body: dict[str, Any] = {}  #: knobs of the model plugin; never changed in place


# --------------------------------------------------------------------------- merging


def merge(current: SessionConfig, patch: dict[str, Any], *, extended: bool) -> SessionConfig:
    """``patch`` (the ``session`` of an update, official or beta shape) laid over ``current``.

    A missing key keeps; an explicit ``turn_detection: null`` disables; each key of ``extra_body`` is
    replaced whole; unknown fields, voices, models of transcription and the like never fail. Raises
    ``ProtocolError`` with ``param`` (``session.audio.input.format.rate``) for what must be refused;
    ``current`` is unchanged in any case.
    """
    try:
        return _merge_session(current, Fields(beta.to_official(patch), "session"), extended)
    except ProtocolError as error:
        raise beta.in_clients_words(error, patch, "session") from None


def locked(config: SessionConfig, patch: dict[str, Any]) -> SessionConfig:
    """``config`` with the fields of ``patch``, which were fixed beforehand, whatever was asked for since."""
    return merge(config, patch, extended=True) if patch else config


def _merge_session(current: SessionConfig, patch: Fields, extended: bool) -> SessionConfig:
    kind = patch.choice("type", SessionType)
    policy = patch.choice("playback_commit_policy", PlaybackCommitPolicy)
    limit = read_max_output_tokens(patch, "max_output_tokens")
    return SessionConfig(
        type=current.type if kind is None else SessionType(kind),
        model=patch.string("model", max_chars=MAX_ID_CHARS) or current.model,
        instructions=_given(patch.string("instructions"), current.instructions),
        output_modalities=_given(read_modalities(patch, "output_modalities"), current.output_modalities),
        audio=_merge_audio(current.audio, patch, extended),
        tools=_given(read_tools(patch, "tools"), current.tools),
        tool_choice=_given(read_tool_choice(patch, "tool_choice"), current.tool_choice),
        max_output_tokens=current.max_output_tokens if limit is msgspec.UNSET else limit,
        tracing=_lenient(patch, "tracing", current.tracing, Literal["auto"] | Tracing | None),
        include=_merge_include(current.include, patch),
        prompt=_lenient(patch, "prompt", current.prompt, Prompt | None),
        truncation=_lenient(
            patch, "truncation", current.truncation, Literal["auto", "disabled"] | RetentionRatio
        ),
        overlap_policy=_merge_overlap_policy(current.overlap_policy, patch),
        overlap_short_ack_ms=_given(
            patch.integer("overlap_short_ack_ms", minimum=0), current.overlap_short_ack_ms
        ),
        overlap_barge_in_ms=_given(
            patch.integer("overlap_barge_in_ms", minimum=0), current.overlap_barge_in_ms
        ),
        overlap_silence_rms=_given(
            patch.number("overlap_silence_rms", minimum=0.0, maximum=1.0), current.overlap_silence_rms
        ),
        playback_commit_policy=current.playback_commit_policy
        if policy is None
        else PlaybackCommitPolicy(policy),
        idle_timeout_s=_merge_idle_timeout(current.idle_timeout_s, patch),
        extra_body=_merge_extra_body(current.extra_body, patch),
    )


def read_modalities(fields: Fields, key: str) -> tuple[str, ...] | None:
    """``("audio",)`` or ``("text",)``: asked for both, audio with its transcript is both."""
    names = fields.array(key)
    if names is None:
        return None
    if not names or any(name not in ("audio", "text") for name in names):
        raise fields.refuse(key, "must be a non-empty array of audio, text")
    return ("audio",) if "audio" in names else ("text",)


def read_max_output_tokens(fields: Fields, key: str) -> int | msgspec.UnsetType | None:
    """A positive integer; None (``"inf"``, null) means no limit; UNSET when missing."""
    if not fields.has(key):
        return msgspec.UNSET
    return None if fields.get(key) == "inf" else fields.integer(key, minimum=1)


def read_voice(fields: Fields, key: str, current: _T) -> str | _T:
    """A name, or ``{"id": name}``. Whether the voice exists is the model's matter, so nothing here fails."""
    value = fields.get(key)
    name = value.get("id") if isinstance(value, dict) else value
    return name if isinstance(name, str) and name else current


def _merge_audio(current: AudioConfig, patch: Fields, extended: bool) -> AudioConfig:
    audio = patch.object("audio")
    if audio is None:
        return current
    source, sink = audio.object("input"), audio.object("output")
    return AudioConfig(
        input=current.input if source is None else _merge_input(current.input, source, extended),
        output=current.output if sink is None else _merge_output(current.output, sink, extended),
    )


def _merge_input(current: AudioInput, patch: Fields, extended: bool) -> AudioInput:
    detection = current.turn_detection
    if patch.has("turn_detection"):
        settings = patch.object("turn_detection")
        detection = None if settings is None else merge_turn_detection(detection, settings)
    return AudioInput(
        format=read_format(patch, "format", current.format, extended=extended),
        transcription=_merge_transcription(current.transcription, patch),
        noise_reduction=_merge_noise_reduction(current.noise_reduction, patch),
        turn_detection=detection,
    )


def _merge_output(current: AudioOutput, patch: Fields, extended: bool) -> AudioOutput:
    speed = patch.get("speed")
    known = isinstance(speed, int | float) and not isinstance(speed, bool)
    return AudioOutput(
        format=read_format(patch, "format", current.format, extended=extended),
        voice=read_voice(patch, "voice", current.voice),
        speed=min(max(float(speed), 0.25), 1.5) if known else current.speed,
    )


def _merge_transcription(current: Transcription | None, patch: Fields) -> Transcription | None:
    if not patch.has("transcription"):
        return current
    hints = patch.get("transcription")
    if not isinstance(hints, dict):
        return None
    known = {key: hints[key] for key in Transcription.__struct_fields__ if isinstance(hints.get(key), str)}
    return msgspec.structs.replace(current or Transcription(), **known)


def _merge_noise_reduction(current: NoiseReduction | None, patch: Fields) -> NoiseReduction | None:
    if not patch.has("noise_reduction"):
        return current
    wanted = patch.get("noise_reduction")
    name = wanted.get("type") if isinstance(wanted, dict) else None
    return NoiseReduction(name) if name in list(NoiseReduction) else None


def _merge_include(current: tuple[str, ...], patch: Fields) -> tuple[str, ...]:
    names = patch.get("include")
    if not isinstance(names, list):
        return current
    return tuple(name for name in names if name == "item.input_audio_transcription.logprobs")


def _merge_overlap_policy(current: OverlapPolicy | None, patch: Fields) -> OverlapPolicy | None:
    if not patch.has("overlap_policy"):
        return current
    name = patch.choice("overlap_policy", OverlapPolicy)
    return None if name is None else OverlapPolicy(name)


def _merge_idle_timeout(current: float | None, patch: Fields) -> float | None:
    if not patch.has("idle_timeout_s"):
        return current
    seconds = patch.number("idle_timeout_s")
    if seconds is not None and seconds <= 0:
        raise patch.refuse("idle_timeout_s", "must be more than 0")
    return seconds


def _merge_extra_body(current: dict[str, Any], patch: Fields) -> dict[str, Any]:
    extra = patch.object("extra_body")
    return current if extra is None else current | extra.values


def _lenient(patch: Fields, key: str, current: Any, form: Any) -> Any:
    """Field ``key`` where it has the official ``form``; anything else is ignored, never refused."""
    if not patch.has(key):
        return current
    try:
        return msgspec.convert(patch.get(key), form)
    except msgspec.ValidationError:
        return current


def _given(value: _T | None, current: _T) -> _T:
    return current if value is None else value


# --------------------------------------------------------------------------- rendering


def render(config: SessionConfig, *, extended: bool, live: dict[str, Any]) -> dict[str, Any]:
    """The wire's ``session`` object.

    ``live`` is what is not configuration: ``id``, ``object``, ``expires_at``, and for extended connections
    ``state``, ``epoch``, ``capabilities`` and so on (wire contract, section 2).
    """
    session = {
        "type": config.type.value,
        **live,
        "model": config.model,
        "instructions": config.instructions,
        "output_modalities": list(config.output_modalities),
        "audio": _render_audio(config.audio),
        "tools": [msgspec.to_builtins(tool) for tool in config.tools],
        "tool_choice": msgspec.to_builtins(config.tool_choice),
        "max_output_tokens": "inf" if config.max_output_tokens is None else config.max_output_tokens,
        "tracing": msgspec.to_builtins(config.tracing),
        "truncation": msgspec.to_builtins(config.truncation),
        "prompt": msgspec.to_builtins(config.prompt),
        "include": list(config.include) or None,
        "overlap_policy": config.overlap_policy,
        "overlap_short_ack_ms": config.overlap_short_ack_ms,
        "overlap_barge_in_ms": config.overlap_barge_in_ms,
        "overlap_silence_rms": config.overlap_silence_rms,
        "playback_commit_policy": config.playback_commit_policy.value,
        "idle_timeout_s": config.idle_timeout_s,
        "extra_body": config.extra_body,
    }
    return session if extended else stock_session(session)


def _render_audio(audio: AudioConfig) -> dict[str, Any]:
    noise = audio.input.noise_reduction
    return {
        "input": {
            "format": write_format(audio.input.format),
            "transcription": msgspec.to_builtins(audio.input.transcription),
            "noise_reduction": None if noise is None else {"type": noise.value},
            "turn_detection": msgspec.to_builtins(audio.input.turn_detection),
        },
        "output": {
            "format": write_format(audio.output.format),
            "voice": audio.output.voice,
            "speed": audio.output.speed,
        },
    }


#: What a stock connection sees of ``session``; everything else is an extension.
_STOCK_KEYS = (
    "type",
    "id",
    "object",
    "model",
    "expires_at",
    "instructions",
    "output_modalities",
    "audio",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "tracing",
    "truncation",
    "prompt",
    "include",
)

#: The same of a transcription session, which has no output.
_STOCK_TRANSCRIPTION_KEYS = ("type", "id", "object", "expires_at", "audio", "include")


def stock_session(session: dict[str, Any]) -> dict[str, Any]:
    """A rendered ``session`` as a stock connection may see it: official keys and values only."""
    transcribes = session["type"] == SessionType.TRANSCRIPTION
    keys = _STOCK_TRANSCRIPTION_KEYS if transcribes else _STOCK_KEYS
    stock = {key: session[key] for key in keys if key in session}
    audio = session["audio"]
    detection = audio["input"]["turn_detection"]
    if detection is not None:
        detection = {key: value for key, value in detection.items() if key not in EXTENSION_KEYS}
    stock["audio"] = {
        "input": {
            **audio["input"],
            "format": stock_format(audio["input"]["format"]),
            "turn_detection": detection,
        },
    }
    if not transcribes:
        stock["audio"]["output"] = {
            **audio["output"],
            "format": stock_format(audio["output"]["format"]),
        }
    return stock
