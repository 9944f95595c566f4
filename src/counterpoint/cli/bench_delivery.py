"""What it costs to hand one event to a connection, against the obvious way of doing it.

Owns: the measurements of delivery and the baseline that they are ratios of.
Does not own: the command line (``cli.bench``), anything that a server runs.
Here because: a claim about speed is a ratio that anyone can take on their own machine.

Both sides do the same work for one 20 ms audio event: Base64, JSON, a number, an entry in a bounded journal,
a write to a transport. With one session the events come in bursts, as a model makes them, so that one wake of
the writer serves several; with many, each has one at a time. Rounds of all are interleaved, so that a busy
machine slows all; the best of each counts.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.writer import Writer
from counterpoint.limits import MIB, JournalLimits, TransportLimits
from counterpoint.protocol import codec
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.events import Duplex, OutputAudioDelta
from counterpoint.session.effects import Progress, Tag

from .figures import Figure

EVENTS = 4000
ROUNDS = 7
#: Events between two turns of the loop.
BURST = 64
#: What each of many sessions retains while they are measured.
HELD = 50
REPLAYED = 10_000
PCM = bytes(range(256)) * 3 + bytes(192)  # 20 ms at 24 kHz
_EVENT = OutputAudioDelta(
    response_id="resp_9f3c02d1a7b4-7",
    item_id="item_9f3c02d1a7b4-9",
    output_index=0,
    content_index=0,
    pcm=PCM,
)
_TAG = Tag("resp_9f3c02d1a7b4-7", "item_9f3c02d1a7b4-9", 0, 480, 0, Progress.DELTA)
_DUPLEX = Duplex(epoch=3, turn_id=7, audio_duration_ms=20)


class NullLink:
    """A transport that takes everything and keeps nothing."""

    def __init__(self) -> None:
        self.frames = 0

    def write(self, frames: Sequence[bytes]) -> None:
        self.frames += len(frames)

    async def drain(self) -> None:
        """There is always room."""

    def buffered(self) -> int:
        return 0

    async def close(self, code: int, reason: str = "") -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is open."""


class Ours:
    """The log and the writer of one session, as the server has them."""

    def __init__(self, budget: TotalBudget) -> None:
        self.link = NullLink()
        self.log = EventLog(JournalLimits(max_bytes=64 * MIB), budget, _accept)
        self.writer = Writer(
            self.link,
            self.log.replay(0, 0.0),
            TransportLimits(),
            extended=True,
            lost=_accept,
            snapshot=lambda _: (),
            event_id=lambda: "event_0",
        )
        self._number = 0

    def say(self) -> None:
        """One audio delta into the log: what the runner's outbox does with an effect."""
        self._number += 1
        self.log.record(
            kind_of(_EVENT),
            codec.encode_body(_EVENT, f"event_9f3c02d1a7b4-{self._number}"),
            now=0.0,
            duplex=codec.encode_duplex(_DUPLEX),
            tag=_TAG,
            epoch=3,
        )


class Naive:
    """The obvious way: dictionaries, one lock around the journal, one around the socket, JSON for each."""

    def __init__(self) -> None:
        self._journal_lock = asyncio.Lock()
        self._send_lock = asyncio.Lock()
        self._journal: deque[tuple[int, str, dict[str, Any]]] = deque(maxlen=65_536)
        self._number = 0
        self.bytes_sent = 0

    async def say(self) -> None:
        event = {
            "type": "response.output_audio.delta",
            "event_id": f"event_9f3c02d1a7b4-{self._number}",
            "response_id": "resp_9f3c02d1a7b4-7",
            "item_id": "item_9f3c02d1a7b4-9",
            "output_index": 0,
            "content_index": 0,
            "delta": base64.b64encode(PCM).decode(),
            "duplex": {"epoch": 3, "turn_id": 7, "audio_duration_ms": 20},
        }
        async with self._journal_lock:
            self._number += 1
            event["server_event_seq"] = self._number
            self._journal.append((self._number, json.dumps(event), event))
        async with self._send_lock:
            self.bytes_sent += len(json.dumps(event).encode())


def measure(progress: Callable[[str], None]) -> list[Figure]:
    """Ratios of costs, and the longest stall of a replay in milliseconds."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> list[Figure]:
    naive, alone, thousand, two_thousand = [], [], [], []
    for number in range(ROUNDS):
        progress(f"  round {number + 1} of {ROUNDS}")
        naive.append(await _cost(_naive_round))
        alone.append(await _cost(lambda: _our_round(1)))
        thousand.append(await _cost(lambda: _our_round(1000)))
        two_thousand.append(await _cost(lambda: _our_round(2000)))
    ours = min(alone)
    return [
        Figure("the obvious way, one event", min(naive) * 1e6, "us"),
        Figure("ours, one event", ours * 1e6, "us"),
        Figure("obvious / ours", min(naive) / ours, "times", at_least=12),
        Figure("obvious / ours with 1,000 sessions", min(naive) / min(thousand), "times", at_least=8),
        Figure("2,000 sessions / one", min(two_thousand) / ours, "times", at_most=2.2),
        Figure("longest stall of a replay of 10,000", await _replay_stall() * 1000, "ms", at_most=15),
    ]


async def _cost(round_: Callable[[], Awaitable[float]]) -> float:
    """Processor seconds of one event; what was built for the round is not looked at by the collector."""
    gc.collect()
    gc.freeze()
    try:
        return await round_() / EVENTS
    finally:
        gc.unfreeze()


async def _naive_round() -> float:
    naive = Naive()
    began = time.process_time()
    for _ in range(EVENTS):
        await naive.say()
    return time.process_time() - began


async def _our_round(sessions: int) -> float:
    budget = TotalBudget(JournalLimits().total_max_bytes)
    all_ = [Ours(budget) for _ in range(sessions)]
    writers = [asyncio.create_task(ours.writer.run()) for ours in all_]
    for ours in all_ if sessions > 1 else ():
        for _ in range(HELD):
            ours.say()
    await _taken(all_)
    gc.freeze()
    began = time.process_time()
    for number in range(EVENTS):
        all_[number % sessions].say()
        if number % BURST == 0:
            await asyncio.sleep(0)
    await _taken(all_)
    spent = time.process_time() - began
    for writer in writers:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)
    return spent


async def _taken(sessions: Sequence[Ours]) -> None:
    """Return when the writers have taken everything; whatever the loop does meanwhile is what is measured."""
    while any(ours.log.pending_bytes for ours in sessions):  # noqa: ASYNC110
        await asyncio.sleep(0)


async def _replay_stall() -> float:
    """The longest time for which a replay of 10,000 entries keeps the loop from anything else."""
    ours = Ours(TotalBudget(JournalLimits().total_max_bytes))
    for _ in range(REPLAYED):
        ours.say()
    ours.log.take(0.0, REPLAYED, 64 * MIB)
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not done:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    watching = asyncio.create_task(watch())
    replaying = asyncio.create_task(ours.writer.run())
    while ours.link.frames < REPLAYED:  # noqa: ASYNC110
        await asyncio.sleep(0)
    done = True
    await watching
    replaying.cancel()
    await asyncio.gather(replaying, return_exceptions=True)
    return longest


def _accept(_: object) -> None:
    """Nobody needs to know."""
