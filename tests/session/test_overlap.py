"""The decision about overlapping speech, branch by branch (invariants 101 to 103; wire contract, 6)."""

from __future__ import annotations

import pytest

from counterpoint.protocol.config import OverlapPolicy
from counterpoint.session.overlap import Action, OverlapConfig, OverlapInput, Reason, decide, is_speech

BARGE_IN, LISTEN, DROP = Action.BARGE_IN, Action.LISTEN, Action.DROP

LISTEN_ONLY = OverlapConfig(policy=OverlapPolicy.LISTEN_ONLY)
ON_SPEECH = OverlapConfig(policy=OverlapPolicy.BARGE_IN_ON_SPEECH)
GRADED = OverlapConfig(policy=OverlapPolicy.GRADED)
POLITE = OverlapConfig(interrupt_response=False)
DEFAULT = OverlapConfig()
NATIVE = OverlapConfig(native=True)
NATIVE_GRADED = OverlapConfig(native=True, policy=OverlapPolicy.GRADED)
NATIVE_ON_SPEECH = OverlapConfig(native=True, policy=OverlapPolicy.BARGE_IN_ON_SPEECH)
SEEING = OverlapConfig(audio_required=False)
DEAF_TO_BARGE_IN = OverlapConfig(barge_in=False)

SPEECH = OverlapInput(detected=True, speech_ms=100)
SILENCE = OverlapInput(detected=False)
UH_HUH = OverlapInput(detected=True, speech_ms=5000, transcript="Uh-huh.")


def graded(speech_ms: int) -> OverlapInput:
    return OverlapInput(detected=True, speech_ms=speech_ms)


TABLE = [
    # What the client asks for comes before everything, silence and policies included.
    (LISTEN_ONLY, OverlapInput(client_action=True, detected=False), BARGE_IN, Reason.CLIENT_ACTION),
    (NATIVE, OverlapInput(client_action=True, forced=True), BARGE_IN, Reason.CLIENT_ACTION),
    (LISTEN_ONLY, OverlapInput(forced=True, force_listen=True), BARGE_IN, Reason.FORCED),
    (NATIVE, OverlapInput(forced=True), BARGE_IN, Reason.FORCED),
    # A native model hears everything and decides itself, unless it was asked to stop at an onset.
    (NATIVE, SPEECH, LISTEN, Reason.MODEL_DECIDES),
    (NATIVE, SILENCE, LISTEN, Reason.MODEL_DECIDES),
    (NATIVE_GRADED, graded(5000), LISTEN, Reason.MODEL_DECIDES),
    (NATIVE_ON_SPEECH, OverlapInput(onset=True), BARGE_IN, Reason.ONSET),
    (NATIVE_ON_SPEECH, OverlapInput(onset=False, detected=True), LISTEN, Reason.MODEL_DECIDES),
    (NATIVE_ON_SPEECH, OverlapInput(rms=0.2), BARGE_IN, Reason.SPEECH),
    (NATIVE_ON_SPEECH, OverlapInput(rms=0.0), LISTEN, Reason.MODEL_DECIDES),
    # Then the client's flag, then silence.
    (ON_SPEECH, OverlapInput(force_listen=True, detected=True), LISTEN, Reason.FORCE_LISTEN),
    (ON_SPEECH, OverlapInput(force_listen=True, detected=False), LISTEN, Reason.FORCE_LISTEN),
    (ON_SPEECH, SILENCE, DROP, Reason.SILENCE),
    (LISTEN_ONLY, SILENCE, DROP, Reason.SILENCE),
    (GRADED, OverlapInput(detected=False, speech_ms=5000), DROP, Reason.SILENCE),
    (DEFAULT, OverlapInput(detected=False, images=True), DROP, Reason.SILENCE),
    (SEEING, OverlapInput(detected=False, images=True), LISTEN, Reason.IMAGES),
    (SEEING, SILENCE, DROP, Reason.SILENCE),
    # Known words of a listener come before every policy that was set.
    (LISTEN_ONLY, UH_HUH, LISTEN, Reason.ACKNOWLEDGEMENT),
    (ON_SPEECH, UH_HUH, LISTEN, Reason.ACKNOWLEDGEMENT),
    (GRADED, UH_HUH, LISTEN, Reason.ACKNOWLEDGEMENT),
    # Without a policy, interrupt_response alone decides.
    (DEFAULT, SPEECH, BARGE_IN, Reason.SPEECH),
    (DEFAULT, UH_HUH, BARGE_IN, Reason.SPEECH),
    (POLITE, SPEECH, LISTEN, Reason.LISTEN_ONLY),
    # Policies.
    (LISTEN_ONLY, SPEECH, LISTEN, Reason.LISTEN_ONLY),
    (ON_SPEECH, SPEECH, BARGE_IN, Reason.SPEECH),
    (GRADED, graded(0), LISTEN, Reason.SHORT),
    (GRADED, graded(700), LISTEN, Reason.SHORT),
    (GRADED, graded(701), LISTEN, Reason.ACCUMULATING),
    (GRADED, graded(1199), LISTEN, Reason.ACCUMULATING),
    (GRADED, graded(1200), BARGE_IN, Reason.LONG),
    # A model that cannot be interrupted listens (invariant 96).
    (DEAF_TO_BARGE_IN, SPEECH, LISTEN, Reason.UNSUPPORTED),
    (DEAF_TO_BARGE_IN, OverlapInput(client_action=True), LISTEN, Reason.UNSUPPORTED),
    (DEAF_TO_BARGE_IN, SILENCE, DROP, Reason.SILENCE),
]


