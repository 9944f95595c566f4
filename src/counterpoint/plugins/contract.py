"""What a model is to Counterpoint: the values that go in and come out, and the methods that are called.

Owns: ``Fence``, ``StepInput``, ``ResponseRequest``, ``ModelEvent``, ``Capabilities`` and the protocols
``ModelSession``, ``ModelPlugin``, ``Outlet``.
Does not own: when anything is called (``session`` decides, ``runtime`` performs), ids of items and
responses on the wire (``session``), batching (``plugins.slots``).
Here because: an author writes a model against this page alone, and the session machine speaks of
models in these values only.

Audio is always mono little-endian int16 ``bytes``; its rate is the one that ``Capabilities`` names for
that direction. Positions are in samples and characters, never in milliseconds.

Who may call what: everything is called on the event loop of the session. ``push``, ``prepare``,
``respond``, ``forget`` and ``update`` come one after the other, in the order of the conversation.
``cancel``, ``abort`` and ``close`` may come at any moment, also while one of those is awaited.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from counterpoint.protocol.audio import PCM_RATES, SESSION_RATE
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.tools import Tool, ToolChoice

# --------------------------------------------------------------------------- identity


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of freshness that travels with every piece of work and comes back with its result.

    ``epoch`` is bumped by every interruption; ``turn`` numbers the session's responses from 1
    (out-of-band, cancelled and listening ones too). Turn 0 is "no response": work on input.
    """

    session: str
    epoch: int
    turn: int = 0


# --------------------------------------------------------------------------- what goes in


class StepKind(enum.Enum):
    USER = "user"
    SILENCE = "silence"
    PREFILL = "prefill"


@dataclass(frozen=True, slots=True)
class StepInput:
    """A piece of user input, in the order in which it was spoken.

    For a turn-based model ``audio`` is any length and ``input`` numbers the utterance it belongs to
    (from 1); ``final`` says that the utterance was committed and nothing more of it comes. For a stepped
    model ``audio`` is exactly one unit and ``step`` counts accepted units from 1.
    """

    fence: Fence
    input: int
    audio: bytes = b""
    final: bool = False
    kind: StepKind = StepKind.USER
    step: int = 0
    turn_step: int = 0
    real_samples: int = 0  #: samples that came from the user; the rest is padding
    text: str = ""
    images: tuple[str, ...] = ()  #: data URIs
    force_listen: bool = False
    transcribe: bool = False  #: with ``final``: the client asked for a transcript of this input


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One entry of the truthful history: what was said and, of an answer, what was heard of it.

    ``text`` is None for spoken input whose transcript is not known to the framework; ``input`` then says
    which utterance it is, and a model that transcribes itself knows the words.
    """

    id: str
    type: str  #: message | function_call | function_call_output
    role: str | None = None  #: system | user | assistant
    text: str | None = None
    input: int | None = None
    audio: bytes | None = None  #: of an item that the client created with audio, at 24 kHz
    images: tuple[str, ...] = ()
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """Everything that one answer depends on.

    Two equal requests (``fence``, ``number`` and ``nth`` aside) ask for the same. ``input`` is the newest
    committed utterance, 0 if there is none.
    """

    fence: Fence = field(compare=False)
    number: int = field(compare=False)  #: counts the session's responses from 1
    history: tuple[HistoryItem, ...]
    instructions: str
    modalities: tuple[str, ...]  #: ("audio",) or ("text",)
    voice: str
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | None = None
    input: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)  #: the session's ``extra_body``
    out_of_band: bool = False
    #: Counts the answers asked for under this ``extra`` from 1, those that were called off on their way too.
    nth: int = field(default=1, compare=False)


# --------------------------------------------------------------------------- what comes out


@dataclass(frozen=True, slots=True)
class Mark:
    """By ``samples`` of audio, ``chars`` characters have been spoken; both counted from the delta's start."""

    samples: int
    chars: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response; audio is counted by the framework."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """More audio of the current message. ``text`` is what it says, appended to the transcript with it.

    Marks may lie beyond the delta's own audio: a sentence whose audio follows in chunks carries its
    text and its marks on the first of them.
    """

    pcm: bytes
    text: str = ""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the current message: all of a text answer, or transcript that comes without its audio."""

    text: str


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """The current message is complete; what follows opens another item."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """(More of) a function call. ``arguments`` is a piece of JSON text; ``final`` completes the call.

    A call is an item of its own: it ends the message before it. ``index`` tells parallel calls apart.
    """

    index: int
    name: str
    arguments: str
    final: bool = True


class TurnStatus(enum.Enum):
    COMPLETED = "completed"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """Generation of this turn is over. Last event of a response, unless ``Failure`` was."""

    status: TurnStatus = TurnStatus.COMPLETED
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Listen:
    """The model decided not to speak. ``end_of_turn`` false: it goes on listening within the turn."""

    reason: str = "listen"
    end_of_turn: bool = True


@dataclass(frozen=True, slots=True)
class UserTranscript:
    """The words of utterance ``input``: a piece (``final`` false) or the whole (``final`` true)."""

    input: int
    text: str
    final: bool = True


@dataclass(frozen=True, slots=True)
class UserTranscriptFailed:
    """Utterance ``input`` could not be transcribed; the conversation goes on."""

    input: int
    message: str


@dataclass(frozen=True, slots=True)
class SpeechBoundary:
    """A model that hears for itself says where speech began or ended, in samples of its own input."""

    started: bool
    sample: int


class Scope(enum.Enum):
    TURN = "turn"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Failure:
    """Something broke. ``TURN``: this response fails. ``SESSION``: the model side is lost; it is rebuilt from
    history where ``retryable``, else the session closes. ``code`` goes on the wire and holds no secret."""

    code: str = "model_failed"
    scope: Scope = Scope.TURN
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class StepDone:
    """Receipt of one accepted step, after every output that it caused. Stepped models only."""

    step: int
    label: str = "consumed"  #: consumed | dropped | cancelled | failed
    consumed: int = 0  #: samples
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class StageMetrics:
    """Durations of stages in milliseconds, by name; for metrics only."""

    durations_ms: Mapping[str, float]


ModelEvent = (
    AudioDelta
    | TextDelta
    | ItemEnd
    | ToolCall
    | TurnEnd
    | Listen
    | UserTranscript
    | UserTranscriptFailed
    | SpeechBoundary
    | Failure
    | StepDone
    | StageMetrics
)


class Outlet(Protocol):
    """Where a model session's events go.

    ``emit`` never blocks, never raises, and drops events of a closed session. It must be called on the
    session's loop; from a thread use ``loop.call_soon_threadsafe(outlet.emit, fence, event)``.
    ``writable`` returns when the client side has room: await it before producing more. It does not
    promise that nothing is dropped: an interruption drops what it must.
    """

    def emit(self, fence: Fence, event: ModelEvent) -> None: ...

    async def writable(self) -> None: ...


# --------------------------------------------------------------------------- the model


class Interaction(enum.Enum):
    """Who decides to speak, and in what steps the model lives."""

    FRAME = "frame"
    UNIT = "unit"
    TURN = "turn"
    REMOTE = "remote"

    @property
    def native(self) -> bool:
        """The model hears everything and decides itself when to speak."""
        return self in (Interaction.FRAME, Interaction.UNIT)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do; clients branch on these (wire contract, section 2), never on its name."""

    interaction: Interaction
    input_rate: int = 16_000
    output_rate: int = SESSION_RATE
    step_samples: int = 0  #: samples of one unit at ``input_rate``; 0 for turn-based models
    audio_input: bool = True
    audio_output: bool = True
    text_input: bool = True
    images: bool = False
    tools: bool = False
    transcribes: bool = True  #: emits ``UserTranscript``
    barge_in: bool = True
    truncate: bool = True
    text_alignment: str = "marks"  #: marks | proportional | none
    voices: tuple[str, ...] = ("default",)
    max_sessions: int | None = None
    knobs: tuple[str, ...] = ()  #: keys of ``extra_body`` that it understands

    def __post_init__(self) -> None:
        if self.interaction.native and self.step_samples <= 0:
            raise ValueError("step_samples: a stepped model needs a step of at least one sample")
        if not self.interaction.native and self.step_samples:
            raise ValueError("step_samples: only stepped models have steps")
        if not (self.audio_input or self.text_input):
            raise ValueError("audio_input: a model must take audio or text")
        if self.text_alignment not in ("marks", "proportional", "none"):
            raise ValueError("text_alignment: one of marks, proportional, none")
        if not self.voices and self.audio_output:
            raise ValueError("voices: a speaking model needs at least one voice")
        if self.input_rate not in PCM_RATES or self.output_rate not in PCM_RATES:
            raise ValueError(f"input_rate, output_rate: one of {PCM_RATES}")


