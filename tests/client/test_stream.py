"""A stream never makes its writer wait, and never hides that something is missing (case K-03)."""

from __future__ import annotations

import asyncio

import pytest

from counterpoint.client.stream import Stream


async def read_all(stream: Stream[int]) -> list[int]:
    return [item async for item in stream]


def sized(limit: int) -> Stream[int]:
    return Stream(limit, lambda item: 1, lambda missing: -missing)


async def test_what_came_before_its_reader_is_there() -> None:
    stream = sized(10)
    for item in range(3):
        stream.put(item)
    stream.end()
    assert await read_all(stream) == [0, 1, 2]


async def test_a_reader_waits_for_what_comes() -> None:
    stream = sized(10)
    reading = asyncio.create_task(read_all(stream))
    for item in range(3):
        await asyncio.sleep(1)
        stream.put(item)
    stream.end()
    assert await reading == [0, 1, 2]


async def test_the_oldest_gives_way_and_a_mark_stands_in_its_place() -> None:
    stream = sized(3)
    assert [stream.put(item) for item in range(5)] == [0, 0, 0, 1, 1]
    assert await anext(stream) == -2
    assert await anext(stream) == 2
    for item in range(5, 8):
        stream.put(item)
    stream.end()
    assert await read_all(stream) == [-2, 5, 6, 7]


async def test_without_a_marker_what_is_left_just_follows() -> None:
    stream: Stream[bytes] = Stream(4, len)
    assert stream.put(b"ab") + stream.put(b"cd") + stream.put(b"e") == 2
    stream.end()
    assert [item async for item in stream] == [b"cd", b"e"]


async def test_one_item_over_the_limit_is_kept() -> None:
    stream: Stream[bytes] = Stream(4, len)
    stream.put(b"ab")
    assert stream.put(b"much more") == 2
    stream.end()
    assert [item async for item in stream] == [b"much more"]


async def test_an_end_with_an_error_comes_after_the_rest_and_stays() -> None:
    stream = sized(10)
    stream.put(1)
    stream.end(KeyError("why"))
    assert await anext(stream) == 1
    for _ in range(2):
        with pytest.raises(KeyError):
            await anext(stream)


async def test_nothing_comes_after_the_end() -> None:
    stream = sized(10)
    stream.end()
    assert stream.put(1) == 0
    assert await read_all(stream) == []


async def test_what_was_not_read_can_be_forgotten() -> None:
    stream = sized(3)
    for item in range(3):
        stream.put(item)
    stream.clear()
    assert stream.put(7) == 0
    stream.end()
    assert await read_all(stream) == [7]


async def test_two_readers_at_once_are_a_mistake_and_one_after_another_are_not() -> None:
    stream = sized(10)
    first = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="two tasks"):
        await anext(stream)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    stream.put(1)
    assert await anext(stream) == 1
