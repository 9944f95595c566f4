"""The model chain: order, failures that stop nobody, and answers that go stale (invariants 15-19, 98)."""

import asyncio
from typing import Any

from counterpoint.plugins.contract import Fence, ResponseRequest, StepInput
from counterpoint.runtime.chain import ModelChain
from counterpoint.runtime.tasks import Tasks
from counterpoint.session.effects import Forget, Prepare, Push, Respond
from counterpoint.testing.virtual_time import run


class SlowModel:
    """Takes as long over each call as the test says; writes down what finished, was cancelled, or raised."""

    def __init__(self, delays: dict[str, float], raises: tuple[str, ...] = ()) -> None:
        self.delays = delays
        self.raises = raises
        self.done: list[str] = []
        self.cancelled: list[str] = []

    async def _call(self, name: str) -> None:
        try:
            await asyncio.sleep(self.delays.get(name, 0))
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        if name in self.raises:
            raise RuntimeError(name)
        self.done.append(name)

    async def push(self, step: StepInput) -> None:
        await self._call(f"push{step.step}")

    async def respond(self, request: ResponseRequest) -> None:
        await self._call(f"respond{request.number}")

    async def prepare(self, request: ResponseRequest) -> None:
        await self._call(f"prepare{request.number}")

    async def forget(self, input: int) -> None:
        await self._call(f"forget{input}")


def push(step: int) -> Push:
    return Push(StepInput(Fence("s", 0), input=1, step=step))


def request(number: int, epoch: int = 0, *, out_of_band: bool = False) -> ResponseRequest:
    return ResponseRequest(Fence("s", epoch, number), number, (), "", ("audio",), "", out_of_band=out_of_band)


def chain_of(model: Any, raised: list[str] | None = None) -> tuple[ModelChain, Tasks]:
    tasks = Tasks("test")
    told = raised if raised is not None else []
    return ModelChain("s", model, tasks, lambda fence, operation: told.append(operation)), tasks


def test_work_is_done_in_its_order_whatever_each_step_costs() -> None:
    model = SlowModel({"push1": 3, "push2": 0, "push3": 1, "respond1": 0})

    async def main() -> None:
        chain, tasks = chain_of(model)
        chain.start()
        for work in (push(1), push(2), push(3), Respond(request(1)), Forget(9)):
            chain.put(work)
        await asyncio.sleep(10)
        await tasks.cancel(timeout=1)

    run(main())
    assert model.done == ["push1", "push2", "push3", "respond1", "forget9"]


def test_nothing_is_submitted_before_the_model_is_open_or_after_the_end() -> None:
    model = SlowModel({})

    async def main() -> None:
        chain, tasks = chain_of(model)
        chain.put(push(1))
        await asyncio.sleep(1)
        assert model.done == []
        chain.start()
        await asyncio.sleep(1)
        chain.stop()
        chain.put(push(2))
        await asyncio.sleep(1)
        assert len(tasks) == 0

    run(main())
    assert model.done == ["push1"]


def test_a_call_that_raises_is_reported_and_the_next_one_runs() -> None:
    model = SlowModel({}, raises=("push1",))
    raised: list[str] = []

    async def main() -> None:
        chain, tasks = chain_of(model, raised)
        chain.start()
        chain.put(push(1))
        chain.put(push(2))
        await asyncio.sleep(1)
        await tasks.cancel(timeout=1)

    run(main())
    assert (model.done, raised) == (["push2"], ["push"])


def test_stale_answers_are_dropped_queued_or_under_way_and_input_is_not() -> None:
    """(invariants 19, 20)"""
    model = SlowModel({"respond1": 100})

    async def main() -> None:
        chain, tasks = chain_of(model)
        chain.start()
        for work in (
            Respond(request(1)),
            push(1),
            Prepare(request(2)),
            Respond(request(3, out_of_band=True)),
            Respond(request(4, epoch=1)),
        ):
            chain.put(work)
        await asyncio.sleep(1)
        chain.drop_answers(lambda stale: stale.fence.epoch <= 0 and not stale.out_of_band)
        await asyncio.sleep(1)
        await tasks.cancel(timeout=1)

    run(main())
    assert model.cancelled == ["respond1"]
    assert model.done == ["push1", "respond3", "respond4"]


def spoken(utterance: int, size: int) -> Push:
    return Push(StepInput(Fence("s", 0), input=utterance, step=utterance, audio=bytes(size)))


def test_audio_counts_until_the_model_accepted_it_and_a_dropped_utterance_at_once_no_more() -> None:
    """Invariants 23, 143, case C-17: a clear gives back what was queued, and no more."""
    model = SlowModel({"push1": 10, "push2": 10, "push3": 10})

    async def main() -> None:
        chain, tasks = chain_of(model)
        chain.start()
        for work in (spoken(1, 100), spoken(1, 10), spoken(2, 1000)):
            chain.put(work)
        assert [chain.backlog_bytes(but=but) for but in (None, 1, 2)] == [1110, 1000, 110]
        await asyncio.sleep(1)  # the first is under way
        chain.put(Forget(1))
        chain.put(spoken(3, 5))
        assert chain.backlog_bytes(but=None) == 1005
        await asyncio.sleep(10)  # what was under way is accepted, and is not given back twice
        assert chain.backlog_bytes(but=None) == 1005
        await asyncio.sleep(10)
        assert chain.backlog_bytes(but=None) == 5
        await asyncio.sleep(10)
        assert chain.backlog_bytes(but=None) == 0
        await tasks.cancel(timeout=1)

    run(main())
    assert model.done == ["push1", "push2", "forget1", "push3"]


def test_audio_that_the_model_refused_counts_no_more() -> None:
    async def main() -> None:
        chain, tasks = chain_of(SlowModel({}, raises=("push1",)))
        chain.start()
        chain.put(spoken(1, 100))
        await asyncio.sleep(1)
        assert chain.backlog_bytes(but=None) == 0
        await tasks.cancel(timeout=1)

    run(main())


def test_the_number_of_tasks_does_not_grow_with_the_work() -> None:
    """Invariant 33: as much machinery at frame 10 as at frame 10,000."""
    model = SlowModel({})

    async def main() -> None:
        chain, tasks = chain_of(model)
        chain.start()
        for step in range(10_000):
            chain.put(push(step))
            if step % 100 == 0:
                await asyncio.sleep(0.001)
                assert len(tasks) == 1
        await asyncio.sleep(1)
        await tasks.cancel(timeout=1)

    run(main())
    assert len(model.done) == 10_000
