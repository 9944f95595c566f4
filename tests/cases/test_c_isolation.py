"""Group C of the known cases: what one session does, no other feels, and nothing outlives it."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from .client import AMP, BYTES_PER_MS, MANUAL, Caller, append, fresh_id, tone
from .plugins import Hook, InterceptedPlugin, RaisesAtFirst
from .wire import Event, http_get
from .world import GRACE_S, World, until

#: An answer that goes on for as long as any test here looks at it.
LONG: Event = {"audio_ms": 30_000, "chunk_ms": 20}

CLOSE: Event = {"type": "session.close"}
COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}
CLEAR: Event = {"type": "input_audio_buffer.clear"}
HEARTBEAT: Event = {"type": "session.heartbeat"}


async def test_c03_speech_that_interrupts_and_a_reset_at_once_lose_no_end(world: World) -> None:
    """Case C-03. A hundred times within 20 ms of each other: every session ends, every slot is free."""
    at_once, chance = 25, random.Random(3)
    await world.serve({"limits.max_sessions": at_once, "lease.disconnect_grace_s": 0.3})

    async def run() -> None:
        caller = await world.call(LONG, session=AMP)
        await caller.ask()
        await caller.expect("response.output_audio.delta")
        reset_after_s, speak_after_s = chance.uniform(0, 0.02), chance.uniform(0, 0.02)

        async def speak() -> None:
            await asyncio.sleep(speak_after_s)
            if caller.connection.alive:
                await caller.send(append(tone(200, 0.9)))

        speaking = asyncio.create_task(speak())
        await asyncio.sleep(reset_after_s)
        caller.reset()
        await asyncio.gather(speaking, return_exceptions=True)

    for _ in range(4):
        await asyncio.gather(*(run() for _ in range(at_once)))
        await until(lambda: _used_slots(world, 0), within=0.3 + 1, what="free slots")
    assert await world.metric("counterpoint_sessions_ended_total", reason="disconnect_grace_expired") == 100


async def _used_slots(world: World, number: int) -> bool:
    used: int = (await world.state())["slots"]["used"]
    return used == number


@pytest.mark.parametrize("ending", ["reset", "close"])
async def test_c10_nothing_reaches_the_model_after_its_end(world: World, ending: str) -> None:
    """Case C-10. Appends keep coming while the session ends, before it and behind it."""
    await world.serve({"lease.disconnect_grace_s": 0.3})
    caller = await world.call(session=MANUAL)
    if ending == "close":
        await caller.send(append(tone(20, 0.5)), CLOSE, *(append(tone(20, 0.5)) for _ in range(50)))
        await caller.expect("session.closed")
        assert {event["error"]["code"] for event in caller.connection.named("error")} <= {"session_closed"}
    else:
        for _ in range(20):
            await caller.send(append(tone(5, 0.5)))
            await asyncio.sleep(0.005)
        caller.reset()
    await until(lambda: _used_slots(world, 0))
    calls = [call["call"] for call in await world.calls(caller.id)]
    assert calls[-1] == "close"
    assert calls.count("close") == 1
    await asyncio.sleep(0.3)
    assert [call["call"] for call in await world.calls(caller.id)] == calls
    assert (await http_get(world.url, "/health"))[0] == 200


async def test_c11_an_append_beside_a_close_is_accepted_or_refused_and_never_lost(world: World) -> None:
    """Case C-11. Two tasks of one client; what was sent behind the close is refused by name."""
    at_once, chance = 20, random.Random(11)
    await world.serve({"limits.max_sessions": at_once})

    async def run() -> bool:
        # The cleanup takes a moment, so that there is somebody to answer an append which comes too late.
        caller = await world.call({"cleanup_delay_ms": 100}, session=MANUAL)
        order: list[str] = []

        async def say(event: Event, after_s: float) -> None:
            await asyncio.sleep(after_s)
            order.append(event["type"])
            await caller.send(event)

        late = append(tone(20, 0.5), event_id=fresh_id())
        await asyncio.gather(say(late, chance.uniform(0, 0.003)), say(CLOSE, chance.uniform(0, 0.003)))
        await caller.expect("session.closed")
        refused = [event["error"] for event in caller.connection.named("error")]
        was_late = order[0] == "session.close"
        expected = [("session_closed", late["event_id"])] if was_late else []
        assert [(error["code"], error["event_id"]) for error in refused] == expected
        await caller.connection.ended()
        return was_late

    outcomes = [
        was_late for _ in range(10) for was_late in await asyncio.gather(*(run() for _ in range(at_once)))
    ]
    assert len(set(outcomes)) == 2, "every race went the same way: this showed nothing"


async def _longest_gap(caller: Caller, response_id: str) -> float:
    """Longest time in which no audio of an answer came, from its first to its last."""
    await caller.expect("response.output_audio.delta")
    last, longest = time.monotonic(), 0.0
    while True:
        event = await caller.connection.until(
            lambda event: event["type"] in ("response.output_audio.delta", "response.output_audio.done")
        )
        if event["type"] == "response.output_audio.done":
            return longest
        now = time.monotonic()
        longest, last = max(longest, now - last), now


#: Where the model of A breaks: in its answer, or in a call into it.
FAULTS: dict[str, tuple[Event, Hook | None]] = {
    "first chunk": ({"fail_at_chunk": 0}, None),
    "a chunk in between": ({"fail_at_chunk": 7}, None),
    "last chunk": ({"fail_at_chunk": 49}, None),
    "respond": ({}, RaisesAtFirst()),
    "push": ({}, RaisesAtFirst()),
    "cancel": ({}, RaisesAtFirst()),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_c12_a_model_that_breaks_in_one_session_breaks_no_other(world: World, fault: str) -> None:
    """Case C-12. A is told at once, and its slot comes back; B's answer goes on without a pause."""
    script, hook = FAULTS[fault]
    broken: list[str] = []

    async def for_the_broken(session_id: str) -> None:
        if session_id in broken and hook is not None:
            await hook(session_id)

    await world.serve(plugin=InterceptedPlugin({fault: for_the_broken}))
    ann = await world.call({"audio_ms": 1000, "chunk_ms": 20} | script, session=MANUAL)
    ben = await world.call({"audio_ms": 1500, "chunk_ms": 20})
    broken.append(ann.id)
    listening = asyncio.create_task(_longest_gap(ben, await ben.ask()))
    match fault:
        case "push":
            await ann.send(append(tone(200, 0.5)))
            await ann.error("internal_error")
            await ann.expect("session.closed", reason="failed")
            assert (await ann.connection.ended()).code == 1011
        case "cancel":
            await ann.ask()
            await ann.expect("response.output_audio.delta")
            await ann.send({"type": "response.cancel"})
            assert (await ann.done())["status"] == "cancelled"
        case _:
            done = await ann.answer()
            assert (done["status"], done["status_details"]["error"]["code"]) == ("failed", "model_failed")
            if fault == "respond":
                assert (await ann.answer())["status"] == "completed"
    assert await listening < 0.6  # a chunk lasts 20 ms: the rest is room for a busy machine
    assert ben.connection.named("error") == []
    assert (await http_get(world.url, "/health"))[0] == 200
    if ann.connection.alive:
        await ann.hang_up()
    await until(lambda: _used_slots(world, 1))


