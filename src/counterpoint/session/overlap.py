"""What to do about a user who speaks while the model speaks.

Owns: the decision, and the words that only say "I am listening".
Does not own: finding speech (``runtime.detection``), counting it and acting on it (``turns``).
Here because: the decision is a pure function of its inputs, so that every branch stands in a table.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Action(enum.Enum):
    DROP = "drop"  #: it never happened
    LISTEN = "listen"  #: it is input, and the answer goes on
    BARGE_IN = "barge_in"  #: the answer stops


class Reason(enum.Enum):
    """Why; the ``reason`` of ``overlap.decision``."""

    CLIENT_ACTION = "client_action"
    FORCED = "forced_barge_in"
    ONSET = "speech_started"
    NATIVE = "model_decides"
    FORCE_LISTEN = "force_listen"
    SILENCE = "silence"
    IMAGE = "image_with_silence"
    ACKNOWLEDGEMENT = "short_acknowledgement"
    LISTEN_ONLY = "listen_only"
    SPEECH = "speech"
    SHORT = "short_speech"
    PENDING = "overlap_speech"
    LONG = "long_speech"

    @property
    def announced(self) -> bool:
        """The speech becomes a turn of its own: ``speech_started`` is sent."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OverlapConfig:
    """What the session's configuration and the model say. ``policy`` None: ``interrupt_response`` decides."""

    policy: str | None = None
    interrupt_response: bool = True
    native: bool = False
    audio_required: bool = True
    short_ack_ms: int = 700
    barge_in_ms: int = 1200
    silence_rms: float = 0.003


@dataclass(frozen=True, slots=True)
class OverlapInput:
    """One piece of input that came while an answer was spoken."""

    client_action: bool = False  #: ``barge_in`` and its like
    forced: bool = False  #: barge in whatever the policy
    force_listen: bool = False
    is_speech: bool | None = None  #: the client's own word for it
    onset: bool | None = None  #: the detector: speech began (True), did not (False), not known (None)
    detected: bool | None = None  #: the detector: this is speech
    probability: float | None = None
    rms: float | None = None  #: of full scale; None: the audio could not be decoded
    images: bool = False
    speech_ms: int = 0  #: accumulated overlapping speech, this piece included
    transcript: str | None = None  #: its words so far, where known
    language: str = "en"


@dataclass(frozen=True, slots=True)
class OverlapDecision:
    action: Action
    reason: Reason


def decide(config: OverlapConfig, input: OverlapInput) -> OverlapDecision:
    """The first rule that applies (in the order of invariant 101)."""
    raise NotImplementedError


def is_speech(config: OverlapConfig, input: OverlapInput) -> bool:
    """The client's word, else the detector's, else a probability of at least 0.5, else loudness; unknown is speech."""
    raise NotImplementedError


def is_acknowledgement(text: str, language: str) -> bool:
    """``text`` says no more than that its speaker is listening."""
    raise NotImplementedError
