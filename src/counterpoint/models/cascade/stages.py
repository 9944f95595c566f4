"""What a stage of the cascade is: three small interfaces, and the values that pass between them.

Owns: ``Transcriber``, ``Transcription``, ``LanguageModel``, ``Synthesizer``, ``Stages`` and their values.
Does not own: any engine (``embedded``), the order in which stages run (``answer``).
Here because: each stage can be replaced in one file, by another engine or by a server elsewhere.

Stages are shared by all sessions and are called on the event loop; what blocks is their own matter. Whoever
awaits a stage may be cancelled at any moment: the stage then stops as soon as it can, and says nothing more.
A stage that fails raises (``StageFailed``, where it knows why); the failure ends the one response or
transcript that it worked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from counterpoint.plugins.contract import ToolCall, TurnStatus
from counterpoint.protocol.tools import Tool, ToolChoice

#: Rate of the audio that recognition is fed with.
INPUT_RATE = 16_000


class Transcription(Protocol):
    """One utterance on its way into words."""

    def feed(self, pcm: bytes) -> None:
        """More of the utterance: int16 at ``INPUT_RATE``. Recognition may start on it at once."""
        ...

    async def text(self) -> str:
        """The words of all that was fed until now; "" where there are none. May be asked again after more."""
        ...

    def cancel(self) -> None:
        """Nobody wants the words any more."""
        ...


class Transcriber(Protocol):
    def start(self) -> Transcription: ...


Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A function that was called, and what it returned."""

    call_id: str
    name: str
    arguments: str
    output: str


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation as a language model reads it; ``use`` of a tool has no text."""

    role: Role
    text: str
    use: ToolUse | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """How an answer is to be written. ``session`` lets a model keep what it has read of a conversation."""

    session: str
    max_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"


@dataclass(frozen=True, slots=True)
class PromptRead:
    """The model has read so many tokens, ``cached`` of them earlier."""

    tokens: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of the answer."""

    text: str
    tokens: int = 1


@dataclass(frozen=True, slots=True)
class Finish:
    """How the model says that it ended; ``tokens`` of the answer, where it counted them."""

    status: TurnStatus
    tokens: int | None = None


Written = PromptRead | Piece | ToolCall | Finish


class LanguageModel(Protocol):
    def stream(self, messages: Sequence[Message], writing: Writing) -> AsyncGenerator[Written]:
        """The answer to ``messages`` as it is written. Closing the generator stops the model."""
        ...

    async def prefill(self, session: str, messages: Sequence[Message]) -> None:
        """Read ``messages`` ahead of time: the next conversation of ``session`` begins with them."""
        ...

    def release(self, session: str) -> None:
        """The session has gone: keep nothing for it."""
        ...


class Synthesizer(Protocol):
    async def synthesize(self, text: str, voice: str) -> bytes:
        """``text``, a clause or a sentence, spoken: int16 at 24 kHz; no bytes for text without a sound."""
        ...


@dataclass(frozen=True, slots=True)
class Stages:
    """One of each, shared by all sessions."""

    transcriber: Transcriber
    language_model: LanguageModel
    synthesizer: Synthesizer
    #: An answer ends after so many sentences; None where the language model ends well by itself.
    sentences: int | None = None
    #: Turns of the user that a prompt has at least, as far as there are any; it has fewer than twice as many.
    turns: int = 2
    #: The language model knows tools.
    tools: bool = False
