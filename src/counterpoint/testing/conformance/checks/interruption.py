"""Section 6: speaking over an answer.

Owns: the checks of epochs, of interrupting speech, of the overlap policies, of clearing what is played.
Does not own: a cancel as an answer's end (``responses``), what was heard (``playback``).
Here because: nothing shows sooner whether a server is full-duplex.
"""

from __future__ import annotations

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.talk import (
    amp,
    answer,
    answered,
    ask,
    configure,
    heard,
    pcm,
    refusal,
    script,
    settle,
    speak,
    type_text,
)
from counterpoint.testing.conformance.target import Target

_LONG = script(audio_ms=8000, pace="realtime")


async def _long_answer(peer: Peer) -> str:
    """An answer that is being spoken."""
    await type_text(peer)
    response_id = await ask(peer)
    await peer.until("response.output_audio.delta")
    return response_id


@check("cancel-advances-epoch", "6", "a cancel advances the epoch by one", Needs.SCRIPT)
async def cancel_advances_epoch(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, _LONG)
        response_id = await _long_answer(peer)
        await peer.send({"type": "response.cancel"})
        await answer(peer, response_id)
        done = list(peer.stream.of("response.done"))[-1]
        require(done["duplex"]["epoch"] == 1, f"the epoch is {done['duplex']['epoch']}")
        shown = await configure(peer)
        require(shown["epoch"] == 1, f"the session shows epoch {shown['epoch']}")


@check(
    "speech-interrupts",
    "6",
    "speech ends the answer: announced first, then the ends, and no delta between",
    Needs.SCRIPT,
)
async def speech_interrupts(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(), _LONG)
        response_id = await _long_answer(peer)
        await speak(peer, pcm(500, 0.9))
        done = await answer(peer, response_id)
        reason = (done["status_details"] or {}).get("reason")
        require((done["status"], reason) == ("cancelled", "turn_detected"), f"{done['status']}, {reason}")
        kinds = [event["type"] for event in peer.since(0)]
        began, ended = kinds.index("input_audio_buffer.speech_started"), kinds.index("response.done")
        require(began < ended, "the end comes before the speech is announced")
        between = [kind for kind in kinds[began:ended] if kind.endswith(".delta")]
        require(not between, f"{between} of the answer follow the announcement")


@check(
    "interrupting-speech-kept",
    "6",
    "the speech that interrupts is the next turn, from its first sample",
    Needs.SCRIPT,
)
async def interrupting_speech_kept(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        scripts = [{"audio_ms": 8000}, {"echo_input": True, "pace": "burst"}]
        await configure(peer, amp(prefix_padding_ms=0), {"extra_body": {"script": scripts}})
        await _long_answer(peer)
        said = b"".join((20000 + i % 9000).to_bytes(2, "little") for i in range(24 * 640))
        await speak(peer, said, pcm(640))
        first, second = await answer(peer), await answer(peer)
        require((first["status"], second["status"]) == ("cancelled", "completed"), "other answers")
        require(said in heard(peer, second["id"]), "the next turn does not hold all that was said")


@check(
    "uninterruptible",
    "6",
    "with interrupt_response false the answer is finished, and cancel still works",
    Needs.SCRIPT,
)
async def uninterruptible(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(interrupt_response=False), script(audio_ms=1500, pace="realtime"))
        response_id = await _long_answer(peer)
        await speak(peer, pcm(500, 0.9), pcm(500))
        await peer.until("input_audio_buffer.speech_started")
        done = await answer(peer, response_id)
        require(done["status"] == "completed", f"the answer is {done['status']}")
        created = await peer.until("response.created")
        await peer.send({"type": "response.cancel"})
        done = await answer(peer, created["response"]["id"])
        require(done["status"] == "cancelled", f"the next answer is {done['status']}")


@check("barge-in-interrupts", "6", "barge_in cancels the answer as speech does", Needs.SCRIPT)
async def barge_in_interrupts(target: Target) -> None:
    for event in ({"type": "barge_in"}, {"type": "turn.signal", "event": "barge_in"}):
        async with target.session(extended=True) as (peer, _):
            await configure(peer, _LONG)
            response_id = await _long_answer(peer)
            await peer.send(event)
            done = await answer(peer, response_id)
            reason = (done["status_details"] or {}).get("reason")
            require(reason == "turn_detected", f"{event['type']}: the reason is {reason}")


@check("input-cancel-does-both", "6", "input.cancel clears the input and cancels the answer", Needs.SCRIPT)
async def input_cancel_does_both(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, _LONG)
        response_id = await _long_answer(peer)
        await peer.send({"type": "input.cancel"})
        done = await answer(peer, response_id)
        require(done["status"] == "cancelled", f"the answer is {done['status']}")
        await peer.until("input_audio_buffer.cleared")


@check(
    "clear-cuts-what-plays",
    "6",
    "a clear after the end cuts the item where playback is, and keeps the epoch",
    Needs.SCRIPT,
)
async def clear_cuts_what_plays(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=4000), {"playback_commit_policy": "ack_only"})
        done = await answered(peer)
        await peer.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 1000})
        await peer.send({"type": "output_audio_buffer.clear"})
        cleared = await peer.until("output_audio_buffer.cleared")
        require(cleared["response_id"] == done["id"], "another response was cleared")
        truncated = await peer.until("conversation.item.truncated")
        require(truncated["audio_end_ms"] == 1000, f"the item ends at {truncated['audio_end_ms']} ms")
        require((await configure(peer))["epoch"] == 0, "the epoch advanced")


