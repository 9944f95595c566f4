"""What a connection says, on its way to the machine: numbers that count once."""

from __future__ import annotations

import json
from typing import Any

from counterpoint.limits import Limits
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.protocol.config import SessionConfig, merge
from counterpoint.protocol.events import Event
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.intake import Intake
from counterpoint.session.inputs import CommandReceived, CommandRefused, Input, ModelOpened
from counterpoint.session.machine import SessionMachine


class Speaker:
    extended = True

    def __init__(self) -> None:
        self.told: list[Event] = []

    def extend(self) -> None:
        self.extended = True

    def say(self, event: Event) -> None:
        self.told.append(event)


def machine_with(limits: Limits, **changes: Any) -> SessionMachine:
    plugin = ScriptedPlugin({})
    config = merge(SessionConfig(), {"audio": {"input": {"turn_detection": None}}}, extended=True)
    return SessionMachine(
        "sess_test",
        config,
        plugin.capabilities(),
        limits,
        IdSource("00"),
        validate=plugin.validate,
        now=0.0,
        **changes,
    )


def intake(
    posted: list[Input], machine: SessionMachine | None = None, limits: Limits | None = None
) -> Intake:
    limits = limits or Limits()
    machine = machine or machine_with(limits)
    return Intake(
        machine,
        limits,
        posted.append,
        input_bytes=lambda: machine.held_input_bytes,
        acknowledge=lambda number: None,
        prove=lambda: None,
    )


def clear(number: int) -> str:
    return json.dumps({"type": "input_audio_buffer.clear", "client_event_seq": number})


async def test_the_event_that_opens_a_session_uses_its_number() -> None:
    """Any event with a number, the first ``session.update`` too (wire contract, section 2)."""
    posted: list[Input] = []
    line = intake(posted)
    line.count(1)
    line.receive(Speaker(), clear(2))
    assert [type(news) for news in posted] == [CommandReceived]
    assert line.last_number == 2
    line.stop()


async def test_a_session_that_was_opened_out_of_order_waits_for_the_first_number() -> None:
    posted: list[Input] = []
    line = intake(posted)
    line.count(7)
    line.receive(Speaker(), clear(8))
    (refused,) = posted
    assert isinstance(refused, CommandRefused)
    assert (refused.error.code, refused.error.expected) == ("client_event_gap", 1)


async def test_a_gap_is_told_whatever_the_first_event_behind_it_is() -> None:
    """Every later number would be ignored as told of already (case CASE-INV-7)."""
    posted: list[Input] = []
    line = intake(posted)
    line.receive(Speaker(), json.dumps({"type": "no.such.event", "client_event_seq": 3, "event_id": "x"}))
    line.receive(Speaker(), clear(4))
    (refused,) = posted
    assert isinstance(refused, CommandRefused)
    assert (refused.error.code, refused.error.event_id) == ("client_event_gap", "x")
    assert (refused.error.expected, line.last_number) == (1, 0)


async def test_a_commit_that_finds_too_many_turns_waiting_does_not_use_its_number() -> None:
    """Wire contract, section 2: its client says when to try again, and then it is carried out."""
    limits = Limits(max_pending_turns=1)
    machine = machine_with(limits, duplex=True)
    posted: list[Input] = []
    line = intake(posted, machine, limits)
    machine.receive(ModelOpened(), 0.0)
    append = {"type": "input_audio_buffer.append", "audio": "AAAA" * 1600}
    commit = {"type": "input_audio_buffer.commit"}
    for number, command in enumerate([append, commit, append, commit, append, commit], start=1):
        line.receive(Speaker(), json.dumps(command | {"client_event_seq": number}))
        machine.receive(posted[-1], 0.0)
    refused = posted[-1]
    assert isinstance(refused, CommandRefused)
    assert (refused.error.code, refused.client_event_seq) == ("input_backpressure", 6)
    assert refused.error.retry_after_ms
    assert line.last_number == 5
    line.stop()