class ModelSession(Protocol):
    """The model side of one session.

    All methods may be cancelled; cancel, abort, forget and close are idempotent.
    """

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        """Take what the session needs. Raises ``ModelOpenFailed``; nothing is kept then."""
        ...

    async def push(self, step: StepInput) -> None:
        """Accept one piece of input; return when it is accepted, not when it is understood.

        May raise ``ModelBusy``.
        """
        ...

    async def prepare(self, request: ResponseRequest) -> None:
        """Speech has paused; ``respond`` with an equal request may follow.

        A model may start on the answer and must emit nothing of it yet. Another ``prepare``, ``push`` or
        ``respond`` with an unequal request discards it.
        """
        ...

    async def respond(self, request: ResponseRequest) -> None:
        """Start an answer under ``request.fence``; return when it was accepted.

        Its events end with one ``TurnEnd``, ``Failure`` or ``Listen(end_of_turn=True)``.
        """
        ...

    async def cancel(self, old: Fence, new: Fence) -> None:
        """Stop every answer of epochs up to ``old.epoch``, out-of-band ones aside.

        Work on input (transcription) goes on.
        """
        ...

    async def abort(self, fence: Fence) -> None:
        """Stop the one answer with this turn, whatever its epoch."""
        ...

    async def forget(self, input: int) -> None:
        """Utterance ``input`` was dropped before it was committed."""
        ...

    async def truncate(self, fence: Fence, heard_chars: int, heard_samples: int) -> None:
        """Of the answer with ``fence`` only so much was heard; for models that keep state of their own."""
        ...

    async def update(self, config: SessionConfig) -> None:
        """The session's configuration changed; it holds from the next answer on."""
        ...

    async def close(self) -> None:
        """Give everything back. Called until it returns without raising."""
        ...


@dataclass(frozen=True, slots=True)
class PluginLoad:
    """How busy a plugin is: None where it does not know."""

    sessions: int = 0
    slots: int | None = None
    p95_step_ms: float | None = None
    healthy: bool = True


@runtime_checkable
class ModelPlugin(Protocol):
    """One model, loaded once, serving many sessions."""

    def capabilities(self) -> Capabilities: ...

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        """Return the configuration that will be in force (an unknown voice replaced by the one used).
        Raises ``ProtocolError`` with ``param`` for what the model must refuse. Called before every update."""
        ...

    async def start(self) -> None:
        """Load and warm up."""
        ...

    def create_session(self, session_id: str) -> ModelSession: ...

    def load(self) -> PluginLoad: ...

    async def stop(self) -> None: ...

    def detectors(self) -> Sequence[object]:
        """Speech detectors and turn models that the plugin brings (``runtime.detection``); usually none."""
        ...
