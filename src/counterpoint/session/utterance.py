"""The utterance that is open: being spoken, or being filled by hand.

Owns: ``Utterance`` and what is known of it while it grows.
Does not own: its audio (``audio.buffer``), its fate (``turns``).
Here because: input and turns speak of the same utterance and neither needs the rest of the other.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from counterpoint.audio.resample import StreamingResampler
from counterpoint.protocol.audio import SESSION_RATE, samples_to_ms

from .overlap import OverlapDecision
from .response import Unheard


@dataclass(frozen=True, slots=True)
class Recorded:
    """An utterance that is over, with its audio (24 kHz)."""

    utterance: Utterance
    pcm: bytes


class Standing(enum.Enum):
    """What speech over an answer has come to (wire contract, section 6, ``overlap_policy``)."""

    HIDDEN = enum.auto()  #: nobody was told: it may yet be no more than an acknowledgement
    LISTENED = enum.auto()  #: announced; it may yet interrupt
    SETTLED = enum.auto()  #: announced, and there is nothing left to decide


@dataclass(slots=True)
class Utterance:
    """Positions are samples of the session's input clock."""

    input: int  #: numbers the session's utterances from 1
    item_id: str  #: what it becomes when it is committed
    start: int
    onset: int  #: where speech itself began
    pushed: int  #: up to here the model has it
    resampler: StreamingResampler
    standing: Standing = Standing.SETTLED
    #: The newest decision about it, where it began over an answer.
    decision: OverlapDecision | None = None
    #: Where the speech before the newest pause ended; None: there was no pause.
    speech_end: int | None = None
    #: What was not heard of the answer that it interrupted, where the interruption may be taken back.
    unheard: Unheard | None = None

    @property
    def speech_ms(self) -> int | None:
        """How long it lasted, padding and the silence that ended it not counted; None: it was cut off."""
        return None if self.speech_end is None else samples_to_ms(self.speech_end - self.onset, SESSION_RATE)

    @property
    def start_ms(self) -> int:
        return samples_to_ms(self.start, SESSION_RATE)
