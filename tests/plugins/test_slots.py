"""Batched stepping of independent sessions (invariants 130, 131, 153)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ModelOpenFailed
from counterpoint.plugins.contract import Failure, Fence, Scope, TextDelta
from counterpoint.plugins.slot_lease import SlotLease
from counterpoint.plugins.slots import SlotScheduler
from counterpoint.plugins.step_model import StepModel
from counterpoint.plugins.step_worker import InlineWorker, StepWorker, ThreadWorker
from counterpoint.protocol.config import SessionConfig
from counterpoint.testing import virtual_time

from .step_models import BAD, Outlet, Prompted, Tally, alone, unit


@asynccontextmanager
async def serving(
    model: StepModel, worker: StepWorker | None = None, *, backlog: int = 100
) -> AsyncIterator[SlotScheduler]:
    scheduler = SlotScheduler(model, worker or InlineWorker(0.01), backlog=backlog)
    await scheduler.start()
    try:
        yield scheduler
    finally:
        await scheduler.stop()


async def owner(scheduler: SlotScheduler, name: str = "s") -> tuple[SlotLease, Outlet]:
    outlet = Outlet()
    lease = scheduler.reserve(name, outlet)
    await scheduler.prepare(lease, SessionConfig(instructions="be brief"))
    return lease, outlet


def run(work: Coroutine[object, object, None]) -> None:
    virtual_time.run(work)


def test_a_slot_is_warm_and_new_before_its_first_step() -> None:
    async def story() -> None:
        model = Tally()
        async with serving(model) as scheduler:
            lease, outlet = await owner(scheduler)
            lease.push(unit(1))
            await asyncio.sleep(1)
        assert model.calls == ["warm_up", "reset 0"]
        assert outlet.texts == alone([b"ab"])

    run(story())


def test_every_step_has_one_receipt_after_its_outputs_in_order() -> None:
    """(invariant 130)"""

    async def story() -> None:
        async with serving(Tally()) as scheduler:
            lease, outlet = await owner(scheduler)
            for step in range(1, 6):
                lease.push(unit(step))
            await asyncio.sleep(1)
        kinds = [type(event).__name__ for event in outlet.events]
        assert kinds == ["TextDelta", "StepDone"] * 5
        assert outlet.receipts == [(step, "consumed") for step in range(1, 6)]

    run(story())


def test_whoever_is_ready_is_stepped_together_and_each_at_most_once() -> None:
    async def story() -> None:
        model = Tally()
        async with serving(model) as scheduler:
            first, _ = await owner(scheduler)
            second, _ = await owner(scheduler)
            first.push(unit(1))
            first.push(unit(2))
            second.push(unit(1))
            await asyncio.sleep(1)
        assert model.batches == [(0, 1), (0,)]

    run(story())


def test_beyond_the_backlog_the_oldest_is_dropped_with_a_receipt_in_its_place() -> None:
    """(invariant 131)"""

    async def story() -> None:
        async with serving(Tally(), InlineWorker(1.0), backlog=2) as scheduler:
            lease, outlet = await owner(scheduler)
            lease.push(unit(1, b"aa"))
            await asyncio.sleep(0.5)  # step 1 is under way
            for step in range(2, 6):
                lease.push(unit(step, bytes([step]) * 2))
            assert outlet.receipts == []
            await asyncio.sleep(10)
        assert outlet.receipts == [
            (1, "consumed"),
            (2, "dropped"),
            (3, "dropped"),
            (4, "consumed"),
            (5, "consumed"),
        ]
        assert outlet.texts == alone([b"aa", b"\4\4", b"\5\5"])

    run(story())


def test_a_step_that_never_returns_loses_its_session_and_no_memory() -> None:
    outlet = Outlet()
    lease = SlotLease(0, "s", outlet, 2, lambda: None)
    lease.push(unit(1))
    lease.take()
    for step in range(2, 40):
        lease.push(unit(step))
    failures = [event for event in outlet.events if isinstance(event, Failure)]
    assert failures == [Failure(scope=Scope.SESSION)]
    assert lease.is_over
    assert not lease.is_ready


def test_only_the_guilty_slot_fails() -> None:
    async def story() -> None:
        async with serving(Tally()) as scheduler:
            good, heard = await owner(scheduler, "good")
            bad, lost = await owner(scheduler, "bad")
            for step, audio in enumerate([b"aa", BAD, b"cc"], start=1):
                good.push(unit(step, b"gg"))
                bad.push(unit(step, audio))
            await asyncio.sleep(1)
        assert heard.texts == alone([b"gg"] * 3)
        assert Failure(scope=Scope.SESSION) in lost.events
        assert lost.receipts == [(1, "consumed"), (2, "failed"), (3, "cancelled")]

    run(story())


def test_a_batch_that_fails_as_a_whole_is_repeated_row_by_row() -> None:
    async def story() -> None:
        async with serving(Tally(fails_in_company=True)) as scheduler:
            owners = [await owner(scheduler) for _ in range(3)]
            for lease, _ in owners:
                lease.push(unit(1))
            await asyncio.sleep(1)
        assert [outlet.receipts for _, outlet in owners] == [[(1, "consumed")]] * 3

    run(story())


def test_what_comes_late_does_not_reach_the_next_owner_of_the_slot() -> None:
    async def story() -> None:
        model = Tally(batch_size=1)
        async with serving(model, InlineWorker(1.0)) as scheduler:
            before, gone = await owner(scheduler, "before")
            before.push(unit(1, b"xx"))
            await asyncio.sleep(0.5)  # under way
            await scheduler.release(before)
            after, outlet = await owner(scheduler, "after")
            before.push(unit(2, b"yy"))
            after.push(unit(1, b"zz"))
            await asyncio.sleep(10)
        assert gone.events == []
        assert outlet.texts == alone([b"zz"])
        assert model.calls == ["warm_up", "reset 0", "release 0", "reset 0"]

    run(story())


def test_a_slot_is_free_only_after_its_release() -> None:
    async def story() -> None:
        async with serving(Tally(batch_size=1)) as scheduler:
            lease, outlet = await owner(scheduler)
            with pytest.raises(ModelOpenFailed):
                scheduler.reserve("another", outlet)
            await asyncio.gather(scheduler.release(lease), scheduler.release(lease))
            await scheduler.release(lease)
            assert scheduler.load().sessions == 0
            await owner(scheduler)
            with pytest.raises(ModelOpenFailed):
                scheduler.reserve("another", outlet)

    run(story())


def test_a_prompt_is_read_between_the_steps_of_others() -> None:
    async def story() -> None:
        model = Prompted()
        async with serving(model) as scheduler:
            lease, outlet = await owner(scheduler)
            opening = asyncio.create_task(owner(scheduler, "second"))
            for step in range(1, 5):
                lease.push(unit(step))
            await asyncio.sleep(0.045)
            assert not opening.done()
            assert len(outlet.receipts) >= 2
            second, _ = await opening
        assert model.calls.count(f"prefill {second.slot}.4") == 1

    run(story())


def test_an_interruption_fences_the_step_under_way_and_keeps_the_input() -> None:
    """(invariants 42, 90, 100)"""

    async def story() -> None:
        model = Tally()
        async with serving(model, InlineWorker(1.0)) as scheduler:
            lease, outlet = await owner(scheduler)
            lease.push(unit(1))
            await asyncio.sleep(0.5)
            lease.push(unit(2))
            lease.interrupt(1)
            lease.push(unit(3))
            await asyncio.sleep(10)
        said = [(fence.epoch, event) for fence, event in outlet.said if isinstance(event, TextDelta)]
        assert [epoch for epoch, _ in said] == [0, 1, 1]
        assert [row.input.force_listen for row in model.rows] == [False, True, False]

    run(story())


def test_steps_on_a_thread_are_all_on_the_same_one() -> None:
    threads: list[int] = []

    class Watched(Tally):
        def warm_up(self) -> None:
            threads.append(threading.get_ident())

        def step(self, rows: Sequence[object]) -> Sequence[Sequence[TextDelta]]:
            threads.append(threading.get_ident())
            return [[TextDelta("here")] for _ in rows]

    async def story() -> None:
        async with serving(Watched(), ThreadWorker()) as scheduler:
            lease, outlet = await owner(scheduler)
            for step in range(1, 4):
                lease.push(unit(step))
            await scheduler.release((await owner(scheduler))[0])  # calls and steps are made in turn
            await scheduler.release((await owner(scheduler))[0])
        assert outlet.receipts == [(step, "consumed") for step in range(1, 4)]

    asyncio.run(story())
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


_UNITS = st.lists(st.binary(min_size=2, max_size=4).filter(lambda audio: audio != BAD), max_size=6)


@given(st.lists(_UNITS, min_size=1, max_size=9), st.integers(1, 4))
def test_a_session_hears_the_same_alone_among_others_and_in_a_used_slot(
    sessions: list[list[bytes]], slots: int
) -> None:
    """(invariant 153)"""

    async def one(scheduler: SlotScheduler, units: list[bytes]) -> None:
        lease, outlet = await owner(scheduler)
        for step, audio in enumerate(units, start=1):
            lease.push(unit(step, audio))
            await asyncio.sleep(0.003 * len(audio))
        await asyncio.sleep(1)
        assert outlet.texts == alone(units)
        assert outlet.receipts == [(step, "consumed") for step in range(1, len(units) + 1)]
        await scheduler.release(lease)

    async def story() -> None:
        async with serving(Tally(slots)) as scheduler:
            for first in range(0, len(sessions), slots):
                await asyncio.gather(*(one(scheduler, units) for units in sessions[first : first + slots]))

    run(story())


def test_a_stopped_model_takes_nobody() -> None:
    async def story() -> None:
        async with serving(Tally()) as scheduler:
            lease, _ = await owner(scheduler)
        await scheduler.release(lease)
        with pytest.raises(ModelOpenFailed):
            await owner(scheduler)
        assert not scheduler.load().healthy

    run(story())


def test_a_failed_release_keeps_the_slot_until_it_is_repeated() -> None:
    class Clinging(Tally):
        clings = True

        def release(self, slots: Sequence[int]) -> None:
            if self.clings:
                raise RuntimeError("not yet")

    async def story() -> None:
        model = Clinging(batch_size=1)
        async with serving(model) as scheduler:
            lease, outlet = await owner(scheduler)
            with pytest.raises(RuntimeError):
                await scheduler.release(lease)
            with pytest.raises(ModelOpenFailed):
                scheduler.reserve("another", outlet)
            model.clings = False
            await scheduler.release(lease)
            await owner(scheduler)

    run(story())


def test_outputs_are_fenced_with_the_session() -> None:
    async def story() -> None:
        async with serving(Tally()) as scheduler:
            lease, outlet = await owner(scheduler, "mine")
            lease.push(unit(1, session="mine"))
            await asyncio.sleep(1)
        assert {fence for fence, _ in outlet.said} == {Fence("mine", 0)}

    run(story())
