"""Blocking calls from the loop: results, order, and callers that lose interest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from counterpoint.errors import StaleFence
from counterpoint.models.cascade.worker import Worker
from counterpoint.models.voice.cancellation import Cancelled, stop_if


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("engine")
    yield worker
    worker.stop()


class Engine:
    """A call that goes on until it is told to stop."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()

    def run(self, cancelled: Cancelled) -> str:
        self.begun.set()
        try:
            while True:
                stop_if(cancelled)
        finally:
            self.ended.set()

    def count(self, cancelled: Cancelled) -> Iterator[int]:
        try:
            for number in range(1_000_000):
                stop_if(cancelled)
                yield number
        finally:
            self.ended.set()


async def test_a_call_runs_on_the_engines_thread(worker: Worker) -> None:
    name = await worker.run(lambda cancelled: threading.current_thread().name)
    assert name.startswith("engine")


async def test_what_a_call_raises_is_raised(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda cancelled: 1 // 0)


async def test_a_running_call_is_told_that_nobody_waits(worker: Worker) -> None:
    engine = Engine()
    caller = asyncio.create_task(worker.run(engine.run))
    await asyncio.to_thread(engine.begun.wait)
    caller.cancel()
    await asyncio.to_thread(engine.ended.wait)
    assert caller.cancelled()
    assert await worker.run(lambda cancelled: "next") == "next"


async def test_a_waiting_call_that_nobody_wants_never_runs(worker: Worker) -> None:
    engine, unwanted = Engine(), Engine()
    first = asyncio.create_task(worker.run(engine.run))
    second = asyncio.create_task(worker.run(unwanted.run))
    await asyncio.to_thread(engine.begun.wait)
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    await worker.run(lambda cancelled: None)
    assert not unwanted.begun.is_set()


async def test_a_stream_comes_in_order_and_ends(worker: Worker) -> None:
    items = worker.stream(lambda cancelled: iter(range(100)))
    assert [item async for item in items] == list(range(100))


async def test_a_failure_of_a_stream_comes_after_its_items(worker: Worker) -> None:
    def fails(cancelled: Cancelled) -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    items = worker.stream(fails)
    assert await anext(items) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(items)


async def test_closing_a_stream_stops_its_engine(worker: Worker) -> None:
    engine = Engine()
    async with aclosing(worker.stream(engine.count)) as items:
        async for item in items:
            if item == 10:
                break
    await asyncio.to_thread(engine.ended.wait)


async def test_an_engine_that_gives_up_by_itself_is_a_failure(worker: Worker) -> None:
    def gives_up(cancelled: Cancelled) -> str:
        raise StaleFence("not wanted")

    with pytest.raises(StaleFence):
        await worker.run(gives_up)
