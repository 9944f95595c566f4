"""The writer over connections of every temper, on a virtual clock."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.pacing import Pacing
from counterpoint.delivery.replies import MAX_BYTES, MAX_EVENTS
from counterpoint.delivery.writer import BATCH_BYTES, TURN_ENTRIES, Loss, Writer
from counterpoint.limits import TransportLimits
from counterpoint.protocol.codec import join
from counterpoint.protocol.commands import ReplayPolicy
from counterpoint.session.effects import Tag

from .link import HIGH_WATER, FakeLink
from .support import AUDIO, CLOSED, OVERLAP, TRANSCRIPT, UPDATED, audio_tag, new_log


def body(kind_type: str, size: int = 0) -> bytes:
    """A body of about ``size`` bytes; only the type matters to a connection here."""
    return b'{"type":"%b","delta":"%b"}' % (kind_type.encode(), b"a" * max(0, size - 40))


def say(log: EventLog, count: int = 1, *, size: int = 0, response: str = "r", step: int = 100) -> None:
    """``count`` audio deltas of ``size`` bytes, each ``step`` samples further."""
    for number in range(1, count + 1):
        tag = audio_tag(response, samples=number * step)
        log.record(AUDIO, body(AUDIO.type, size), tag=tag, now=_now())


def _now() -> float:
    return asyncio.get_running_loop().time()


def reply(name: str, size: int = 0) -> bytes:
    return body(name, size)


def _nothing() -> None:
    pass


def _raise() -> None:
    raise ZeroDivisionError


class Connection:
    """A writer at work on a link, and what it reported."""

    def __init__(
        self,
        log: EventLog,
        link: FakeLink | None = None,
        *,
        cursor: Cursor | None = None,
        extended: bool = True,
        beta: bool = False,
        limits: TransportLimits | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        self.link = link or FakeLink()
        self.losses: list[Loss] = []
        self.when_lost: Callable[[], None] = _nothing
        self.when_lagging: Callable[[], None] = _nothing
        self.snapshots: list[int] = []
        self.writer = Writer(
            self.link,
            cursor or log.replay(log.head, _now()),
            limits or TransportLimits(),
            extended=extended,
            beta=beta,
            lost=self._lost,
            snapshot=self._snapshot,
            event_id=lambda: "event_1",
            pacing=pacing,
        )
        self.task = asyncio.create_task(self.writer.run())

    def _lost(self, loss: Loss) -> None:
        self.losses.append(loss)
        self.when_lost()

    def _snapshot(self, as_of: int) -> list[bytes]:
        self.when_lagging()
        self.snapshots.append(as_of)
        return [b'{"type":"session.snapshot","as_of_server_event_seq":%d}' % as_of]

    async def closed(self, code: int = 1000) -> None:
        """Close and wait for the end."""
        self.writer.close(code)
        await self.task


def timers() -> int:
    """Timers of the loop that will go off."""
    scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return sum(not timer.cancelled() for timer in scheduled)


def may_be_read(connection: Connection) -> bool:
    return connection.writer.has_room


async def settle(turns: int = 50) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


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
        connection.when_lagging = _raise
        await settle()
        say(log, 5)
        await asyncio.wait([connection.task])
        assert isinstance(connection.task.exception(), ZeroDivisionError)
        assert connection.link.aborted_at is not None


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
        began = _now()
        connection.writer.close(1000, flush_log=True)
        await connection.task
        assert _now() - began == pytest.approx(2)
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


class TestPacing:
    def pacing(self, played: list[float], lead_ms: float) -> Pacing:
        """Samples of these tests are milliseconds; ``played`` holds the position of playback."""
        return Pacing(lead_ms, lambda tag: tag.samples - played[0])

    async def test_audio_stays_within_the_lead(self) -> None:
        """(invariant 126)"""
        log, played = new_log(), [0.0]
        connection = Connection(log, pacing=self.pacing(played, 250))
        say(log, 10)
        await settle()
        assert connection.link.numbers == [1, 2]
        played[0] = 200.0
        connection.writer.wake()
        await settle()
        assert connection.link.numbers == [1, 2, 3, 4]
        await connection.closed()

    async def test_it_goes_on_by_itself_when_playback_does_and_does_not_drift(self) -> None:
        log, loop = new_log(), asyncio.get_running_loop()
        began = loop.time()
        sent: list[float] = []

        def ahead(tag: Tag) -> float:
            return tag.samples - (loop.time() - began) * 1000

        connection = Connection(log, pacing=Pacing(200, ahead))
        say(log, 50)
        while len(connection.link.frames) < 50:
            await asyncio.sleep(0.001)
            while len(sent) < len(connection.link.frames):
                sent.append(loop.time() - began)
        nominal = [max(0.0, (number * 100 - 200) / 1000) for number in range(1, 51)]
        assert all(0 <= at - due < 0.008 for at, due in zip(sent, nominal, strict=True))
        await connection.closed()

    async def test_nothing_overtakes_audio_that_is_held_back(self) -> None:
        log, played = new_log(), [0.0]
        connection = Connection(log, pacing=self.pacing(played, 100))
        say(log, 2)
        log.record(TRANSCRIPT, body(TRANSCRIPT.type), now=0.0)
        await settle()
        assert connection.link.numbers == [1]
        played[0] = 100.0
        connection.writer.wake()
        await settle()
        assert connection.link.numbers == [1, 2, 3]
        await connection.closed()

    async def test_replies_are_not_held_back(self) -> None:
        log = new_log()
        connection = Connection(log, pacing=self.pacing([0.0], 100))
        say(log, 5)
        await settle()
        connection.writer.send(reply("session.heartbeat_ack"))
        await settle()
        assert connection.link.numbers == [1, "session.heartbeat_ack"]
        await connection.closed()

    async def test_an_entry_longer_than_the_lead_goes_when_all_before_it_was_played(self) -> None:
        log, played = new_log(), [0.0]
        connection = Connection(log, pacing=self.pacing(played, 50))
        say(log, 2)
        await settle()
        assert connection.link.numbers == [1]
        played[0] = 99.0
        connection.writer.wake()
        await settle()
        assert connection.link.numbers == [1]
        played[0] = 100.0
        connection.writer.wake()
        await settle()
        assert connection.link.numbers == [1, 2]
        await connection.closed()

    async def test_an_interruption_frees_what_waited_behind(self) -> None:
        log = new_log()
        connection = Connection(log, pacing=self.pacing([0.0], 100))
        say(log, 5)
        await settle()
        log.discard("r", ())
        log.record(UPDATED, b'{"type":"session.updated","session":{}}', now=0.0)
        await settle()
        assert connection.link.numbers == [1, 2]
        assert timers() == 0, "nothing is held back any more"
        await connection.closed()

    async def test_the_end_of_a_session_does_not_wait_for_playback(self) -> None:
        log = new_log()
        connection = Connection(log, pacing=self.pacing([0.0], 100))
        say(log, 5)
        await settle()
        connection.writer.close(1000, flush_log=True)
        await connection.task
        assert connection.link.numbers == [1, 2, 3, 4, 5]

    async def test_a_replay_is_paced_and_what_is_passed_over_is_not(self) -> None:
        log, played = new_log(), [0.0]
        say(log, 3, response="cut")
        say(log, 3)
        log.take(0.0, 100, 1 << 30)
        log.discard("cut", ())
        connection = Connection(log, cursor=log.replay(0, 0.0), pacing=self.pacing(played, 100))
        await settle()
        assert connection.link.numbers == ["session.skipped", 4]
        played[0] = 300.0
        connection.writer.wake()
        await settle()
        assert connection.link.numbers == ["session.skipped", 4, 5, 6]
        await connection.closed()

    async def test_off_the_order_and_the_bytes_are_the_same(self) -> None:
        """(invariant 126)"""
        links = []
        for pacing in (None, Pacing(1e9, lambda tag: 0.0)):
            log = new_log()
            connection = Connection(log, pacing=pacing)
            say(log, 3)
            log.record(TRANSCRIPT, body(TRANSCRIPT.type), now=0.0)
            await settle()
            links.append(connection.link.frames)
            await connection.closed()
        assert links[0] == links[1]
