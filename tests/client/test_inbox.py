"""The cursor is the number on the newest event, and each number counts once (case A-09)."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.client.event import Event
from counterpoint.client.inbox import Inbox


def numbered(number: int) -> Event:
    return Event({"type": "x", "server_event_seq": number})


def inbox(*, interval_s: float = 1.0, every: int = 64) -> Inbox:
    return Inbox(interval_s=interval_s, every=every)


def test_doubled_events_are_dropped_and_the_cursor_is_a_number_not_a_count() -> None:
    """Case A-09."""
    box = inbox()
    accepted = [number for number in (1, 2, 2, 3, 3, 4) if box.accept(numbered(number), 0.0)]
    assert accepted == [1, 2, 3, 4]
    assert box.cursor == 4


def test_holes_do_not_disturb() -> None:
    box = inbox()
    assert [box.accept(numbered(number), 0.0) for number in (480, 482, 481)] == [True, True, False]
    assert box.cursor == 482


def test_unnumbered_events_pass_and_do_not_count() -> None:
    box = inbox()
    assert box.accept(Event({"type": "session.heartbeat_ack"}), 0.0)
    assert (box.cursor, box.ack_at) == (0, None)


@pytest.mark.parametrize(
    ("event", "cursor"),
    [
        ({"type": "session.snapshot", "as_of_server_event_seq": 40}, 40),
        ({"type": "session.skipped", "from": 8, "to": 12}, 12),
        ({"type": "session.snapshot", "as_of_server_event_seq": 3}, 7),
        ({"type": "session.snapshot", "as_of_server_event_seq": "40"}, 7),
        ({"type": "session.skipped"}, 7),
    ],
)
def test_numbers_that_will_never_come_count_as_read(event: dict[str, Any], cursor: int) -> None:
    box = inbox()
    box.accept(numbered(7), 0.0)
    assert box.accept(Event(event), 0.0)
    assert box.cursor == cursor


def test_what_was_read_is_acknowledged_after_the_interval() -> None:
    box = inbox(interval_s=1.0)
    box.accept(numbered(1), 10.0)
    box.accept(numbered(2), 10.5)
    assert box.ack_at == 11.0
    assert box.take_acknowledgement(10.9) is None
    assert box.take_acknowledgement(11.0) == 2
    assert box.take_acknowledgement(99.0) is None


def test_or_after_so_many_events() -> None:
    box = inbox(every=3)
    for number in (1, 2):
        box.accept(numbered(number), 0.0)
    assert box.take_acknowledgement(0.0) is None
    box.accept(numbered(3), 0.0)
    assert box.take_acknowledgement(0.0) == 3
    box.accept(numbered(4), 0.0)
    assert box.take_acknowledgement(0.0) is None


def test_an_acknowledgement_can_be_due_without_an_event() -> None:
    """After a resume it proves that the new token arrived."""
    box = inbox()
    box.cursor = 5
    box.acknowledge_at(3.0)
    assert box.take_acknowledgement(3.0) == 5
