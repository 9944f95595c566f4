"""What it costs to hand one event to a connection, against the obvious way of doing it.

Owns: the measurements of delivery and the baseline that they are ratios of.
Does not own: the command line (``cli.bench``), anything that a server runs.
Here because: a claim about speed is a ratio that anyone can take on their own machine.

Both sides do the same work for one 20 ms audio event: Base64, JSON, a number, an entry in a journal, a write
to a transport. With one session the events come in bursts, as a model makes them, so that one wake of the
writer serves several; with many, each has one at a time. Rounds are short and interleaved, and the best of
each counts: a busy machine slows all of them, and seldom all the time.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import uvloop

from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.writer import Writer
from counterpoint.limits import GIB, MIB, JournalLimits, TransportLimits
from counterpoint.protocol import codec
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.events import Duplex, OutputAudioDelta
from counterpoint.session.effects import Progress, Tag

from .figures import Figure

#: Events of one round; between two turns of the loop there are ``BURST`` of them.
EVENTS = 512
BURST = 64
ROUNDS = 60
#: What each session retains when a round begins.
HELD = 50
REPLAYED = 10_000
REPLAYS = 5
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


class OurSession:
    """The log and the writer of one session, as the server has them."""

    def __init__(self, budget: TotalBudget, max_bytes: int = 8 * MIB) -> None:
        self.link = NullLink()
        self.log = EventLog(JournalLimits(max_bytes=max_bytes), budget, _accept)
        self._number = 0

    def connect(self) -> asyncio.Task[None]:
        """A connection that has received nothing yet."""
        writer = Writer(
            self.link,
            self.log.replay(0, 0.0),
            TransportLimits(),
            extended=True,
            lost=_accept,
            snapshot=lambda _: (),
            event_id=lambda: "event_0",
        )
        return asyncio.create_task(writer.run())

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


class NaiveSession:
    """The obvious way: dictionaries, one lock around the journal, one around the socket, JSON for each."""

    def __init__(self) -> None:
        self._journal_lock = asyncio.Lock()
        self._send_lock = asyncio.Lock()
        self.journal: deque[tuple[int, str, dict[str, Any]]] = deque()
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
            self.journal.append((self._number, json.dumps(event), event))
        async with self._send_lock:
            self.bytes_sent += len(json.dumps(event).encode())


class Server(Protocol):
    """Some sessions of one kind, which speak in turn."""

    def __len__(self) -> int: ...

    async def run(self, events: int) -> None:
        """``events`` events are handed to their connections."""
        ...

    def trim(self) -> None:
        """The clients acknowledge all but the last ``HELD``."""
        ...


class OurServer:
    def __init__(self, sessions: int) -> None:
        budget = TotalBudget(GIB)
        self._sessions = [OurSession(budget) for _ in range(sessions)]
        self._writers = [session.connect() for session in self._sessions]
        self._next = 0

    def __len__(self) -> int:
        return len(self._sessions)

    async def run(self, events: int) -> None:
        sessions = self._sessions
        for number in range(self._next, self._next + events):
            sessions[number % len(sessions)].say()
            if number % BURST == 0:
                await asyncio.sleep(0)
        self._next += events
        # As many turns as the writers need: what the loop does in them is what is measured.
        while sessions[(self._next - 1) % len(sessions)].log.pending_bytes:  # noqa: ASYNC110
            await asyncio.sleep(0)

    def trim(self) -> None:
        for session in self._sessions:
            session.log.acknowledge(max(0, session.log.head - HELD))

    async def stop(self) -> None:
        for writer in self._writers:
            writer.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)


class NaiveServer:
    def __init__(self, sessions: int) -> None:
        self._sessions = [NaiveSession() for _ in range(sessions)]
        self._next = 0

    def __len__(self) -> int:
        return len(self._sessions)

    async def run(self, events: int) -> None:
        for number in range(self._next, self._next + events):
            await self._sessions[number % len(self._sessions)].say()
        self._next += events

    def trim(self) -> None:
        for session in self._sessions:
            while len(session.journal) > HELD:
                session.journal.popleft()


def measure(progress: Callable[[str], None]) -> list[Figure]:
    """Ratios of costs, and the longest stall of a replay in milliseconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> list[Figure]:
    gc.collect()
    gc.freeze()  # as the server does after its start
    ours = {sessions: OurServer(sessions) for sessions in (1, 1000, 2000)}
    naive = {sessions: NaiveServer(sessions) for sessions in (1, 1000)}
    costs = await _costs([*ours.values(), *naive.values()], progress)
    alone, thousand, two_thousand, naive_alone, naive_thousand = costs
    for server in ours.values():
        await server.stop()
    stalls = [await _replay_stall() for _ in range(REPLAYS)]
    gc.unfreeze()
    return [
        Figure("the obvious way, one event", naive_alone * 1e6, "us"),
        Figure("ours, one event", alone * 1e6, "us"),
        Figure("obvious / ours", naive_alone / alone, "times", at_least=12),
        Figure("obvious / ours with 1,000 sessions", naive_thousand / thousand, "times", at_least=8),
        Figure("2,000 sessions / one", two_thousand / alone, "times", at_most=2.2),
        Figure("longest stall of a replay of 10,000", min(stalls) * 1000, "ms", at_most=15),
    ]


async def _costs(servers: Sequence[Server], progress: Callable[[str], None]) -> list[float]:
    """Processor seconds of one event, for each server the best of its rounds."""
    for server in servers:
        await server.run(len(server) * HELD)
    best = [math.inf] * len(servers)
    for number in range(ROUNDS):
        if number % 10 == 0:
            progress(f"  round {number + 1} of {ROUNDS}")
        for place, server in enumerate(servers):
            began = time.process_time()
            await server.run(EVENTS)
            best[place] = min(best[place], (time.process_time() - began) / EVENTS)
            server.trim()
    return best


async def _replay_stall() -> float:
    """The longest time for which a replay of 10,000 entries keeps the loop from anything else, in seconds."""
    session = OurSession(TotalBudget(GIB), max_bytes=64 * MIB)
    for _ in range(REPLAYED):
        session.say()
    session.log.take(0.0, REPLAYED, 64 * MIB)
    replaying = session.connect()
    longest, last = 0.0, time.perf_counter()
    while session.link.frames < REPLAYED:
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    replaying.cancel()
    await asyncio.gather(replaying, return_exceptions=True)
    return longest


def _accept(_: object) -> None:
    """Nobody needs to know."""
