"""The writer: order, dialects, replay and the end of a connection, on a virtual clock."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from counterpoint.delivery.writer import BATCH_BYTES, TURN_ENTRIES
from counterpoint.limits import TransportLimits
from counterpoint.protocol.codec import join
from counterpoint.protocol.commands import ReplayPolicy

from .connection import Connection, body, now, reply, say, settle
from .link import FakeLink
from .support import CLOSED, OVERLAP, TRANSCRIPT, new_log


class TestOrder:
    async def test_entries_go_out_under_their_numbers_as_they_come(self) -> None:
        log = new_log()
        connection = Connection(log)
        for _ in range(3):
            say(log, 2)
            await settle()
        assert connection.link.numbers == [1, 2, 3, 4, 5, 6]
        await connection.closed()

    async def test_a_reply_overtakes_the_log_and_has_no_number(self) -> None:
        log = new_log()
        connection = Connection(log)
        say(log, 2)
        connection.writer.send(reply("session.heartbeat_ack"))
        connection.writer.send(reply("error"))
        await settle()
        assert connection.link.numbers == ["session.heartbeat_ack", "error", 1, 2]
        await connection.closed()

    async def test_numbers_are_in_wire_order_whatever_is_produced_at_once(self) -> None:
        """Audio, errors and a snapshot of 5 MiB (case I-13)."""
        log = new_log()
        connection = Connection(log, FakeLink(rate=10_000_000))
        for _ in range(20):
            say(log, 5, size=2000)
            connection.writer.send(reply("error"))
            await settle(2)
        connection.writer.send(reply("session.snapshot", 5 << 20), counted=False)
        say(log, 5, size=2000)
        await asyncio.sleep(10)
        numbers = [number for number in connection.link.numbers if isinstance(number, int)]
        assert numbers == list(range(1, 106))
        assert connection.link.numbers.count("error") == 20
        await connection.closed()

    async def test_many_entries_go_out_in_few_writes_of_bounded_size(self) -> None:
        log = new_log(max_bytes=1 << 30)
        connection = Connection(log)
        say(log, 1000, size=1400)
        await settle()
        assert len(connection.link.frames) == 1000
        assert connection.link.writes < 100
        assert connection.link.largest_write < BATCH_BYTES + 2000
        await connection.closed()

    async def test_more_than_one_batch_at_once_goes_out_also_to_a_writer_at_rest(self) -> None:
        log = new_log()
        connection = Connection(log)
        await settle()
        say(log, 40, size=1400)
        await settle()
        assert connection.link.numbers == list(range(1, 41))
        await connection.closed()

    async def test_others_get_their_turn_although_the_link_never_pushes_back(self) -> None:
        log = new_log()
        connection = Connection(log)
        say(log, 10 * TURN_ENTRIES)
        seen = [len(connection.link.frames)]
        while seen[-1] < 10 * TURN_ENTRIES:
            await asyncio.sleep(0)
            seen.append(len(connection.link.frames))
        most = max(after - before for before, after in itertools.pairwise(seen))
        assert most < 2 * TURN_ENTRIES
        await connection.closed()


class TestDialect:
    async def test_a_stock_connection_sees_official_events_only_and_holes_where_others_were(self) -> None:
        log = new_log()
        connection = Connection(log, extended=False)
        say(log)
        log.record(OVERLAP, body(OVERLAP.type), now=0.0)
        log.record(TRANSCRIPT, body(TRANSCRIPT.type), duplex=b'{"epoch":0}', now=0.0)
        await settle()
        assert connection.link.numbers == [1, 3]
        assert "duplex" not in connection.link.events[1]
        await connection.closed()

    async def test_an_extended_one_sees_all_of_it_and_the_duplex_object(self) -> None:
        log = new_log()
        connection = Connection(log)
        log.record(OVERLAP, body(OVERLAP.type), now=0.0)
        log.record(TRANSCRIPT, body(TRANSCRIPT.type), duplex=b'{"epoch":7}', now=0.0)
        await settle()
        assert connection.link.frames[1] == join(body(TRANSCRIPT.type), b'{"epoch":7}', 2)
        assert connection.link.numbers == [1, 2]
        await connection.closed()

    async def test_a_connection_may_become_extended(self) -> None:
        log = new_log()
        connection = Connection(log, extended=False)
        connection.writer.extended = True
        log.record(OVERLAP, body(OVERLAP.type), now=0.0)
        await settle()
        assert connection.link.numbers == [1]
        await connection.closed()

    async def test_beta_connections_get_beta_names(self) -> None:
        log = new_log()
        connection = Connection(log, extended=False, beta=True)
        say(log)
        await settle()
        assert connection.link.events[0]["type"] == "response.audio.delta"
        await connection.closed()


class TestReplay:
    @pytest.mark.parametrize("rate", [0, 200_000])
    async def test_live_events_do_not_overtake_the_replay(self, rate: int) -> None:
        """(case A-07)"""
        log = new_log(max_bytes=1 << 30)
        say(log, 500, size=400)
        log.take(0.0, 400, 1 << 30)
        connection = Connection(log, FakeLink(rate=rate), cursor=log.replay(50, 0.0))
        for _ in range(100):
            say(log, 10, size=400)
            await asyncio.sleep(0.01)
        await asyncio.sleep(10)
        assert connection.link.numbers == list(range(51, 1501))
        await connection.closed()

    async def test_what_is_passed_over_is_announced_in_its_place(self) -> None:
        log = new_log()
        say(log, 2)
        log.record(TRANSCRIPT, body(TRANSCRIPT.type), now=0.0)
        say(log, 1)
        log.take(0.0, 100, 1 << 30)
        say(log, 1)
        connection = Connection(log, cursor=log.replay(0, 0.0, ReplayPolicy.NO_AUDIO))
        await settle()
        assert connection.link.numbers == ["session.skipped", 3, "session.skipped", 5]
        first = connection.link.events[0]
        assert (first["from"], first["to"], first["reason"]) == (1, 2, "replay_policy")
        assert first["event_id"] == "event_1"
        await connection.closed()

    async def test_a_stock_connection_is_not_told_what_is_passed_over(self) -> None:
        log = new_log()
        say(log, 2)
        log.take(0.0, 100, 1 << 30)
        log.discard("r", ())
        connection = Connection(log, cursor=log.replay(0, 0.0), extended=False)
        say(log, 1, response="q")
        await settle()
        assert connection.link.numbers == [3]
        await connection.closed()

    async def test_interrupted_audio_is_passed_over_also_while_the_replay_is_under_way(self) -> None:
        log = new_log()
        say(log, 100, size=2000)
        log.take(0.0, 1000, 1 << 30)
        connection = Connection(log, FakeLink(rate=100_000), cursor=log.replay(0, 0.0))
        await asyncio.sleep(0.5)
        sent = len(connection.link.frames)
        log.discard("r", ())
        await asyncio.sleep(10)
        assert 0 < sent < 100
        assert connection.link.numbers == [*range(1, sent + 1), "session.skipped"]
        assert connection.link.events[-1]["reason"] == "interrupted"
        await connection.closed()

    async def test_a_gap_is_answered_with_a_snapshot_and_live_events_follow(self) -> None:
        log = new_log()
        say(log, 5)
        log.take(0.0, 3, 1 << 30)
        log.acknowledge(3)
        connection = Connection(log, cursor=log.replay(1, 0.0))
        connection.writer.send(reply("session.resumed"), counted=False)
        await settle()
        say(log, 2)
        await settle()
        assert connection.link.numbers == ["session.resumed", "session.snapshot", 6, 7]
        assert connection.snapshots == [5]
        await connection.closed()

    async def test_so_is_overflow_while_attached(self) -> None:
        log = new_log(max_events=100)
        connection = Connection(log)
        say(log, 1)
        await settle()
        say(log, 500)
        await settle()
        say(log, 1)
        await settle()
        assert connection.link.numbers == [1, "session.snapshot", 502]
        assert connection.snapshots == [501]
        await connection.closed()


class TestClose:
    async def test_what_is_queued_goes_out_and_the_log_is_not_touched(self) -> None:
        """As of the call: the successor has the log (case B-07)."""
        log = new_log()
        connection = Connection(log)
        await settle()
        say(log, 3)
        connection.writer.send(reply("session.replaced"))
        connection.writer.close(4001, "replaced")
        successor = Connection(log)
        await settle()
        assert connection.link.numbers == ["session.replaced"]
        assert connection.link.closed_with == (4001, "replaced")
        assert successor.link.numbers == [1, 2, 3]
        await connection.task
        await successor.closed()

    async def test_a_successor_does_not_wait_for_a_stuck_predecessor(self) -> None:
        """Which is reset after the close timeout, without a word (cases B-06, C-09)."""
        log = new_log()
        stuck = Connection(log, FakeLink(stuck=True), limits=TransportLimits(close_timeout_s=2))
        say(log, 100, size=1400)
        await settle()
        sent = log.head
        stuck.writer.send(reply("session.replaced"))
        stuck.writer.close(4001, "replaced")
        successor = Connection(log, cursor=log.replay(0, 0.0))
        await settle()
        assert successor.link.numbers == list(range(1, 101))
        assert len(stuck.link.frames) == sent
        await stuck.task
        assert stuck.link.aborted_at == pytest.approx(2)
        assert stuck.losses == []
        await successor.closed()

    async def test_the_end_of_a_predecessor_does_not_silence_its_successor(self) -> None:
        log = new_log()
        old = Connection(log, FakeLink(silent=True))
        await settle()
        old.writer.close(4001)
        successor = Connection(log)
        await old.task
        say(log, 1)
        await settle()
        assert successor.link.numbers == [1]
        await successor.closed()

    async def test_the_end_of_a_session_goes_out_behind_everything_else(self) -> None:
        log = new_log()
        connection = Connection(log, FakeLink(rate=100_000))
        say(log, 100, size=1000)
        log.record(CLOSED, body(CLOSED.type), now=0.0)
        connection.writer.close(1000, "client_closed", flush_log=True)
        await connection.task
        assert connection.link.numbers == list(range(1, 102))
        assert connection.link.closed_with == (1000, "client_closed")
        assert connection.link.aborted_at is None

    @pytest.mark.parametrize("stuck", [True, False])
    async def test_a_peer_that_does_not_answer_is_reset(self, stuck: bool) -> None:
        """(case C-09)"""
        log = new_log()
        limits = TransportLimits(close_timeout_s=2)
        connection = Connection(log, FakeLink(stuck=stuck, silent=True), limits=limits)
        say(log, 100, size=1400)
        await settle()
        began = now()
        connection.writer.close(1000, flush_log=True)
        await connection.task
        assert now() - began == pytest.approx(2)
        assert connection.link.aborted_at is not None

    async def test_the_first_close_decides(self) -> None:
        connection = Connection(new_log())
        await settle()
        connection.writer.close(4001)
        connection.writer.close(1000, flush_log=True)
        await connection.task
        assert connection.link.closed_with == (4001, "")

    async def test_before_the_task_began_it_is_obeyed(self) -> None:
        log = new_log()
        say(log, 1)
        connection = Connection(log, cursor=log.replay(0, 0.0))
        connection.writer.close(1012)
        await connection.task
        assert (connection.link.frames, connection.link.closed_with, log.head) == ([], (1012, ""), 0)

    @pytest.mark.parametrize("turns", range(6))
    async def test_cancelled_at_any_point_it_resets_the_connection(self, turns: int) -> None:
        """(invariant 145)"""
        log = new_log()
        connection = Connection(log, FakeLink(stuck=True, silent=True))
        say(log, 100, size=1400)
        await settle(turns)
        if turns > 3:
            connection.writer.close(1000)
        connection.task.cancel()
        await asyncio.wait([connection.task])
        assert connection.task.cancelled()
        assert connection.link.aborted_at is not None or turns == 0
        assert connection.losses == []
