"""When silence means that a peer is gone, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import pytest

from counterpoint.serving.keepalive import CLOCK_SLACK_S, Keepalive
from counterpoint.testing import virtual_time


def on_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**arguments: Any) -> None:
        virtual_time.run(test(**arguments))

    return run


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Peer:
    """A link whose peer sends its last byte ``answer_s`` after each ping; None: it sends nothing."""

    answer_s: float | None = None
    tells_bytes: bool = True
    pings: list[float] = field(default_factory=list)
    last_byte_at: float = 0.0
    waiting_bytes: int = 0

    def ping(self) -> None:
        self.pings.append(now())
        if self.answer_s is not None:
            asyncio.get_running_loop().call_later(self.answer_s, self._answer)

    def _answer(self) -> None:
        self.last_byte_at = now()

    def buffered(self) -> int:
        return self.waiting_bytes

    def seconds_since_bytes(self) -> float | None:
        return now() - self.last_byte_at if self.tells_bytes else None


async def died_at(
    peer: Peer, *, interval_s: float, timeout_s: float, watched_s: float = 100.0
) -> float | None:
    """When the keepalive gave the peer up; None if it did not."""
    deaths: list[float] = []
    keepalive = Keepalive(peer, interval_s, timeout_s, lambda: deaths.append(now()))
    await asyncio.sleep(watched_s)
    keepalive.stop()
    assert len(deaths) <= 1
    return deaths[0] if deaths else None


@on_virtual_time
async def test_a_silent_peer_is_dead_a_timeout_after_a_ping() -> None:
    """Case K-04."""
    assert await died_at(Peer(), interval_s=20, timeout_s=10) == 30


@pytest.mark.parametrize("answer_s", [0.0, 0.5, 0.99])
@on_virtual_time
async def test_a_peer_that_answers_in_time_lives(answer_s: float) -> None:
    peer = Peer(answer_s)
    assert await died_at(peer, interval_s=1, timeout_s=1) is None
    assert len(peer.pings) == 100


@on_virtual_time
async def test_an_answer_that_looks_older_than_its_ping_by_a_tick_counts() -> None:
    """The system rounds the age of a byte to its ticks; on loopback an answer comes within the same tick."""

    @dataclass
    class Rounding(Peer):
        def seconds_since_bytes(self) -> float:
            return now() - self.last_byte_at + CLOCK_SLACK_S / 2

    assert await died_at(Rounding(0.0), interval_s=1, timeout_s=1) is None


@on_virtual_time
async def test_while_our_own_bytes_drain_silence_means_nothing() -> None:
    """Case K-05. The buffers are filled again as they drain; the timeout runs from when they stand still."""
    peer = Peer()

    async def drain() -> None:
        for _ in range(40):
            peer.waiting_bytes = 16_000
            await asyncio.sleep(0.25)
            peer.waiting_bytes = 4_000
            await asyncio.sleep(0.25)

    draining = asyncio.create_task(drain())
    died = await died_at(peer, interval_s=1, timeout_s=1)
    await draining
    assert died is not None
    assert 20.5 <= died <= 21.25


@on_virtual_time
async def test_bytes_that_wait_and_do_not_drain_excuse_nobody() -> None:
    assert await died_at(Peer(waiting_bytes=16_000), interval_s=20, timeout_s=10) == 30


@on_virtual_time
async def test_without_a_timeout_it_pings_and_concludes_nothing() -> None:
    peer = Peer()
    assert await died_at(peer, interval_s=20, timeout_s=0) is None
    assert peer.pings == [20, 40, 60, 80, 100]


@on_virtual_time
async def test_where_bytes_cannot_be_seen_a_whole_message_is_the_sign_of_life() -> None:
    deaths: list[float] = []
    peer = Peer(tells_bytes=False)
    keepalive = Keepalive(peer, 1, 1, lambda: deaths.append(now()))
    for _ in range(10):
        await asyncio.sleep(0.9)
        keepalive.message_received()
    assert deaths == []
    await asyncio.sleep(3)
    assert len(deaths) == 1
