"""What a listener heard is what the history keeps (wire contract, section 7).

The listener plays at real speed from the first audio that it gets, over a line that takes its time. It is
interrupted anywhere in a word, in a chunk and between two of its reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from counterpoint.client import Session
from counterpoint.models.scripted.call_log import CallLog
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.models.scripted.script import Lifecycle
from counterpoint.models.scripted.session import ScriptedSession
from counterpoint.plugins.contract import AudioDelta, Capabilities, Fence, ModelEvent, Outlet
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.config import SessionConfig
from counterpoint.testing import virtual_time

from .line import Dial, serving

WORD_MS = 200
#: Equally long, so that each takes as long as the other: ``content.events`` spreads text by its characters.
WORDS = [f"word{number}" for number in range(10, 40)]
TEXT = "".join(f"{word} " for word in WORDS)
ANSWER: dict[str, Any] = {"audio_ms": WORD_MS * len(WORDS), "chunk_ms": 160, "text": TEXT}
HISTORY = {"echo_history": True, "audio_ms": 100}

POSITIONS_S = [0.31 + 0.1073 * number for number in range(50)]
#: A listener says so often how far it is.
REPORT_S = 0.1
FRAME_S = 0.02
#: What an interruption leads to is over by then.
SETTLED_S = 1.0
LOUD = (30_000).to_bytes(2, "little")
#: Virtual seconds: a wait that nothing ends would go on for ever, since a loop without a clock is never idle.
PATIENCE_S = 60

DETECTION = {"type": "server_vad", "detector": "amp", "create_response": False}


class Listener:
    """Plays an answer. ``played``: samples that have sounded until now, or until it was stopped."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._got = 0
        self._ends_at = 0.0  #: when all it got will have sounded
        self._played = 0
        self.response_id = ""
        self.playing = asyncio.Event()
        self.stopped = asyncio.Event()

    @property
    def played(self) -> int:
        if self.stopped.is_set():
            return self._played
        return self._got - round(max(0.0, self._ends_at - self._loop.time()) * SESSION_RATE)

    @property
    def played_ms(self) -> int:
        return self.played * 1000 // SESSION_RATE

    def stop(self) -> None:
        """What has not sounded will not."""
        self._played = self.played
        self.stopped.set()

    async def listen(self) -> None:
        async for event in self._session.events():
            if event.type == "response.output_audio.delta" and not self.stopped.is_set():
                self._take(len(event.audio) // 2)
                self.response_id = event.response_id
                self.playing.set()
            elif event.type == "input_audio_buffer.speech_started":
                self.stop()

    async def report(self) -> None:
        """How far it is, now and then; the last time when it was stopped."""
        await self.playing.wait()
        while not self.stopped.is_set():
            await self._session.acknowledge_playback(self.response_id, self.played_ms)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopped.wait(), REPORT_S)
        await self._session.acknowledge_playback(self.response_id, self.played_ms)

    def _take(self, samples: int) -> None:
        self._got += samples
        self._ends_at = max(self._ends_at, self._loop.time()) + samples / SESSION_RATE


@contextlib.asynccontextmanager
async def listening(session: Session, *, reports: bool) -> AsyncIterator[Listener]:
    listener = Listener(session)
    tasks = [asyncio.create_task(listener.listen())]
    if reports:
        tasks.append(asyncio.create_task(listener.report()))
    try:
        yield listener
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# ------------------------------------------------------------------ interrupting


async def by_speech(session: Session, listener: Listener) -> None:
    """What the ``amp`` detector takes for speech, until the listener is told that it was heard."""
    while not listener.stopped.is_set():
        await session.append_audio(LOUD * round(FRAME_S * SESSION_RATE))
        await asyncio.sleep(FRAME_S)


async def by_barge_in(session: Session, listener: Listener) -> None:
    listener.stop()
    await session.send({"type": "barge_in"})


async def by_cancel(session: Session, listener: Listener) -> None:
    listener.stop()
    assert await session.cancel()