@pytest.mark.parametrize(("config", "input", "action", "reason"), TABLE)
def test_decision(config: OverlapConfig, input: OverlapInput, action: Action, reason: Reason) -> None:
    decision = decide(config, input)
    assert (decision.action, decision.reason) == (action, reason)


def test_every_reason_has_a_row() -> None:
    assert {reason for *_, reason in TABLE} == set(Reason)


@pytest.mark.parametrize(
    ("input", "verdict"),
    [
        (OverlapInput(is_speech=True, detected=False, probability=0.0, rms=0.0), True),
        (OverlapInput(is_speech=False, detected=True, probability=1.0, rms=1.0), False),
        (OverlapInput(detected=True, probability=0.0, rms=0.0), True),
        (OverlapInput(detected=False, probability=1.0, rms=1.0), False),
        (OverlapInput(probability=0.5, rms=0.0), True),
        (OverlapInput(probability=0.49, rms=1.0), False),
        (OverlapInput(rms=0.003), True),
        (OverlapInput(rms=0.0029), False),
        (OverlapInput(), True),
    ],
)
def test_the_better_witness_of_speech_is_believed(input: OverlapInput, verdict: bool) -> None:
    """Invariant 101: flag, detector, probability, loudness; audio that cannot be decoded is speech."""
    assert is_speech(DEFAULT, input) is verdict


@pytest.mark.parametrize("speech_ms", [0, 699, 701, 1300])
def test_thresholds_are_the_sessions(speech_ms: int) -> None:
    config = OverlapConfig(policy=OverlapPolicy.GRADED, short_ack_ms=0, barge_in_ms=0)
    assert decide(config, graded(speech_ms)).action is BARGE_IN


def test_graded_speech_is_announced_once_it_is_more_than_an_acknowledgement() -> None:
    """Wire contract, section 6; invariant 85: a short acknowledgement makes no item and no response."""
    announced = [decide(GRADED, graded(speech_ms)).announced for speech_ms in (700, 701, 1200)]
    assert announced == [False, True, True]
    assert not decide(GRADED, UH_HUH).announced
    assert not decide(GRADED, SILENCE).announced
    assert decide(LISTEN_ONLY, SPEECH).announced
