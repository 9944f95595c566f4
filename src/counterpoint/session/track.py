"""The audio of one response and of its items, as far as it has come.

Owns: ``Track`` and ``Part``: how much was generated, handed over, acknowledged, cut away.
Does not own: what follows from it (``playback``).
Here because: a response's audio is that of its items one after the other, and both are asked for.

Positions are samples of the session's output rate, and characters.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from .alignment import Alignment
from .playhead import Playhead


class TrackState(enum.Enum):
    SPEAKING = "speaking"  #: more may be generated and handed over
    DONE = "done"  #: the client may still be playing
    STOPPED = "stopped"  #: interrupted: what was heard is final


@dataclass(slots=True, eq=False)
class Track:
    """The audio of one response: that of its items, one after the other."""

    response_id: str
    rate: int
    state: TrackState = TrackState.SPEAKING
    parts: list[Part] = field(default_factory=list)
    sent: int = 0
    playhead: Playhead | None = None  #: from the first audio that is handed over
    clocked: bool = False  #: whoever plays it says where it is: nothing is guessed any more


@dataclass(slots=True, eq=False)
class Part:
    item_id: str
    track: Track
    alignment: Alignment
    start: int = 0  #: in the audio of the response
    sent: int = 0
    sent_chars: int = 0
    acked: int = 0  #: played for certain
    early: int = 0  #: acknowledged before the item existed
    limit: int | None = None  #: the smallest truncation

    @property
    def end(self) -> int:
        """How much of what was handed over a client may play."""
        return self.sent if self.limit is None else min(self.sent, self.limit)

    @property
    def whole(self) -> bool:
        """Nothing more will be handed over."""
        if self.track.state is not TrackState.SPEAKING:
            return True
        generated = self.alignment
        return generated.complete and self.sent >= generated.samples and self.sent_chars >= generated.chars

    def acknowledge(self, samples: int) -> None:
        if self.track.state is not TrackState.STOPPED:
            self.acked = max(self.acked, min(samples, self.end))
