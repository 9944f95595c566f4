"""Running ahead: order, bound, failure, and stopping at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from counterpoint.models.cascade.ahead import Ahead
from counterpoint.testing.virtual_time import run


class Source:
    """Numbers from 0; notes how many were made and whether it was closed."""

    def __init__(self, count: int, fails: bool = False) -> None:
        self.count = count
        self.fails = fails
        self.made = 0
        self.closed = False

    async def items(self) -> AsyncGenerator[int]:
        try:
            for number in range(self.count):
                await asyncio.sleep(0.01)
                self.made += 1
                yield number
            if self.fails:
                raise ValueError("no more")
        finally:
            self.closed = True


async def doubled(numbers: Ahead[int]) -> AsyncGenerator[int]:
    async for number in numbers:
        yield 2 * number


async def test_everything_comes_in_order() -> None:
    ahead = Ahead(Source(20).items(), 3, "source")
    assert [number async for number in ahead] == list(range(20))


def test_it_runs_before_it_is_read_and_no_further_than_its_bound() -> None:
    async def main() -> None:
        source = Source(20)
        ahead = Ahead(source.items(), 3, "source")
        await asyncio.sleep(10)
        assert source.made == 4  # three are waiting, one is held
        assert await anext(ahead) == 0
        await asyncio.sleep(10)
        assert source.made == 5
        await ahead.aclose()
        assert source.closed

    run(main())


async def test_a_failure_comes_after_what_was_made_before_it() -> None:
    ahead = Ahead(Source(2, fails=True).items(), 5, "source")
    assert [await anext(ahead), await anext(ahead)] == [0, 1]
    with pytest.raises(ValueError, match="no more"):
        await anext(ahead)


@pytest.mark.parametrize("turns", range(6))
async def test_stopping_at_any_moment_stops_what_it_reads_from(turns: int) -> None:
    """Also before either of them has begun."""
    source = Source(1000)
    upstream = Ahead(source.items(), 1, "upstream")
    ahead = Ahead(doubled(upstream), 1, "ahead", upstream)
    for _ in range(turns):
        await asyncio.sleep(0.004)
    await ahead.aclose()
    made = source.made
    await asyncio.sleep(0.03)
    assert source.made == made
    assert source.closed or not turns


async def test_a_failure_stops_what_it_reads_from() -> None:
    source = Source(1000)
    upstream = Ahead(source.items(), 1, "upstream")

    async def fails() -> AsyncGenerator[int]:
        yield await anext(upstream)
        raise ValueError("enough")

    ahead = Ahead(fails(), 1, "ahead", upstream)
    assert await anext(ahead) == 0
    with pytest.raises(ValueError, match="enough"):
        await anext(ahead)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert source.closed
