"""The virtual loop: exact, instant, and honest about what can never happen."""

import asyncio
import math
import time

import pytest

from counterpoint.testing.virtual_time import Deadlock, VirtualLoop, run


def test_waiting_takes_no_time_and_is_exact() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(1000):
            await asyncio.sleep(0.1)
            times.append(loop.time())
        return times

    began = time.perf_counter()
    times = run(main())
    assert time.perf_counter() - began < 5
    assert times[-1] == pytest.approx(100.0)


def test_equal_timers_fire_in_the_order_in_which_they_were_set() -> None:
    async def main() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(100):
            loop.call_at(1.0, fired.append, number)
        await asyncio.sleep(1.0)
        await asyncio.sleep(0)
        return fired

    assert run(main()) == list(range(100))


def test_no_timer_fires_before_its_time() -> None:
    """Not even by the last bit of a float: who waits for a moment may ask whether it has come."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        early: list[float] = []

        def fire(due: float) -> None:
            if loop.time() < due:
                early.append(due)

        for due in (2.12, math.nextafter(2.12, 3), math.nextafter(2.12, 0)):
            loop.call_at(due, fire, due)
        await asyncio.sleep(3)
        return early

    assert run(main()) == []


def test_a_jump_of_the_clock_fires_what_was_due() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        sleeping = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        loop.advance(100)
        await sleeping
        return loop.time()

    assert run(main()) == 100


def test_waiting_for_nothing_is_an_error_and_not_a_hang() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(main())


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(time.sleep, 0)

    with pytest.raises(RuntimeError, match="threads"):
        run(main())
