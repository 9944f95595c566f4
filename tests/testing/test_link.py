"""The link in memory: buffers that fill, and every way in which a connection ends."""

from __future__ import annotations

import asyncio

import pytest

from counterpoint.testing.link import HIGH_WATER, WINDOW_FRAMES, Closed, MemoryLink, Sent


def payloads(link: MemoryLink) -> list[bytes | int | None]:
    """Everything that the peer can read now; of an end, its code."""
    read: list[bytes | int | None] = []
    while (thing := link.read()) is not None:
        read.append(thing.payload if isinstance(thing, Sent) else thing.code)
    return read


async def test_frames_arrive_in_order_and_only_when_they_are_delivered() -> None:
    link = MemoryLink()
    link.send("one")
    link.send("two")
    receiving = asyncio.create_task(link.receive())
    await asyncio.sleep(0)
    assert not receiving.done()
    assert (link.arrive(), link.arrive(), link.arrive()) == ("one", "two", None)
    assert (await receiving, await link.receive()) == ("one", "two")


async def test_a_stuck_reader_holds_the_writer_until_it_reads() -> None:
    """Back-pressure is real (case K-01)."""
    link = MemoryLink(path_bytes=1000)
    link.write([b"." * 1000, b"." * HIGH_WATER])
    await link.drain()
    link.write([b"!"])
    draining = asyncio.create_task(link.drain())
    await asyncio.sleep(0)
    assert (draining.done(), link.buffered()) == (False, HIGH_WATER + 1)
    link.read()
    link.read()
    await asyncio.wait_for(draining, 1)
    assert link.buffered() == 0


async def test_the_server_stops_reading_and_the_rest_stays_in_flight() -> None:
    link = MemoryLink()
    for _ in range(WINDOW_FRAMES + 5):
        link.send("frame")
    while link.arrive() is not None:
        pass
    assert link.sending == 5


async def test_a_close_comes_after_what_was_written_and_waits_for_its_answer() -> None:
    link = MemoryLink()
    link.write([b"last"])
    closing = asyncio.create_task(link.close(4001, "replaced"))
    await asyncio.sleep(0)
    link.write([b"too late"])
    assert (link.closing, link.lost) == (True, False)
    assert payloads(link) == [b"last", 4001]
    await asyncio.wait_for(closing, 1)
    assert await link.receive() == Closed(None)


async def test_a_close_that_is_not_answered_ends_in_time() -> None:
    """(case C-09)"""
    link = MemoryLink(close_timeout_s=0.01)
    await asyncio.wait_for(link.close(1000), 1)
    assert link.lost


async def test_an_abort_loses_what_had_not_left() -> None:
    link = MemoryLink(path_bytes=10)
    link.write([b"0123456789", b"lost"])
    link.abort()
    assert payloads(link) == [b"0123456789", None]


async def test_a_reset_while_writing_loses_everything_and_both_ends_hear_of_it() -> None:
    """(case I-11)"""
    link = MemoryLink(path_bytes=0)
    link.write([b"." * (HIGH_WATER + 1)])
    link.send("lost")
    draining = asyncio.create_task(link.drain())
    await asyncio.sleep(0)
    link.reset()
    with pytest.raises(ConnectionResetError):
        await draining
    assert await link.receive() == Closed(None)
    assert payloads(link) == [None]


async def test_a_peer_that_vanished_looks_well() -> None:
    """(cases B-06, K-04)"""
    link = MemoryLink(path_bytes=0)
    link.send("never arrives")
    link.vanish()
    link.write([b"never read"])
    link.ping()
    assert (link.arrive(), link.read(), link.lost) == (None, None, False)
    assert link.buffered() == len(b"never read")


@pytest.mark.parametrize("code", [1000, 1001, 1005])
async def test_the_code_of_a_close_by_the_peer_reaches_the_server(code: int) -> None:
    link = MemoryLink()
    link.send_close(code)
    link.arrive()
    assert await link.receive() == Closed(code)
    assert link.lost


async def test_frames_carry_the_moment_in_which_they_were_written() -> None:
    now = [3]
    seen: list[tuple[bytes, int]] = []
    link = MemoryLink(stamp=lambda: now[0], wrote=lambda frame, stamp: seen.append((frame, stamp)))
    link.write([b"a"])
    now[0] = 7
    link.write([b"b"])
    assert seen == [(b"a", 3), (b"b", 7)]
    assert [link.read(), link.read()] == [Sent(b"a", 3), Sent(b"b", 7)]
