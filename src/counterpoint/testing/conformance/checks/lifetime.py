"""Sections 2 to 7, what takes time: leases, numbers, answers while nobody is there, credentials.

Owns: the checks of what keeps a session alive and what goes on in it meanwhile.
Does not own: configuration (``session``), the form of a resume (``resume``).
Here because: a client that is away, or silent for a while, trusts in what it cannot see.
"""

from __future__ import annotations

import asyncio

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.talk import (
    MANUAL,
    answer,
    answered,
    append,
    ask,
    configure,
    heard,
    pcm,
    ramp,
    refusal,
    script,
    settle,
    type_text,
)
from counterpoint.testing.conformance.target import Target

from .resume import resuming

_EMPTY = "input_audio_buffer_commit_empty"


@check("refused-number-used", "2", "a numbered event that is refused has used its number", Needs.EXTENSIONS)
async def refused_number_used(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        cancel = {"type": "response.cancel", "client_event_seq": 1}
        await refusal(peer, cancel, "response_cancel_not_active")
        await type_text(peer, client_event_seq=2)
        require(not [event for event in await settle(peer) if event["type"] == "error"], "another error came")


@check("activity-renews", "2", "whatever a client says keeps its session", Needs.EXTENSIONS)
async def activity_renews(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, {"idle_timeout_s": 1})
        for _ in range(5):
            await asyncio.sleep(0.4)
            await peer.send({"type": "session.heartbeat"})
        await settle(peer)


@check("answer-holds-off-expiry", "2", "a session does not expire while it answers", Needs.SCRIPT)
async def answer_holds_off_expiry(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, {"idle_timeout_s": 1}, script(stall_first_ms=2500, audio_ms=100))
        done = await answered(peer)
        require(done["status"] == "completed", f"the answer is {done['status']}")


@check(
    "other-events-prove-nothing", "3", "no event but an ack or a heartbeat proves a token", Needs.EXTENSIONS
)
async def other_events_prove_nothing(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        async with point.resumed(target) as (again, _):
            await settle(again)
            await again.drop()
        async with point.resumed(target) as (third, _):
            await settle(third)


@check(
    "later-resume-wins", "3", "of two resumes with one token the later replaces the earlier", Needs.EXTENSIONS
)
async def later_resume_wins(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        async with point.resumed(target) as (first, _), point.resumed(target) as (second, told):
            await first.until("session.replaced")
            require(await first.end() == 4001, f"the close code is {first.code}")
            require(told["attachment_generation"] == 3, f"generation {told['attachment_generation']}")
            await settle(second)


@check("answer-goes-on-detached", "3", "an answer goes on while its client is away", Needs.SCRIPT)
async def answer_goes_on_detached(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await configure(peer, script(audio_ms=800, pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta")
        await peer.drop()
        await asyncio.sleep(1.0)
        async with point.resumed(target) as (again, _):
            done = await answer(again, response_id)
            require(done["status"] == "completed", f"the answer is {done['status']}")
            require(
                heard(again, response_id) == ramp(1, 800 * 24), "not every sample came, once and in order"
            )


@check(
    "spoken-item-read",
    "3",
    "what was missed of an answer can be had by conversation.item.retrieve",
    Needs.SCRIPT,
)
async def spoken_item_read(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, script(audio_ms=200, text="good day"))
        done = await answered(peer)
        await peer.send({"type": "conversation.item.retrieve", "item_id": done["output"][0]["id"]})
        item = (await peer.until("conversation.item.retrieved"))["item"]
        part = item["content"][0]
        require(part.get("audio"), "its audio is not there")
        require(part["transcript"] == "good day", f"its transcript is {part['transcript']!r}")


@check("append-format-alone", "4", "the format of one append holds for it alone", Needs.EXTENSIONS)
async def append_format_alone(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(b"\xff" * 800, format={"type": "audio/pcmu"}))
        await peer.send({"type": "input_audio_buffer.commit"})
        await peer.until("input_audio_buffer.committed")
        await peer.send(append(b"\xff" * 800))
        await refusal(peer, {"type": "input_audio_buffer.commit"}, _EMPTY)


@check("odd-byte-dropped", "4", "a clear drops the half of a sample", Needs.SCRIPT)
async def odd_byte_dropped(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL, script(echo_input=True))
        said = ramp(3, 24 * 300)
        await peer.send(append(pcm(100) + b"\x01"))
        await peer.send({"type": "input_audio_buffer.clear"})
        await peer.send(append(said))
        await peer.send({"type": "input_audio_buffer.commit"})
        done = await answer(peer)
        require(heard(peer, done["id"]) == said, "the answer is not what was said")


@check(
    "detection-defaults",
    "4",
    "without a word of the client's, turns are found by server_vad",
    Needs.EXTENSIONS,
)
async def detection_defaults(target: Target) -> None:
    async with target.session() as (_, session):
        shown = session["audio"]["input"]["turn_detection"]
        expected = {
            "type": "server_vad",
            "threshold": 0.5,
            "prefix_padding_ms": 300,
            "silence_duration_ms": 500,
            "create_response": True,
            "interrupt_response": True,
            "idle_timeout_ms": None,
        }
        require(shown == expected, f"turn_detection is {shown}")


@check("tokens-limited", "5", "an answer of more than max_output_tokens is incomplete", Needs.SCRIPT)
async def tokens_limited(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, script(words=20))
        done = await answered(peer, max_output_tokens=5)
        reason = (done["status_details"] or {}).get("reason")
        require(
            (done["status"], reason) == ("incomplete", "max_output_tokens"), f"{done['status']}, {reason}"
        )


@check("clear-ends-what-is-spoken", "6", "a clear while an answer is spoken cancels it", Needs.SCRIPT)
async def clear_ends_what_is_spoken(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=8000, pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta")
        await peer.send({"type": "output_audio_buffer.clear"})
        done = await answer(peer, response_id)
        require(done["status"] == "cancelled", f"the answer is {done['status']}")
        require((await configure(peer))["epoch"] == 1, "the epoch did not advance")


@check("barge-in-cuts-playback", "6", "barge_in while only playback goes on cuts the item", Needs.SCRIPT)
async def barge_in_cuts_playback(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=4000), {"playback_commit_policy": "ack_only"})
        done = await answered(peer)
        await peer.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 1000})
        await peer.send({"type": "barge_in"})
        cleared = await peer.until("output_audio_buffer.cleared")
        require(cleared["response_id"] == done["id"], "another response is cleared")
        truncated = await peer.until("conversation.item.truncated")
        require(truncated["audio_end_ms"] == 1000, f"the item ends at {truncated['audio_end_ms']} ms")


@check("heard-whole-stays", "6", "what was heard whole is not cut", Needs.SCRIPT)
async def heard_whole_stays(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=1000), {"playback_commit_policy": "ack_only"})
        done = await answered(peer)
        await peer.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 1000})
        await peer.until("playback.acknowledged")
        await peer.send({"type": "barge_in"})
        came = [event["type"] for event in await settle(peer)]
        require(not came, f"barge_in is answered by {came}")


@check("commit-all-on-done", "7", "under commit_all_on_done all that was sent counts as heard", Needs.SCRIPT)
async def commit_all_on_done(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=1000), {"playback_commit_policy": "commit_all_on_done"})
        await answered(peer)
        playback = (await configure(peer))["playback"]
        require(playback["committed_ms"] == 1000, f"the positions are {playback}")
