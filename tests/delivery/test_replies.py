"""The connection-scoped events: their bound stops the reading."""

from __future__ import annotations

import asyncio

from counterpoint.delivery.replies import MAX_BYTES, MAX_EVENTS

from .connection import Connection, may_be_read, reply, settle
from .link import HIGH_WATER, FakeLink
from .support import new_log


class TestReplies:
    async def test_a_full_queue_stops_the_reading_until_there_is_room(self) -> None:
        """(invariant 121)"""
        connection = Connection(new_log(), FakeLink(stuck=True))
        connection.writer.send(reply("error", HIGH_WATER + 1000))
        await settle()
        for _ in range(MAX_EVENTS - 1):
            connection.writer.send(reply("error"))
        assert may_be_read(connection)
        connection.writer.send(reply("error"))
        assert not may_be_read(connection)
        reading = asyncio.create_task(connection.writer.room())
        await settle()
        assert not reading.done()
        connection.link.unstick()
        await reading
        assert len(connection.link.frames) == 1 + MAX_EVENTS
        await connection.closed()

    async def test_bytes_fill_it_too_and_the_handshake_does_not_count(self) -> None:
        connection = Connection(new_log(), FakeLink(stuck=True))
        connection.writer.send(reply("error", HIGH_WATER + 1000))
        await settle()
        for _ in range(MAX_EVENTS):
            connection.writer.send(reply("session.resumed", MAX_BYTES), counted=False)
        assert may_be_read(connection)
        connection.writer.send(reply("error", MAX_BYTES + 100))
        assert not may_be_read(connection)
        connection.link.unstick()
        await connection.closed()

    async def test_after_the_close_nothing_is_queued_and_nobody_waits(self) -> None:
        """(invariant 125)"""
        connection = Connection(new_log(), FakeLink(stuck=True))
        connection.writer.send(reply("error", HIGH_WATER + 1000))
        await settle()
        for _ in range(MAX_EVENTS):
            connection.writer.send(reply("error"))
        reading = asyncio.create_task(connection.writer.room())
        await settle()
        connection.writer.close(1000)
        assert not connection.writer.send(reply("error"))
        await settle()
        assert reading.done(), "it does not wait for the connection to be reset"
        await connection.task
