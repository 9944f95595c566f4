"""What every part of a session machine may read.

Owns: ``RunState``: lifecycle, the reason of the end, epoch, turn, the model side, who listens, the time of
the step.
Does not own: what a part keeps to itself (turns, responses, playback, conversation, tools).
Here because: the parts meet here instead of in each other. Admission rule: a field stands here when one part
writes it and another reads it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from counterpoint.plugins.contract import Capabilities, Fence, Interaction
from counterpoint.protocol.config import SessionConfig


class Lifecycle(enum.Enum):
    """``session.state`` on the wire."""

    OPEN = "open"
    CLOSING = "closing"  #: nothing is submitted to the model any more; its cleanup was asked for
    ENDED = "closed"  #: the terminal event was emitted


class ModelSide(enum.Enum):
    OPENING = enum.auto()
    OPEN = enum.auto()
    HELD = enum.auto()  #: output waits, so the model may not go on
    CLOSED = enum.auto()  #: nothing more is submitted


@dataclass(slots=True)
class RunState:
    session_id: str
    capabilities: Capabilities
    #: Opened with ``duplex=1``: a commit without a detector starts a response. Outlives the connection.
    duplex: bool
    #: Written by ``configure`` alone, always whole.
    config: SessionConfig
    #: Time of the step in progress; written by the machine before anything else.
    now: float
    #: Written by ``responses`` alone: an interruption and its consequences are one.
    epoch: int = 0
    #: The model's turn, from 1; written by ``responses``: a turn that is cancelled is not over.
    turn_id: int = 1
    #: Audio was generated; written by ``output``: the voice stays from then on.
    spoke: bool = False
    lifecycle: Lifecycle = Lifecycle.OPEN
    #: Why the session ends (wire contract, section 2); set with ``CLOSING``.
    reason: str | None = None
    model: ModelSide = ModelSide.OPENING
    #: A session is opened by a connection.
    attached: bool = True

    @property
    def native(self) -> bool:
        """The model hears everything and decides itself when to speak."""
        return self.capabilities.interaction.native

    @property
    def language(self) -> str:
        """Of the user, as far as the client says."""
        hints = self.config.audio.input.transcription
        return (hints.language if hints else None) or "en"

    @property
    def can_truncate(self) -> bool:
        """A turn-based model is told the whole history each time; others must forget by themselves."""
        return self.capabilities.truncate or self.capabilities.interaction is Interaction.TURN

    def fence(self, turn: int = 0) -> Fence:
        """Proof of freshness for work that starts now; ``turn`` 0 is work on input."""
        return Fence(self.session_id, self.epoch, turn)
