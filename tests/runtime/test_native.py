"""Native models from the wire to the slots, in one process and on a virtual clock."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from counterpoint.limits import TransportLimits
from counterpoint.models.scripted.content import ramp
from counterpoint.models.scripted.native import ScriptedFrames, ScriptedUnits
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.plugins.step_worker import InlineWorker
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.bounds import Bounds
from counterpoint.runtime.live import Dialect
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.runtime.metrics import Metrics
from counterpoint.testing import virtual_time
from counterpoint.testing.connection import Connection
from counterpoint.testing.link import Closed, MemoryLink

Event = dict[str, Any]

CUT_MS = 20


class Client:
    """A client of one session that reads whatever comes."""

    def __init__(self, manager: SessionManager) -> None:
        self._manager = manager
        self.events: list[Event] = []
        self.id = ""
        self.token = ""

    async def open(self, *scripts: Event, **session: Any) -> None:
        self._connect(autostart=False)
        body = {"type": "realtime", "extra_body": {"script": list(scripts)}, **session}
        self.send({"type": "session.update", "extensions": True, "session": body})
        await self.listen()

    async def resume(self) -> None:
        cursor = max(event.get("server_event_seq", 0) for event in self.events)
        self._connect(autostart=False)
        request = {
            "session_id": self.id,
            "resume_token": self.token,
            "last_received_server_event_seq": cursor,
        }
        self.send({"type": "session.resume", **request})
        await self.listen()

    def _connect(self, *, autostart: bool) -> None:
        self.link = MemoryLink()
        connection = Connection(self._manager, self.link, TransportLimits(), IdSource("cafe"), lambda: None)
        request = OpenRequest(dialect=Dialect(extended=True), duplex=True)
        self.task = asyncio.create_task(connection.run(request, autostart=autostart, resume=None))

    def send(self, event: Event) -> None:
        self.link.send(json.dumps({"event_id": "evt", **event}))
        self.link.arrive()

    async def listen(self, seconds: float = 0.0) -> None:
        """Let so much time pass, and read what comes in it."""
        end = now() + seconds
        while True:
            await asyncio.sleep(min(CUT_MS / 1000, max(0.0, end - now())))
            for _ in range(10):
                await asyncio.sleep(0)
                self._read()
            if now() >= end:
                return

    def _read(self) -> None:
        while (frame := self.link.read()) is not None:
            if isinstance(frame, Closed):
                continue
            event = json.loads(frame.payload)
            self.events.append(event)
            if event["type"] in ("session.created", "session.resumed"):
                self.id, self.token = event["session"]["id"], event["resume_token"]

    async def say(self, ms: int, level: float) -> None:
        """Speak in real time."""
        piece = round(level * 32767).to_bytes(2, "little") * (CUT_MS * 24)
        for _ in range(ms // CUT_MS):
            audio = base64.b64encode(piece).decode()
            self.send({"type": "input_audio_buffer.append", "audio": audio})
            await self.listen(CUT_MS / 1000)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def audio(self) -> bytes:
        deltas = self.of("response.output_audio.delta")
        return b"".join(base64.b64decode(event["delta"]) for event in deltas)

    @property
    def outcomes(self) -> list[str]:
        return [event["response"]["status"] for event in self.of("response.done")]


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def serving(plugin: ModelPlugin) -> AsyncIterator[SessionManager]:
    await plugin.start()
    entropy = random.Random(1).randbytes
    manager = SessionManager(plugin, Bounds(), entropy=entropy, metrics=Metrics())
    try:
        yield manager
    finally:
        await manager.close()
        await plugin.stop()


def frames(step_s: float = 0.01, **options: Any) -> ModelPlugin:
    return ScriptedFrames(options, worker=lambda: InlineWorker(step_s))


def run(plugin: Callable[[], ModelPlugin], story: Callable[[SessionManager], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving(plugin()) as manager:
            await story(manager)

    virtual_time.run(main())


def test_the_model_speaks_into_the_silence_of_its_client() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        await client.open({"audio_ms": 400, "text": "good day"})
        await client.say(400, 0.9)  # five frames
        await client.listen(3.0)
        assert client.audio == ramp(1, 0, 9600)
        assert client.outcomes == ["completed"]
        kinds = [event["type"] for event in client.events if event["type"].startswith("response.")]
        assert kinds[:2] == ["response.created", "response.speak"]
        assert kinds[-1] == "response.done"
        assert not client.of("error")

    run(frames, story)


def test_a_unit_model_says_once_that_it_listens() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        await client.open({"audio_ms": 1500})
        await client.listen(5.0)
        assert len(client.of("response.listen")) == 1
        await client.say(2000, 0.9)
        await client.listen(5.0)
        assert client.audio == ramp(1, 0, 36_000)
        assert client.of("response.done")[0]["response"]["status"] == "completed"

    run(lambda: ScriptedUnits({}, worker=lambda: InlineWorker(0.1)), story)


def test_the_client_reads_what_the_model_is() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        await client.open()
        capabilities = client.events[0]["session"]["capabilities"]
        assert (capabilities["interaction"], capabilities["unit_ms"]) == ("frame", 80.0)

    run(frames, story)


def test_speech_over_the_answer_is_heard_and_does_not_cut_it() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        detection = {"input": {"turn_detection": {"type": "server_vad", "detector": "amp"}}}
        await client.open({"audio_ms": 800}, audio=detection)
        await client.say(2000, 0.9)
        await client.listen(2.0)
        assert client.outcomes[0] == "completed"
        assert client.of("input_audio_buffer.speech_started")
        assert not client.of("input_audio_buffer.committed")
        assert client.audio[: 2 * 19_200] == ramp(1, 0, 19_200)

    run(frames, story)


def test_a_policy_of_the_client_cuts_it() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        detection = {"input": {"turn_detection": {"type": "server_vad", "detector": "amp"}}}
        await client.open({"audio_ms": 20_000}, audio=detection, overlap_policy="barge_in_on_speech")
        await client.say(400, 0.9)
        await client.say(1200, 0.0)
        await client.say(200, 0.9)
        heard = len(client.audio)
        assert client.outcomes == ["cancelled"]
        await client.listen(2.0)
        assert len(client.audio) == heard, "forced to listen, it waits for the next who speaks"
        await client.say(400, 0.9)
        await client.listen(1.0)
        assert client.audio[heard:].startswith(ramp(2, 0, 1920))

    run(frames, story)


def test_a_greeting_without_a_word_of_the_user() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        await client.open({"audio_ms": 160}, instructions="say hello")
        client.send({"type": "response.create"})
        await client.listen(2.0)
        assert client.outcomes == ["completed"]
        assert client.audio == ramp(1, 0, 3840)

    run(frames, story)


def test_an_answer_goes_on_after_a_resume_and_nothing_of_it_is_lost() -> None:
    async def story(manager: SessionManager) -> None:
        client = Client(manager)
        await client.open({"audio_ms": 2000})
        await client.say(400, 0.9)
        await client.listen(1.0)
        assert 0 < len(client.audio) < 2 * 48_000
        client.link.reset()
        await asyncio.sleep(5.0)  # nobody listens: the model stands still
        await client.resume()
        await client.listen(4.0)
        assert client.audio == ramp(1, 0, 48_000)
        assert client.outcomes == ["completed"]

    run(frames, story)


def test_sessions_side_by_side_and_in_used_slots_hear_what_they_would_hear_alone() -> None:
    """(invariant 153)"""

    async def talk(manager: SessionManager, number: int) -> None:
        client = Client(manager)
        await client.open({"audio_ms": 240 + 80 * number, "text": f"voice {number}"})
        for answer in range(1, 4):
            await client.say(400, 0.9)
            await client.listen(2.0)
            assert client.outcomes == ["completed"] * answer
        samples = (240 + 80 * number) * 24
        assert client.audio == b"".join(ramp(answer, 0, samples) for answer in range(1, 4))
        client.send({"type": "session.close"})
        await client.listen(0.1)

    async def story(manager: SessionManager) -> None:
        for _ in range(2):
            await asyncio.gather(*(talk(manager, number) for number in range(4)))
        assert manager.slots.used == 0

    run(lambda: frames(slots=4), story)


def test_steps_that_take_most_of_their_time_admit_nobody_else() -> None:
    async def story(manager: SessionManager) -> None:
        first, second = Client(manager), Client(manager)
        await first.open()
        await first.say(4000, 0.0)
        await second.open()
        await second.listen(1.0)
        assert [event["error"]["code"] for event in second.of("error")] == ["resource_exhausted"]

    run(lambda: frames(step_s=0.07), story)


def test_a_model_that_breaks_in_an_answer_is_replaced() -> None:
    """(invariant 79) The slots of the others go on, and no slot is lost by it."""

    async def story(manager: SessionManager) -> None:
        broken, other = Client(manager), Client(manager)
        await broken.open({"audio_ms": 800, "fail_at_chunk": 3})
        await other.open({"audio_ms": 800})
        await asyncio.gather(broken.say(400, 0.9), other.say(400, 0.9))
        await asyncio.gather(broken.listen(3.0), other.listen(3.0))
        assert broken.outcomes == ["failed"]
        assert broken.audio == ramp(1, 0, 3 * 1920)
        assert other.outcomes == ["completed"]
        assert other.audio == ramp(1, 0, 19_200)
        assert not broken.of("error")
        script = {"script": [{"audio_ms": 240}]}
        broken.send({"type": "session.update", "session": {"type": "realtime", "extra_body": script}})
        await broken.say(400, 0.9)
        await broken.listen(2.0)
        assert broken.outcomes == ["failed", "completed"]
        assert broken.audio[3 * 3840 :] == ramp(1, 0, 3 * 1920), "a new model begins to count anew"
        assert manager.plugin.load().sessions == 2

    run(lambda: frames(slots=2), story)


@pytest.mark.parametrize("plugin", [ScriptedFrames, ScriptedUnits])
def test_options_are_read(plugin: type[ScriptedFrames] | type[ScriptedUnits]) -> None:
    assert plugin({"slots": "3"}).capabilities().max_sessions == 3
