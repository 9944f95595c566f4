"""A stepped model as a ``ModelSession``."""

from __future__ import annotations

import asyncio

from counterpoint.plugins.contract import Fence, HistoryItem, ResponseRequest, StepInput, StepKind, TurnEnd
from counterpoint.plugins.slot_session import SlotSession
from counterpoint.plugins.slots import SlotScheduler
from counterpoint.plugins.step_model import Row, StepEvent
from counterpoint.plugins.step_worker import InlineWorker
from counterpoint.protocol.config import SessionConfig
from counterpoint.testing import virtual_time

from .step_models import Outlet, Prompted, Tally, alone, unit


def asked(turn: int, text: str | None, *, epoch: int = 0) -> ResponseRequest:
    history = () if text is None else (HistoryItem("item_1", "message", "user", text),)
    return ResponseRequest(Fence("s", epoch, turn), turn, history, "greet them", ("audio",), "default")


class Brief(Tally):
    """Answers a text in one step."""

    def _one(self, row: Row) -> list[StepEvent]:
        said = list(super()._one(row))
        return [*said, TurnEnd()] if row.input.text else said


def test_an_answer_that_was_asked_for_has_its_own_fence_to_its_end() -> None:
    async def story() -> None:
        model, outlet = Brief(), Outlet()
        scheduler = SlotScheduler(model, InlineWorker(0.01), backlog=10)
        await scheduler.start()
        session = SlotSession("s", scheduler)
        await session.open(SessionConfig(), outlet)
        await session.push(unit(1))
        await asyncio.sleep(1)
        await session.respond(asked(7, "who are you"))
        await session.push(unit(2))
        await session.push(unit(3))
        await asyncio.sleep(1)
        await session.close()
        await scheduler.stop()
        assert [row.input.text for row in model.rows] == ["", "who are you", ""]
        assert list(dict.fromkeys(fence.turn for fence, _ in outlet.said)) == [0, 7]
        assert outlet.said[-1][0].turn == 0

    virtual_time.run(story())


def test_without_a_text_the_instructions_are_what_is_asked() -> None:
    async def story() -> None:
        model, outlet = Tally(), Outlet()
        scheduler = SlotScheduler(model, InlineWorker(), backlog=10)
        await scheduler.start()
        session = SlotSession("s", scheduler)
        await session.open(SessionConfig(), outlet)
        await session.respond(asked(1, None))
        await session.push(unit(1))
        await asyncio.sleep(1)
        await scheduler.stop()
        assert model.rows[0].input.text == "greet them"

    virtual_time.run(story())


def test_a_request_that_was_interrupted_on_its_way_is_not_put_to_the_model() -> None:
    async def story() -> None:
        model, outlet = Tally(), Outlet()
        scheduler = SlotScheduler(model, InlineWorker(), backlog=10)
        await scheduler.start()
        session = SlotSession("s", scheduler)
        await session.open(SessionConfig(), outlet)
        await session.cancel(Fence("s", 0, 1), Fence("s", 1))
        await session.respond(asked(1, "too late", epoch=0))
        await session.push(unit(1))
        await asyncio.sleep(1)
        await scheduler.stop()
        assert model.rows[0].input.text == ""
        assert model.rows[0].input.force_listen
        assert model.rows[0].input.fence == Fence("s", 1)

    virtual_time.run(story())


def test_close_finds_the_slot_wherever_the_opening_stopped() -> None:
    async def story() -> None:
        model = Tally(batch_size=1)
        scheduler = SlotScheduler(model, InlineWorker(1.0), backlog=10)
        await scheduler.start()
        for turns in range(6):
            session = SlotSession("s", scheduler)
            opening = asyncio.create_task(session.open(SessionConfig(), Outlet()))
            for _ in range(turns):
                await asyncio.sleep(0.3)
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await session.close()
            await session.close()
            assert scheduler.load().sessions == 0
        await scheduler.stop()

    virtual_time.run(story())


def test_what_was_said_before_is_read_before_anything_is_heard() -> None:
    """(invariant 79)"""

    async def story() -> None:
        model, outlet = Prompted(), Outlet()
        scheduler = SlotScheduler(model, InlineWorker(0.01), backlog=10)
        await scheduler.start()
        session = SlotSession("s", scheduler)
        await session.open(SessionConfig(), outlet)
        assert model.calls == ["warm_up", "reset 0"], "there are no instructions to read"
        told = StepInput(Fence("s", 2), 0, kind=StepKind.PREFILL, step=1, text="user: hello")
        await session.push(told)
        await session.push(unit(2, epoch=2))
        await asyncio.sleep(1)
        await session.close()
        await session.push(told)
        await scheduler.stop()
        assert model.calls.count("prefill 0.4") == 1
        assert outlet.receipts == [(1, "consumed"), (2, "consumed")]
        assert outlet.texts != alone([b"ab"])

    virtual_time.run(story())