Interrupt = Callable[[Session, Listener], Awaitable[None]]

#: The pace of the answer, what interrupts it, whether the listener reports. An answer that came at once is
#: only played by then.
WAYS: dict[str, tuple[str, Interrupt, bool]] = {
    "speech": ("realtime", by_speech, True),
    "response.cancel": ("realtime", by_cancel, False),
    "speech over playback": ("burst", by_speech, False),
    "barge_in over playback": ("burst", by_barge_in, True),
}


# ------------------------------------------------------------------ models


class Unmarked(ScriptedPlugin):
    """A model that does not say which text belongs to which audio, except that one accompanies the other."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), text_alignment="proportional")

    def create_session(self, session_id: str) -> ScriptedSession:
        return _UnmarkedSession(session_id, Lifecycle(), CallLog(), set())


class _UnmarkedSession(ScriptedSession):
    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        await super().open(config, _WithoutMarks(outlet))


class _WithoutMarks:
    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.writable = outlet.writable

    def emit(self, fence: Fence, event: ModelEvent) -> None:
        self._outlet.emit(fence, replace(event, marks=()) if isinstance(event, AudioDelta) else event)


# ------------------------------------------------------------------ the tests


@dataclass(frozen=True)
class Kept:
    """``heard``: whole words that sounded; ``item`` and ``history``: what is left of the answer."""

    heard: int
    item: list[str]
    history: list[str]


async def interrupted(dial: Dial, how: str, at_s: float) -> Kept:
    pace, interrupt, reports = WAYS[how]
    config = {
        "type": "realtime",
        "audio": {"input": {"turn_detection": DETECTION}},
        "extra_body": {"script": [ANSWER | {"pace": pace}, HISTORY]},
    }
    async with dial(config) as session, listening(session, reports=reports) as listener:
        response = await session.respond()
        await listener.playing.wait()
        await asyncio.sleep(at_s)
        await interrupt(session, listener)
        await response.done()
        await asyncio.sleep(SETTLED_S)
        item_id = response.output[0]["id"]
        item = await session.retrieve_item(item_id)
        told = await (await session.respond()).done()
    given = "".join(entry["text"] for entry in json.loads(told.text) if entry["id"] == item_id)
    heard = listener.played_ms // WORD_MS
    return Kept(heard, item["content"][0]["transcript"].split(), given.split())


async def everywhere(plugin: ScriptedPlugin, how: str) -> list[Kept]:
    async with asyncio.timeout(PATIENCE_S), serving(plugin) as dial, asyncio.TaskGroup() as tasks:
        kept = [tasks.create_task(interrupted(dial, how, at_s)) for at_s in POSITIONS_S]
    return [task.result() for task in kept]


def check(kept: list[Kept], *, share: float = 0.0) -> None:
    """To one word, or to ``share`` of what was heard: nothing but the beginning of the answer."""
    for each in kept:
        assert each.history == WORDS[: len(each.history)]
        assert abs(len(each.history) - each.heard) <= max(1, share * each.heard), each
    assert len({len(each.history) for each in kept}) > len(POSITIONS_S) / 2


@pytest.mark.parametrize("how", WAYS)
def test_history_keeps_the_words_that_were_heard(how: str) -> None:
    """Invariants 94 and 112, at 50 positions: to one word, whatever interrupts and whoever counts."""
    kept = virtual_time.run(everywhere(ScriptedPlugin({}), how))
    check(kept)
    if WAYS[how][0] == "burst":  # the item was announced whole, and is cut as by a truncation
        assert all(each.item == each.history for each in kept)


@pytest.mark.parametrize("how", ["response.cancel", "barge_in over playback"])
def test_history_keeps_a_tenth_more_or_less_where_no_mark_says_better(how: str) -> None:
    """Invariant 113, at 50 positions."""
    check(virtual_time.run(everywhere(Unmarked({}), how)), share=0.1)
