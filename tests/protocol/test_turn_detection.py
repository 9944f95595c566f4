"""Turn detection: defaults, merging, and values that no turn could end with."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.fields import Fields
from counterpoint.protocol.turn_detection import SemanticVad, ServerVad, TurnDetection, merge_turn_detection


def merge(current: TurnDetection | None, patch: dict[str, Any]) -> TurnDetection:
    return merge_turn_detection(current, Fields(patch, "td"))


def test_the_defaults_are_those_of_the_contract() -> None:
    """(wire contract, section 4)"""
    assert merge(None, {"type": "server_vad"}) == ServerVad(
        threshold=0.5,
        prefix_padding_ms=300,
        silence_duration_ms=500,
        min_speech_ms=96,
        create_response=True,
        interrupt_response=True,
        idle_timeout_ms=None,
        false_interruption_ms=0,
        detector=None,
    )
    assert merge(None, {"type": "semantic_vad"}) == SemanticVad(
        eagerness="auto",
        create_response=True,
        interrupt_response=True,
        false_interruption_ms=0,
        detector=None,
    )


def test_a_missing_key_keeps() -> None:
    current = ServerVad(threshold=0.7, idle_timeout_ms=5000, detector="amp")
    changed = merge(current, {"silence_duration_ms": 200, "create_response": False})
    assert changed == ServerVad(
        threshold=0.7, idle_timeout_ms=5000, detector="amp", silence_duration_ms=200, create_response=False
    )
    assert merge(current, {"type": "server_vad"}) == current


def test_null_clears_what_may_be_absent_and_keeps_the_rest() -> None:
    current = ServerVad(threshold=0.7, idle_timeout_ms=5000, detector="amp")
    changed = merge(current, {"threshold": None, "idle_timeout_ms": None, "detector": None})
    assert changed == ServerVad(threshold=0.7)
    assert merge(SemanticVad(detector="energy"), {"detector": None, "eagerness": None}) == SemanticVad()


def test_another_type_starts_from_its_defaults() -> None:
    current = ServerVad(create_response=False, threshold=0.7)
    assert merge(current, {"type": "semantic_vad", "eagerness": "low"}) == SemanticVad(eagerness="low")


def test_fields_of_the_other_type_are_ignored() -> None:
    """Clients send one object for both types, with nulls or leftovers in it."""
    assert merge(None, {"type": "semantic_vad", "threshold": 7, "idle_timeout_ms": None}) == SemanticVad()
    assert merge(None, {"type": "server_vad", "eagerness": "whatever", "foo": 1}) == ServerVad()


@pytest.mark.parametrize("threshold", [0.05, 0.10, 0.15, 0.16, 0.5, 1.0, 1])
def test_every_threshold_that_can_end_a_turn_is_accepted(threshold: float) -> None:
    """(case L-03)"""
    assert merge(None, {"type": "server_vad", "threshold": threshold}) == ServerVad(threshold=threshold)


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        ({"type": "server_vad", "threshold": 0}, "td.threshold"),
        ({"type": "server_vad", "threshold": 1.1}, "td.threshold"),
        ({"type": "server_vad", "threshold": 7}, "td.threshold"),
        ({"type": "server_vad", "threshold": "0.5"}, "td.threshold"),
        ({"type": "server_vad", "silence_duration_ms": -1}, "td.silence_duration_ms"),
        ({"type": "server_vad", "silence_duration_ms": 600_001}, "td.silence_duration_ms"),
        ({"type": "server_vad", "prefix_padding_ms": 0.5}, "td.prefix_padding_ms"),
        ({"type": "server_vad", "idle_timeout_ms": 0}, "td.idle_timeout_ms"),
        ({"type": "server_vad", "create_response": "yes"}, "td.create_response"),
        ({"type": "server_vad", "detector": "loud"}, "td.detector"),
        ({"type": "semantic_vad", "eagerness": "eager"}, "td.eagerness"),
        ({"type": "semantic_vad", "false_interruption_ms": -5}, "td.false_interruption_ms"),
        ({"type": "vad"}, "td.type"),
        ({"type": 5}, "td.type"),
        ({"threshold": 0.5}, "td.type"),
    ],
)
def test_unreachable_and_unknown_values_are_refused(patch: dict[str, Any], param: str) -> None:
    """(cases H-08 and L-03, invariant 104)"""
    with pytest.raises(ProtocolError) as refused:
        merge(None, patch)
    assert refused.value.param == param
