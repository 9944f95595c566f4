"""Connections that take little, nothing, or are lost: what is handed to them, and when they are given up."""

from __future__ import annotations

import asyncio

from counterpoint.delivery.writer import BATCH_BYTES, Loss
from counterpoint.limits import TransportLimits

from .connection import Connection, fail, say, settle, timers
from .link import HIGH_WATER, FakeLink
from .support import new_log


class TestBackPressure:
    async def test_little_is_handed_to_a_transport_that_takes_nothing(self) -> None:
        """The rest stays pending, where an interruption finds it (case K-01)."""
        log = new_log(max_bytes=1 << 30)
        connection = Connection(log, FakeLink(stuck=True))
        say(log, 1000, size=1400)
        await settle()
        assert connection.link.most_buffered <= HIGH_WATER + BATCH_BYTES + 2000
        assert log.pending_bytes > 900 * 1400
        log.discard("r", ())
        assert log.pending_bytes == 0
        connection.link.unstick()
        await settle()
        assert len(connection.link.frames) == log.head
        await connection.closed()

    async def test_a_connection_that_takes_no_byte_is_given_up(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True), limits=TransportLimits(send_timeout_s=10))
        say(log, 100, size=1400)
        await asyncio.sleep(9.9)
        assert connection.losses == []
        await asyncio.sleep(2.7)
        assert connection.losses == [Loss.STALLED]
        await asyncio.sleep(2.1)
        assert connection.task.done()
        assert connection.link.aborted_at is not None

    async def test_also_when_little_waits_and_nothing_more_comes(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True))
        say(log)
        await asyncio.sleep(13)
        assert connection.losses == [Loss.STALLED]
        await asyncio.wait_for(connection.task, 3)

    async def test_a_slow_one_that_takes_some_is_kept(self) -> None:
        log = new_log()
        link = FakeLink(stuck=True)
        connection = Connection(log, link, limits=TransportLimits(send_timeout_s=10))
        say(log, 100, size=1400)
        for _ in range(20):
            await asyncio.sleep(5)
            link.take(1)
            say(log, 1, size=1400)
        assert connection.losses == []
        link.unstick()
        await settle()
        assert connection.link.numbers == list(range(1, 121))
        await connection.closed()

    async def test_also_one_that_falls_further_behind(self) -> None:
        """It takes some all the time, and less than there comes."""
        log = new_log()
        link = FakeLink(stuck=True)
        connection = Connection(log, link, limits=TransportLimits(send_timeout_s=10))
        for _ in range(20):
            say(log, 1, size=300)
            await asyncio.sleep(5)
            link.take(100)
        assert connection.losses == []
        link.unstick()
        await connection.closed()

    async def test_little_is_handed_over_also_when_it_comes_piece_by_piece(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True))
        await settle()
        for _ in range(100):
            say(log, 1, size=1400)
            await settle(5)
        assert connection.link.most_buffered <= HIGH_WATER + 2000
        connection.link.unstick()
        await settle()
        assert connection.link.numbers == list(range(1, 101))
        await connection.closed()

    async def test_zero_turns_it_off(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True), limits=TransportLimits(send_timeout_s=0))
        say(log, 100, size=1400)
        await asyncio.sleep(1000)
        assert connection.losses == []
        connection.link.unstick()
        await connection.closed()

    async def test_an_idle_connection_sets_no_timer(self) -> None:
        log = new_log()
        connection = Connection(log)
        say(log, 10)
        await settle()
        assert timers() == 0
        await connection.closed()

    async def test_a_lost_connection_is_reported_once(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True))
        say(log, 100, size=1400)
        await settle()
        connection.link.lose()
        await connection.task
        assert connection.losses == [Loss.BROKEN]
        connection.writer.close(1000)
        assert connection.losses == [Loss.BROKEN]

    async def test_a_successor_that_is_attached_in_that_moment_is_heard(self) -> None:
        log, heard = new_log(), list[int]()
        connection = Connection(log, FakeLink(stuck=True))
        connection.when_lost = lambda: log.listen(lambda: heard.append(1))
        say(log, 100, size=1400)
        await settle()
        connection.link.lose()
        await connection.task
        log.number_and_drop_all()
        say(log)
        assert heard == [1]

    async def test_a_fault_while_a_message_is_made_ends_the_connection_and_is_not_swallowed(self) -> None:
        log = new_log(max_events=3)
        connection = Connection(log)
        connection.when_lagging = fail
        await settle()
        say(log, 5)
        await asyncio.wait([connection.task])
        assert isinstance(connection.task.exception(), ZeroDivisionError)
        assert connection.link.aborted_at is not None
