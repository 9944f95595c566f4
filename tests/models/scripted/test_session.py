"""The scripted session in time: pace, stops, failures, transcripts, opening and closing."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.models.support import SESSION, Outlet, now, request, step, user

from counterpoint.errors import ModelOpenFailed
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.models.scripted.session import ScriptedSession
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    Listen,
    Scope,
    ToolCall,
    TurnEnd,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.tools import Tool
from counterpoint.testing.virtual_time import run


async def open_session(
    script: Any = None, plugin: ScriptedPlugin | None = None
) -> tuple[ScriptedSession, Outlet]:
    session = (plugin or ScriptedPlugin({})).create_session(SESSION)
    outlet = Outlet()
    await session.open(SessionConfig(extra_body={"script": script}), outlet)
    return session, outlet


def asked(script: Any, turn: int = 1, *history: Any, **changes: Any) -> Any:
    return request(turn, *history, extra={"script": script}, **changes)


def test_realtime_chunks_come_when_they_are_due() -> None:
    """Deadlines form a chain: the error of one wake-up does not grow (invariant 62)."""

    async def main() -> None:
        script = {"audio_ms": 4000, "chunk_ms": 80}
        session, outlet = await open_session(script)
        start = now()
        await session.respond(asked(script))
        await outlet.ended(1)
        times = [at - start for at, _, event in outlet.said if isinstance(event, AudioDelta)]
        assert times == pytest.approx([k * 0.08 for k in range(50)], abs=1e-6)

    run(main())


def test_stall_delays_the_first_chunk_only() -> None:
    async def main() -> None:
        script = {"audio_ms": 160, "stall_first_ms": 1000}
        session, outlet = await open_session(script)
        start = now()
        await session.respond(asked(script))
        await outlet.ended(1)
        assert [at - start for at, _, _ in outlet.said] == pytest.approx([1.0, 1.08, 1.08])

    run(main())


def test_burst_waits_for_room_between_chunks() -> None:
    async def main() -> None:
        script = {"audio_ms": 800, "pace": "burst"}
        session, outlet = await open_session(script)
        outlet.room.clear()
        await session.respond(asked(script))
        await asyncio.sleep(1)
        assert outlet.said == []
        outlet.room.set()
        before = now()
        await outlet.ended(1)
        assert now() - before < 0.1

    run(main())


def test_time_without_room_moves_the_pace_instead_of_ending_in_a_burst() -> None:
    async def main() -> None:
        script = {"audio_ms": 480}
        session, outlet = await open_session(script)
        await session.respond(asked(script))
        await asyncio.sleep(0.1)
        outlet.room.clear()
        await asyncio.sleep(5)
        outlet.room.set()
        await outlet.ended(1)
        times = [at for at, _, event in outlet.said if isinstance(event, AudioDelta)]
        gaps = np.diff(times)
        assert sorted(gaps)[:-1] == pytest.approx([0.08] * 4, abs=1e-6)

    run(main())


async def test_ten_minutes_of_burst_leave_the_loop_to_others() -> None:
    """Other work runs between any two chunks (case K-01)."""
    script = {"audio_ms": 600_000, "pace": "burst"}
    session, outlet = await open_session(script)
    turns = 0
    await session.respond(asked(script))
    while not (outlet.said and isinstance(outlet.said[-1][2], TurnEnd)):
        await asyncio.sleep(0)
        turns += 1
    assert turns > 7500
    assert len(outlet.pcm()) == 600_000 * 48


def test_scripts_of_a_list_serve_one_response_each_and_the_last_repeats() -> None:
    async def main() -> None:
        script = [{"text": "a"}, {"text": "b"}]
        session, outlet = await open_session(script)
        for turn in (1, 2, 3):
            await session.respond(asked(script, turn))
            await outlet.ended(turn)
        assert [outlet.text(turn) for turn in (1, 2, 3)] == ["a", "b", "b"]
        await session.update(SessionConfig(extra_body={"script": [{"text": "c"}, {"text": "d"}]}))
        for turn in (4, 5):
            await session.respond(asked([{"text": "c"}, {"text": "d"}], turn))
            await outlet.ended(turn)
        assert [outlet.text(turn) for turn in (4, 5)] == ["c", "d"]

    run(main())


def test_an_answer_that_was_called_off_on_its_way_has_had_its_script() -> None:
    """Scripts serve one response each (wire contract, section 12), also one that the model never saw."""

    async def main() -> None:
        script = [{"text": text} for text in "abc"]
        session, outlet = await open_session(script)
        await session.respond(asked(script, 2, nth=2))
        await outlet.ended(2)
        again = script[::-1]
        await session.update(SessionConfig(extra_body={"script": again}))
        await session.respond(asked(again, 3, nth=1))
        await outlet.ended(3)
        assert (outlet.text(2), outlet.text(3)) == ("b", "c")

    run(main())


def test_failure_comes_at_its_chunk_and_ends_the_answer() -> None:
    """Only this response fails (case C-12)."""

    async def main() -> None:
        script = [{"fail_at_chunk": 3}, {}]
        session, outlet = await open_session(script)
        await session.respond(asked(script, 1))
        await asyncio.sleep(5)
        assert len(outlet.of(AudioDelta)) == 3
        assert outlet.events()[-1] == Failure("model_failed", Scope.TURN)
        await session.respond(asked(script, 2))
        await outlet.ended(2)

    run(main())


def test_hang_never_answers_and_can_be_cancelled() -> None:
    """Case D-08."""

    async def main() -> None:
        session, outlet = await open_session({"hang": True})
        await session.respond(asked({"hang": True}))
        await asyncio.sleep(3600)
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await asyncio.sleep(1)
        assert outlet.said == []
        await session.close()

    run(main())


def test_listen_is_a_decision_and_not_an_answer() -> None:
    async def main() -> None:
        session, outlet = await open_session({"listen": True})
        await session.respond(asked({"listen": True}))
        await asyncio.sleep(1)
        assert outlet.events() == [Listen()]

    run(main())


def test_a_cancelled_answer_says_nothing_more() -> None:
    """Cancel before the first output: no delta ever (case D-05)."""

    async def main() -> None:
        script = {"stall_first_ms": 500}
        session, outlet = await open_session(script)
        await session.respond(asked(script))
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await session.respond(asked(script, 2, epoch=1))
        await outlet.ended(2)
        assert outlet.events(1) == []

    run(main())


def test_cancel_spares_out_of_band_answers_and_newer_epochs_and_abort_names_one() -> None:
    async def main() -> None:
        script = {"audio_ms": 60_000}
        session, outlet = await open_session(script)
        await session.respond(asked(script, 1, epoch=0))
        await session.respond(asked(script, 2, epoch=0, out_of_band=True))
        await session.respond(asked(script, 3, epoch=1))
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await asyncio.sleep(1)
        assert outlet.events(1) == []
        assert len(outlet.of(AudioDelta, 2)) == len(outlet.of(AudioDelta, 3)) == 13
        await session.abort(Fence(SESSION, 5, 2))
        await asyncio.sleep(1)
        assert len(outlet.of(AudioDelta, 2)) == 13
        assert len(outlet.of(AudioDelta, 3)) > 13
        await session.close()

    run(main())


def test_a_script_may_go_on_after_a_cancel() -> None:
    async def main() -> None:
        script = {"audio_ms": 10_000, "ignore_cancel_ms": 400}
        session, outlet = await open_session(script)
        await session.respond(asked(script))
        await asyncio.sleep(0.1)
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        stopped_at = now()
        await asyncio.sleep(5)
        assert stopped_at + 0.3 < outlet.said[-1][0] <= stopped_at + 0.4

    run(main())


def test_echo_gives_back_the_input_of_the_turn() -> None:
    """Input is byte-exact, and an utterance that was forgotten is in no echo."""

    async def main() -> None:
        script = {"echo_input": True, "pace": "burst"}
        session, outlet = await open_session(script)
        pieces = [bytes([n]) * 480 for n in range(1, 6)]
        await session.push(step(1, pieces[0]))
        await session.forget(1)
        await session.push(step(1, pieces[1]))
        await session.push(step(1, pieces[2], final=True))
        await session.push(step(2, pieces[3]))
        await session.respond(asked(script, 1, user("u1", input=1), input=1))
        await outlet.ended(1)
        await session.push(step(2, pieces[4], final=True))
        await session.respond(asked(script, 2, user("u1", input=1), user("u2", input=2), input=2))
        await outlet.ended(2)
        assert outlet.pcm(1) == pieces[1] + pieces[2]
        assert outlet.pcm(2) == pieces[3] + pieces[4]

    run(main())


def test_echo_of_an_item_that_the_client_made_of_audio() -> None:
    async def main() -> None:
        script = {"echo_input": True}
        session, outlet = await open_session(script)
        await session.respond(asked(script, 1, user("u1", audio=b"\x01\x02" * 100)))
        await outlet.ended(1)
        assert outlet.pcm() == b"\x01\x02" * 100

    run(main())


def test_input_that_is_never_answered_does_not_pile_up() -> None:
    """An hour of committed turns without a response stays small (case C-15)."""

    async def main() -> None:
        session, _ = await open_session()
        second = bytes(48_000)
        tracemalloc.start()
        for utterance in range(1, 361):
            for _ in range(10):
                await session.push(step(utterance, bytearray(second)))  # type: ignore[arg-type]
            await session.push(step(utterance, final=True))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 12 * 480_000

    run(main())


def test_without_a_script_tools_are_called_once() -> None:
    async def main() -> None:
        session, outlet = await open_session()
        await session.respond(request(1, tools=(Tool("weather"),)))
        await outlet.ended(1)
        assert [event.name for event in outlet.of(ToolCall)] == ["weather"]
        await session.respond(request(2))
        await outlet.ended(2)
        assert outlet.text(2).startswith("word1 word2")

    run(main())


def test_a_script_speaks_even_where_tools_are_offered() -> None:
    async def main() -> None:
        session, outlet = await open_session({})
        await session.respond(asked({}, 1, tools=(Tool("weather"),)))
        await outlet.ended(1)
        assert outlet.of(ToolCall) == []

    run(main())


def test_transcripts_go_by_their_input_and_not_by_each_other() -> None:
    """Delays of 3 s and 0 s around a failure: each is told apart (case J-03)."""

    async def main() -> None:
        script = [
            {"input_transcript": "one and one", "transcript_delay_ms": 3000},
            {"fail_transcript": True},
            {"input_transcript": "three"},
        ]
        session, outlet = await open_session(script)
        for utterance in (1, 2, 3):
            await session.push(step(utterance, bytes(4800), final=True, transcribe=True))
        await session.cancel(Fence(SESSION, 0, 1), Fence(SESSION, 1, 1))
        await asyncio.sleep(5)
        failed = outlet.of(UserTranscriptFailed)
        assert [event.input for event in failed] == [2]
        told = outlet.of(UserTranscript)
        assert [(event.input, event.text) for event in told if event.final] == [
            (3, "three"),
            (1, "one and one"),
        ]
        assert "".join(e.text for e in told if e.input == 1 and not e.final) == "one and one"

    run(main())


def test_no_transcript_that_nobody_asked_for() -> None:
    async def main() -> None:
        session, outlet = await open_session({"input_transcript": "hello"})
        await session.push(step(1, bytes(4800), final=True))
        await asyncio.sleep(1)
        assert outlet.said == []

    run(main())


def test_open_takes_as_long_as_scripted_and_fails_as_scripted() -> None:
    """Nothing is kept of a failed open (case C-02)."""

    async def main() -> None:
        plugin = ScriptedPlugin({"open_delay_ms": 500})
        start = now()
        await open_session(plugin=plugin)
        assert now() - start == pytest.approx(0.5)
        with pytest.raises(ModelOpenFailed):
            await open_session({"fail_open": True, "open_delay_ms": 0}, plugin)
        assert plugin.load().sessions == 1

    run(main())


def test_an_open_that_is_given_up_on_leaves_nothing() -> None:
    """Invariant 139."""

    async def main() -> None:
        plugin = ScriptedPlugin({"open_delay_ms": 500})
        opening = asyncio.create_task(open_session(plugin=plugin))
        await asyncio.sleep(0.1)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        assert plugin.load().sessions == 0

    run(main())


def test_cleanup_takes_its_time_over_all_attempts() -> None:
    """A close that timed out is repeated, and the slot is held until it succeeds (case C-05)."""

    async def main() -> None:
        plugin = ScriptedPlugin({"cleanup_delay_ms": "2000"})
        session, _ = await open_session(plugin=plugin)
        start = now()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.close(), 1.5)
        assert plugin.load().sessions == 1
        await session.close()
        assert now() - start == pytest.approx(2.0)
        assert plugin.load().sessions == 0
        await session.close()

    run(main())


def test_a_close_that_hangs_can_be_given_up_on() -> None:
    """Case C-06."""

    async def main() -> None:
        plugin = ScriptedPlugin({})
        session, _ = await open_session({"hang_on_close": True}, plugin)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.close(), 60)
        assert plugin.load().sessions == 1

    run(main())


def test_close_ends_everything_under_way() -> None:
    """Invariant 145; a script that ignores cancels does not outlive its session."""

    async def main() -> None:
        script = {"ignore_cancel_ms": 60_000, "audio_ms": 60_000, "transcript_delay_ms": 1000}
        session, outlet = await open_session(script)
        await session.respond(asked(script))
        await session.push(step(1, final=True, transcribe=True))
        await asyncio.sleep(0.1)
        await session.close()
        said = len(outlet.said)
        await asyncio.sleep(120)
        assert len(outlet.said) == said
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_every_call_is_in_the_log_and_every_cancelled_generate_has_its_abort() -> None:
    """Invariant 93, case E-10."""

    async def main() -> None:
        plugin = ScriptedPlugin({})
        session, _ = await open_session({"audio_ms": 5000}, plugin)
        await session.push(step(1, bytes(4800), final=True))
        for turn in (1, 2):
            await session.respond(asked({"audio_ms": 5000}, turn))
        await session.cancel(Fence(SESSION, 0, 2), Fence(SESSION, 1, 2))
        await session.respond(asked({"audio_ms": 80}, 3, epoch=1))
        await asyncio.sleep(1)
        await session.close()
        calls = [entry["call"] for entry in plugin.call_log]
        assert calls == ["open", "append", *["generate"] * 2, *["abort"] * 2, "generate", "end", "close"]
        ids = {
            kind: [e["request_id"] for e in plugin.call_log if e["call"] == kind]
            for kind in ("generate", "abort", "end")
        }
        assert ids["abort"] == ids["generate"][:2]
        assert ids["end"] == ids["generate"][2:]
        assert all(entry["session_id"] == SESSION for entry in plugin.call_log)
        json.dumps(plugin.call_log)

    run(main())


def test_usage_in_the_log_is_what_the_turns_said() -> None:
    """What a client never saw is still counted (case C-18)."""

    async def main() -> None:
        plugin = ScriptedPlugin({})
        session, outlet = await open_session({"words": 7}, plugin)
        await session.respond(asked({"words": 7}))
        usage = (await outlet.ended(1)).usage
        await asyncio.sleep(0)
        assert usage is not None
        assert usage.output_tokens == 7
        assert plugin.call_log[-1]["output_tokens"] == 7

    run(main())