class Budget:
    """What the server must hold of the input of one session, while its model accepts nothing."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self.committed = 0
        self.number = 0

    @property
    def held(self) -> int:
        return self.open + self.committed

    def expect(self, event: Event, size: int) -> str | None:
        """The code that refuses ``event``; None: it is accepted."""
        if event["type"] == "input_audio_buffer.append":
            if self.held + size > self.limit:
                return "input_backpressure"
            self.open += size
        elif event["type"] == "input_audio_buffer.clear":
            self.open = 0
        else:
            if self.open < 100 * BYTES_PER_MS:
                self.number += 1
                return "input_audio_buffer_commit_empty"
            self.committed, self.open = self.held, 0
        self.number += 1
        return None


@pytest.mark.parametrize("runs", [40, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])])
async def test_c17_the_input_budget_is_counted_right_over_clear_and_commit(world: World, runs: int) -> None:
    """Case C-17. A model that accepts nothing for now; random appends, clears and commits, numbered."""
    chance = random.Random(17)
    accepting = asyncio.Event()

    async def wait(session_id: str) -> None:
        await accepting.wait()

    await world.serve({"limits.max_sessions": 1}, plugin=InterceptedPlugin({"push": wait}))
    for _ in range(runs):
        accepting.clear()
        caller = await world.call(session=MANUAL)
        budget = Budget(64 * 1024)
        for _ in range(12):
            size = chance.choice((2, 960, 20_000, 32 * 1024))
            event = chance.choice((append(bytes(size)), append(bytes(size)), CLEAR, COMMIT))
            await _obeys(world, caller, budget, event, size)
        await caller.send(CLEAR)
        accepting.set()
        await _all_accepted(world, caller)
        await caller.send(append(bytes(budget.limit)), HEARTBEAT)
        await caller.expect("session.heartbeat_ack")
        assert _input_bytes(world, caller) == budget.limit
        await caller.hang_up()


async def _obeys(world: World, caller: Caller, budget: Budget, event: Event, size: int) -> None:
    number = budget.number + 1
    code = budget.expect(event, size)
    await caller.send(event | {"client_event_seq": number}, HEARTBEAT)
    # An error about a numbered event waits in the log, the answer to a heartbeat does not.
    told = [await _error_or_answer(caller) for _ in range(1 if code is None else 2)]
    assert sorted(told) == sorted(["answer", *([] if code is None else [code])])
    assert _input_bytes(world, caller) == budget.held


async def _all_accepted(world: World, caller: Caller) -> None:
    await until(lambda: _input_bytes(world, caller) == 0, what="an empty budget")


async def _error_or_answer(caller: Caller) -> str:
    event = await caller.connection.until(lambda event: event["type"] in ("error", "session.heartbeat_ack"))
    code: str = event["error"]["code"] if event["type"] == "error" else "answer"
    return code


def _input_bytes(world: World, caller: Caller) -> int:
    live = world.server.manager.find(caller.id)
    assert live is not None
    return live.runner.input_bytes


async def test_c18_usage_is_counted_whoever_is_there_to_read_it(world: World) -> None:
    """Case C-18. The client leaves before ``response.done``; the server's totals are whole."""
    await world.serve({"limits.max_sessions": 10, "lease.disconnect_grace_s": 0.2})
    for _ in range(5):
        caller = await world.call({"audio_ms": 200, "pace": "burst", "words": 7})
        await caller.ask()
        await caller.expect("response.output_audio.delta")
        caller.reset()
    stays = await world.call({"audio_ms": 300, "pace": "burst", "words": 11}, session=MANUAL)
    await stays.answer()
    await stays.send(append(tone(500, 0.5)))
    await stays.hang_up()
    await until(lambda: _used_slots(world, 0))
    log = (await world.state())["plugin_log"]
    spoken = sum(call["output_tokens"] for call in log if call["call"] == "end")
    assert spoken == 5 * 7 + 11
    assert await world.metric("counterpoint_tokens_total", direction="output") == spoken
    assert await world.metric("counterpoint_tokens_total", direction="input") > 0
    assert await world.metric("counterpoint_audio_seconds_total", direction="output") == pytest.approx(1.3)
    assert await world.metric("counterpoint_audio_seconds_total", direction="input") == pytest.approx(0.5)


