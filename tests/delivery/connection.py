"""A writer at work on a link, and the words for talking to it.

Owns: ``Connection`` and what tests say to a log and read off a loop.
Does not own: the link (``link``), logs (``support``).
Here because: the tests of the writer, its watchdog, its replies and its pacing look at the same thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.pacing import Pacing
from counterpoint.delivery.player import Player
from counterpoint.delivery.writer import Loss, Writer
from counterpoint.limits import TransportLimits

from .link import FakeLink
from .support import AUDIO, audio_tag


def body(kind_type: str, size: int = 0) -> bytes:
    """A body of about ``size`` bytes; only the type matters to a connection here."""
    return b'{"type":"%b","delta":"%b"}' % (kind_type.encode(), b"a" * max(0, size - 40))


def say(log: EventLog, count: int = 1, *, size: int = 0, response: str = "r", step: int = 100) -> None:
    """``count`` audio deltas of ``size`` bytes, each ``step`` samples further."""
    for number in range(1, count + 1):
        tag = audio_tag(response, samples=number * step)
        log.record(AUDIO, body(AUDIO.type, size), tag=tag, now=now())


def now() -> float:
    return asyncio.get_running_loop().time()


def reply(name: str, size: int = 0) -> bytes:
    return body(name, size)


def nothing() -> None:
    pass


def fail() -> None:
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
        player: Player | None = None,
    ) -> None:
        self.link = link or FakeLink()
        self.losses: list[Loss] = []
        self.when_lost: Callable[[], None] = nothing
        self.when_lagging: Callable[[], None] = nothing
        self.snapshots: list[int] = []
        self.writer = Writer(
            self.link,
            cursor or log.replay(log.head, now()),
            limits or TransportLimits(),
            extended=extended,
            beta=beta,
            lost=self._lost,
            snapshot=self._snapshot,
            event_id=lambda: "event_1",
            pacing=pacing,
            player=player,
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
