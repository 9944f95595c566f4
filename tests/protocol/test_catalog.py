"""The catalog: total, and consistent with what the contract says of event types."""

from __future__ import annotations

from typing import get_args

import pytest

from counterpoint.protocol import events
from counterpoint.protocol.catalog import CATALOG, Fence, Nature, kind_of
from counterpoint.protocol.events import Event
from counterpoint.testing.schema.events import official

from .examples import EVENTS
from .schemas import SERVER_EVENTS, UNSAID_EVENTS

CLASSES: tuple[type[events.BaseEvent], ...] = get_args(Event)


def test_every_event_type_has_a_line_and_every_line_an_event_type() -> None:
    assert {str(event.__struct_config__.tag) for event in CLASSES} == set(CATALOG)
    assert len(CLASSES) == len(CATALOG)


def test_every_event_type_has_an_example() -> None:
    """What the tests of this folder say of every example holds of every event type."""
    assert {type(event) for event in EVENTS} == set(CLASSES)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_knows_its_kind(event: Event) -> None:
    kind = kind_of(event)
    assert kind is CATALOG[kind.type]
    assert kind.type == type(event).__struct_config__.tag


def test_ids_are_dense() -> None:
    assert [kind.id for kind in CATALOG.values()] == list(range(len(CATALOG)))


def test_official_is_what_the_official_schema_knows() -> None:
    """All but a server's own tools, telephone keys, speakers, and two older names (case I-02)."""
    assert frozenset(official()["server"]) > UNSAID_EVENTS
    assert {kind.type for kind in CATALOG.values() if kind.official} == SERVER_EVENTS


def test_connection_scoped_is_what_the_contract_lists() -> None:
    """(wire contract, section 1; ``error`` depends on its frame)"""
    assert {kind.type for kind in CATALOG.values() if kind.connection_scoped} == {
        "session.created",
        "session.resumed",
        "session.snapshot",
        "session.skipped",
        "session.replaced",
        "session.heartbeat_ack",
        "session.input_ack",
        "session.go_away",
        "session.queued",
    }


def test_only_audio_is_dropped_by_a_replay_policy() -> None:
    """(wire contract, section 3)"""
    assert [kind.type for kind in CATALOG.values() if kind.droppable] == ["response.output_audio.delta"]


def test_an_interruption_discards_deltas_and_terminals_and_nothing_else() -> None:
    """Openings die with their item only; what is about the whole response stays (wire, section 6)."""
    discarded = {kind.type for kind in CATALOG.values() if kind.discarded}
    assert discarded == {
        "conversation.item.done",
        "response.output_item.done",
        "response.content_part.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.delta",
        "response.output_audio_transcript.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    }


def test_facts_are_what_the_design_lists() -> None:
    assert {kind.type for kind in CATALOG.values() if kind.nature is Nature.FACT} == {
        "session.created",
        "session.updated",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.deleted",
        "conversation.item.truncated",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.done",
        "response.function_call_arguments.done",
    }


def test_what_is_not_in_the_log_has_no_fence() -> None:
    for kind in CATALOG.values():
        assert (kind.fence is Fence.NONE) == kind.connection_scoped, kind.type


def test_work_on_input_is_fenced_by_its_item() -> None:
    for kind in CATALOG.values():
        if "transcription" in kind.type:
            assert kind.fence is Fence.ITEM, kind.type