@check(
    "listen-only-listens",
    "6",
    "under listen_only no speech interrupts, and each decision is told",
    Needs.SCRIPT,
)
async def listen_only_listens(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(
            peer, amp(), script(audio_ms=1500, pace="realtime"), {"overlap_policy": "listen_only"}
        )
        response_id = await _long_answer(peer)
        await speak(peer, pcm(500, 0.9), pcm(500))
        decision = await peer.until("overlap.decision")
        found = (decision["policy"], decision["action"])
        require(found == ("listen_only", "listen"), f"the decision is {found}")
        done = await answer(peer, response_id)
        require(done["status"] == "completed", f"the answer is {done['status']}")


@check("graded-ignores-short", "6", "under graded a short sound over an answer makes no turn", Needs.SCRIPT)
async def graded_ignores_short(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(), script(audio_ms=1500, pace="realtime"), {"overlap_policy": "graded"})
        response_id = await _long_answer(peer)
        await speak(peer, pcm(300, 0.9), pcm(500))
        done = await answer(peer, response_id)
        require(done["status"] == "completed", f"the answer is {done['status']}")
        await settle(peer)
        require(not list(peer.stream.of("input_audio_buffer.speech_started")), "the sound was announced")
        require(not list(peer.stream.of("input_audio_buffer.committed")), "the sound became a turn")


@check("graded-interrupts-long", "6", "under graded long speech is announced, then interrupts", Needs.SCRIPT)
async def graded_interrupts_long(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(), _LONG, {"overlap_policy": "graded"})
        response_id = await _long_answer(peer)
        await speak(peer, pcm(1600, 0.9))
        done = await answer(peer, response_id)
        require(done["status"] == "cancelled", f"the answer is {done['status']}")
        actions = [event["action"] for event in peer.stream.of("overlap.decision")]
        require(actions[-1] == "barge_in" and "listen" in actions, f"the decisions are {actions}")


@check(
    "false-interruption-continues",
    "6",
    "after noise a new response says what had not been heard",
    Needs.SCRIPT,
)
async def false_interruption_continues(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        detection = amp(false_interruption_ms=1000, silence_duration_ms=200, min_speech_ms=64)
        scripted = script(audio_ms=3000, pace="realtime", input_transcript="")
        await configure(peer, detection, scripted)
        response_id = await _long_answer(peer)
        await speak(peer, pcm(200, 0.9), pcm(500))
        done = await answer(peer, response_id)
        require(done["status"] == "cancelled", f"the answer is {done['status']}")
        created = await peer.until("response.created")
        require(created["duplex"].get("continues") == response_id, "it does not continue the answer")
        items = [
            event for event in peer.stream.of("conversation.item.added") if event["item"]["role"] == "user"
        ]
        require(len(items) == 1, "the noise made an item")


@check("unknown-policy-refused", "6", "an unknown overlap policy is refused", Needs.EXTENSIONS)
async def unknown_policy_refused(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        update = {"type": "session.update", "session": {"overlap_policy": "polite"}}
        await refusal(peer, update, param="session.overlap_policy")