#: Speech that begins after 240 ms of silence, in frames of 20 ms.
SPEECH = tone(240, 0.0) + tone(600, 0.9) + tone(1000, 0.0)


async def test_c20_detection_of_many_sessions_is_that_of_each_alone(world: World) -> None:
    """Case C-20. Thirty sessions, frames interleaved: every other one is silent, and stays so."""
    await world.serve({"limits.max_sessions": 31})
    alone = await _found(await world.call(session=AMP), SPEECH, spoken=True)
    callers = [await world.call(session=AMP) for _ in range(30)]
    found = await asyncio.gather(
        *(
            _found(caller, SPEECH if n % 2 else bytes(len(SPEECH)), spoken=n % 2 == 1)
            for n, caller in enumerate(callers)
        )
    )
    assert found == [alone if n % 2 else [] for n in range(30)]


async def _found(caller: Caller, pcm: bytes, *, spoken: bool) -> list[int]:
    """When speech began and ended in ``pcm``."""
    frame = 20 * BYTES_PER_MS
    for at in range(0, len(pcm), frame):
        await caller.send(append(pcm[at : at + frame]))
        await asyncio.sleep(0)
    if spoken:
        await caller.expect("input_audio_buffer.committed")
    await caller.send(HEARTBEAT)
    await caller.expect("session.heartbeat_ack")
    started = caller.connection.named("input_audio_buffer.speech_started")
    stopped = caller.connection.named("input_audio_buffer.speech_stopped")
    return [*(event["audio_start_ms"] for event in started), *(event["audio_end_ms"] for event in stopped)]


async def test_a_session_that_nobody_resumes_is_gone_after_its_grace(world: World) -> None:
    """Invariant 142: not before it, and with its reason."""
    await world.serve()
    caller = await world.call()
    caller.reset()
    await asyncio.sleep(GRACE_S * 0.7)
    await caller.resume()
    caller.reset()
    await until(lambda: _used_slots(world, 0), within=GRACE_S + 1)
    refused = await caller.try_resume()
    await refused.error("session_resume_expired")
    assert (await refused.ended()).code == 1008
