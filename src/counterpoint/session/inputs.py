"""Everything that a session machine can be told. One class per kind of news.

Owns: the closed union ``Input``.
Does not own: what follows from an input (``session.machine``).
Here because: a recorded list of inputs with their times is a session, replayable to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Fence, ModelEvent
from counterpoint.protocol.commands import Command


@dataclass(frozen=True, slots=True)
class CommandReceived:
    """A decoded client event, from the current attachment. ``cost`` is its size on the wire in bytes."""

    command: Command
    extended: bool
    cost: int = 0


@dataclass(frozen=True, slots=True)
class CommandRefused:
    """A client event that could not be decoded, or for which there was no room; answered in its place."""

    error: ProtocolError
    client_event_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Detected:
    """Speech probabilities of the 32 ms frames that chunk ``chunk`` (see ``effects.Detect``) completed."""

    chunk: int
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TurnChecked:
    """The turn model's probability that the speaker is done, for ``effects.CheckTurn`` number ``check``."""

    check: int
    probability: float


@dataclass(frozen=True, slots=True)
class StageOutput:
    """The model said something. Stale output dies where the machine takes this, and nowhere else."""

    fence: Fence
    event: ModelEvent


@dataclass(frozen=True, slots=True)
class ModelOpened:
    """The model side is open; what was asked of it before then was held back by the runner, in order."""


@dataclass(frozen=True, slots=True)
class ModelOpenFailed:
    message: str


@dataclass(frozen=True, slots=True)
class ModelRaised:
    """A call into the model raised. ``fence`` is that of the work; ``operation`` the method's name."""

    fence: Fence
    operation: str


@dataclass(frozen=True, slots=True)
class ResponseDrained:
    """``accepted`` said that nothing of this response is pending any more."""

    response_id: str


@dataclass(frozen=True, slots=True)
class ModelHeld:
    """The model side is held back because output waits, or goes on. Its time limits stop meanwhile."""

    held: bool


@dataclass(frozen=True, slots=True)
class Played:
    """The connection plays the audio itself, and has come to ``played_ms`` of an item."""

    item_id: str
    played_ms: int


@dataclass(frozen=True, slots=True)
class Attached:
    """A connection is attached. ``extended``: it speaks the extensions."""

    extended: bool


@dataclass(frozen=True, slots=True)
class Detached:
    """No connection is attached."""


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """The manager ends the session, with a reason of ``session.closed`` or ``.expired`` (wire, section 2)."""

    reason: str


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """The cleanup of the model side was attempted; ``ok`` says whether it succeeded."""

    ok: bool


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The time that ``next_deadline`` named has come."""


Input = (
    CommandReceived
    | CommandRefused
    | Detected
    | TurnChecked
    | StageOutput
    | ModelOpened
    | ModelOpenFailed
    | ModelRaised
    | ResponseDrained
    | ModelHeld
    | Played
    | Attached
    | Detached
    | CloseRequested
    | CleanedUp
    | DeadlineReached
)
