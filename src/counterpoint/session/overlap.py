"""What to do about a user who speaks while the model speaks.

Owns: the decision.
Does not own: finding speech (``audio``), counting it and acting on the decision (``turns``), the words that
only say "I am listening" (``acknowledgements``).
Here because: the decision is a function of its inputs alone, so that every branch stands in one table.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import assert_never

from counterpoint.protocol.config import OverlapPolicy

from .acknowledgements import is_acknowledgement

#: A detector that gives a probability means speech from here on.
SPEECH_PROBABILITY = 0.5


class Action(enum.StrEnum):
    DROP = "drop"  #: it is not even input
    LISTEN = "listen"  #: it is input, and the answer goes on
    BARGE_IN = "barge_in"  #: the answer stops


class Reason(enum.StrEnum):
    """Why; the ``reason`` of ``overlap.decision``."""

    CLIENT_ACTION = "client_action"
    FORCED = "forced"
    UNSUPPORTED = "barge_in_unsupported"
    ONSET = "speech_started"
    MODEL_DECIDES = "model_decides"
    FORCE_LISTEN = "force_listen"
    SILENCE = "silence"
    IMAGES = "images"
    ACKNOWLEDGEMENT = "acknowledgement"
    LISTEN_ONLY = "listen_only"
    SPEECH = "speech"
    SHORT = "short_speech"
    ACCUMULATING = "accumulating_speech"
    LONG = "long_speech"


#: Nobody is told of speech then: no ``speech_started``, no item, no response (wire contract, section 6).
_UNANNOUNCED = (Reason.SILENCE, Reason.IMAGES, Reason.ACKNOWLEDGEMENT, Reason.SHORT)


@dataclass(frozen=True, slots=True)
class OverlapConfig:
    """What the session's configuration and the model say."""

    policy: OverlapPolicy | None = (
        None  #: None: ``interrupt_response`` decides; a native model decides itself
    )
    interrupt_response: bool = True
    native: bool = False  #: the model hears everything, also while it speaks
    barge_in: bool = True  #: the model can be interrupted
    audio_required: bool = True  #: images without speech are no input
    short_ack_ms: int = 700
    barge_in_ms: int = 1200
    silence_rms: float = 0.003


@dataclass(frozen=True, slots=True)
class OverlapInput:
    """One piece of input that came while the answer was spoken."""

    client_action: bool = False  #: ``barge_in`` and what is like it
    forced: bool = False  #: interrupt, whatever the policy
    force_listen: bool = False
    is_speech: bool | None = None  #: the client's word for it
    onset: bool | None = None  #: speech began in this piece; None: no detector is at work
    detected: bool | None = None  #: the detector's verdict on this piece
    probability: float | None = None
    rms: float | None = None  #: of full scale; None: the audio could not be decoded
    images: bool = False
    speech_ms: int = 0  #: overlapping speech so far, with this piece; silence in between does not reset it
    transcript: str = ""  #: the words so far, where they are known
    language: str = "en"


@dataclass(frozen=True, slots=True)
class OverlapDecision:
    action: Action
    reason: Reason

    @property
    def announced(self) -> bool:
        """The speech is a turn of its own: ``speech_started`` is sent, an item follows."""
        return self.reason not in _UNANNOUNCED


def decide(config: OverlapConfig, input: OverlapInput) -> OverlapDecision:
    """What to do, and why; the first rule that applies, in the order of invariant 101.

    Where the model cannot be interrupted, the answer goes on (invariant 96).
    """
    decision = _explicit(config, input) or _by_policy(config, input)
    if decision.action is Action.BARGE_IN and not config.barge_in:
        return OverlapDecision(Action.LISTEN, Reason.UNSUPPORTED)
    return decision


def is_speech(config: OverlapConfig, input: OverlapInput) -> bool:
    """The client's word, else the detector's, else its probability, else loudness.

    Audio that cannot be decoded counts as speech: what was not understood must not be dropped.
    """
    if input.is_speech is not None:
        return input.is_speech
    if input.detected is not None:
        return input.detected
    if input.probability is not None:
        return input.probability >= SPEECH_PROBABILITY
    return input.rms is None or input.rms >= config.silence_rms


def _explicit(config: OverlapConfig, input: OverlapInput) -> OverlapDecision | None:
    """The rules that come before the policy."""
    if input.client_action:
        return OverlapDecision(Action.BARGE_IN, Reason.CLIENT_ACTION)
    if input.forced:
        return OverlapDecision(Action.BARGE_IN, Reason.FORCED)
    if config.native:
        return _native(config, input)
    if input.force_listen:
        return OverlapDecision(Action.LISTEN, Reason.FORCE_LISTEN)
    if not is_speech(config, input):
        if input.images and not config.audio_required:
            return OverlapDecision(Action.LISTEN, Reason.IMAGES)
        return OverlapDecision(Action.DROP, Reason.SILENCE)
    return None


def _native(config: OverlapConfig, input: OverlapInput) -> OverlapDecision:
    """A native model is fed whatever comes; only an onset cuts it, and only if the client asked for that."""
    if config.policy is OverlapPolicy.BARGE_IN_ON_SPEECH:
        if input.onset:
            return OverlapDecision(Action.BARGE_IN, Reason.ONSET)
        if input.onset is None and is_speech(config, input):
            return OverlapDecision(Action.BARGE_IN, Reason.SPEECH)
    return OverlapDecision(Action.LISTEN, Reason.MODEL_DECIDES)


def _by_policy(config: OverlapConfig, input: OverlapInput) -> OverlapDecision:
    if config.policy is not None and is_acknowledgement(input.transcript, input.language):
        return OverlapDecision(Action.LISTEN, Reason.ACKNOWLEDGEMENT)
    match config.policy:
        case None if config.interrupt_response:
            return OverlapDecision(Action.BARGE_IN, Reason.SPEECH)
        case None | OverlapPolicy.LISTEN_ONLY:
            return OverlapDecision(Action.LISTEN, Reason.LISTEN_ONLY)
        case OverlapPolicy.BARGE_IN_ON_SPEECH:
            return OverlapDecision(Action.BARGE_IN, Reason.SPEECH)
        case OverlapPolicy.GRADED:
            return _graded(config, input)
    assert_never(config.policy)


def _graded(config: OverlapConfig, input: OverlapInput) -> OverlapDecision:
    if input.speech_ms >= config.barge_in_ms:
        return OverlapDecision(Action.BARGE_IN, Reason.LONG)
    if input.speech_ms > config.short_ack_ms:
        return OverlapDecision(Action.LISTEN, Reason.ACCUMULATING)
    return OverlapDecision(Action.LISTEN, Reason.SHORT)
