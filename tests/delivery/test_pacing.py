"""Pacing: audio keeps to its lead over playback, and everything else keeps its order."""

from __future__ import annotations

import asyncio

from counterpoint.delivery.pacing import Pacing
from counterpoint.session.effects import Tag

from .connection import Connection, body, reply, say, settle, timers
from .support import TRANSCRIPT, UPDATED, new_log


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
