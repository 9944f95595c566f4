"""An answer reaches who asked for it, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.client.event import Event
from counterpoint.client.requests import Requests
from counterpoint.errors import ServerRefused, SessionEnded


def is_type(type: str) -> Callable[[Event], Event | None]:
    return lambda event: event if event.type == type else None


def error_about(event_id: Any, **fields: Any) -> Event:
    error = {"code": "invalid_event", "message": "no", "event_id": event_id, **fields}
    return Event({"type": "error", "error": error})


async def test_answers_are_given_in_the_order_of_the_questions() -> None:
    requests = Requests()
    first, second = (requests.expect(name, is_type("done")) for name in ("a", "b"))
    one, two = Event({"type": "done"}), Event({"type": "done"})
    for event in (Event({"type": "other"}), one, two):
        requests.offer(event)
    assert (await first, await second) == (one, two)


async def test_an_error_reaches_the_one_whose_event_it_names() -> None:
    requests = Requests()
    first, second = (requests.expect(name, is_type("done")) for name in ("a", "b"))
    requests.offer(error_about("a", param="session.x", retry_after_ms=250))
    requests.offer(Event({"type": "done"}))
    with pytest.raises(ServerRefused, match="invalid_event: no") as refused:
        await first
    assert (refused.value.param, refused.value.retry_after_ms) == ("session.x", 250)
    await second


@pytest.mark.parametrize("event_id", [None, "z", 5])
async def test_an_error_about_something_else_reaches_nobody(event_id: Any) -> None:
    requests = Requests()
    waiting = requests.expect("a", is_type("done"))
    requests.offer(error_about(event_id))
    assert not waiting.done()


async def test_who_no_longer_waits_keeps_his_place() -> None:
    """Answers name no question: the next in line must not get the answer of one who left."""
    requests = Requests()
    left, stays = (requests.expect(name, is_type("done")) for name in ("a", "b"))
    left.cancel()
    requests.offer(Event({"type": "done"}))
    assert not stays.done()
    requests.offer(Event({"type": "done"}))
    await stays


async def test_it_knows_who_still_waits() -> None:
    requests = Requests()
    waiting = requests.expect("a", is_type("done"))
    assert (requests.is_awaited("a"), requests.is_awaited("b")) == (True, False)
    waiting.cancel()
    await asyncio.sleep(0)
    assert not requests.is_awaited("a")


async def test_an_end_is_told_to_all_who_are_concerned() -> None:
    requests = Requests()
    first, second = (requests.expect(name, is_type("done")) for name in ("a", "b"))
    requests.fail(SessionEnded("failed"), lambda event_id: event_id == "a")
    with pytest.raises(SessionEnded):
        await first
    assert not second.done()
    requests.fail(SessionEnded("failed"))
    with pytest.raises(SessionEnded):
        await second
