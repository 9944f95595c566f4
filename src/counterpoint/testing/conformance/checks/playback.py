"""Section 7: what was heard.

Owns: the checks of ``playback.ack`` and of truncation.
Does not own: interruption (``interruption``).
Here because: a history that holds more than was heard makes the model refer to words that nobody knows.
"""

from __future__ import annotations

import json

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.talk import (
    answer,
    answered,
    ask,
    configure,
    refusal,
    script,
    settle,
    type_text,
)
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.streams.stream import Event

_ACK_ONLY = {"playback_commit_policy": "ack_only"}


def _truncate(item_id: str, audio_end_ms: object, content_index: int = 0) -> Event:
    return {
        "type": "conversation.item.truncate",
        "item_id": item_id,
        "content_index": content_index,
        "audio_end_ms": audio_end_ms,
    }


async def _acknowledge(peer: Peer, played_ms: int, **of: str) -> Event:
    await peer.send({"type": "playback.ack", "played_ms": played_ms, **of})
    acknowledged = await peer.until("playback.acknowledged")
    playback: Event = acknowledged["playback"]
    return playback


@check(
    "playback-acknowledged", "7", "an acknowledgement is answered with the positions in force", Needs.SCRIPT
)
async def playback_acknowledged(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=2000), _ACK_ONLY)
        done = await answered(peer)
        playback = await _acknowledge(peer, 700, response_id=done["id"])
        expected = {"generated_ms": 2000, "sent_ms": 2000, "played_ms": 700, "committed_ms": 700}
        require(playback == expected, f"the positions are {playback}")


@check(
    "impossible-playback-clamped", "7", "a position that cannot be is clamped, never an error", Needs.SCRIPT
)
async def impossible_playback_clamped(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=1000), _ACK_ONLY)
        done = await answered(peer)
        item_id = done["output"][0]["id"]
        for said, played in ((600, 600), (300, 600), (-5, 600), (10**9, 1000)):
            playback = await _acknowledge(peer, said, item_id=item_id)
            require(playback["played_ms"] == played, f"{said} ms make {playback['played_ms']}, not {played}")
        require(not list(peer.stream.of("error")), "an error came")


@check(
    "late-playback-frozen", "7", "an interruption freezes playback: no late position raises it", Needs.SCRIPT
)
async def late_playback_frozen(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=5000, pace="realtime"), _ACK_ONLY)
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta", where=lambda event: _sent_ms(peer) >= 400)
        before = await _acknowledge(peer, 300, response_id=response_id)
        await peer.send({"type": "response.cancel"})
        await answer(peer, response_id)
        after = await _acknowledge(peer, 5000, response_id=response_id)
        require(after["committed_ms"] == before["committed_ms"], f"{before} became {after}")


@check("unknown-playback-ignored", "7", "a position of an unknown item is ignored", Needs.EXTENSIONS)
async def unknown_playback_ignored(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await peer.send({"type": "playback.ack", "item_id": "item_unknown", "played_ms": 10})
        require(not await settle(peer), "it is answered")


@check("truncate-cuts", "7", "a truncation cuts audio and words, and can be repeated", Needs.SCRIPT)
async def truncate_cuts(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=4000, words=20))
        item_id = (await answered(peer))["output"][0]["id"]
        for _ in range(2):
            await peer.send(_truncate(item_id, 1000))
            truncated = await peer.until("conversation.item.truncated")
            require(truncated["audio_end_ms"] == 1000, f"it ends at {truncated['audio_end_ms']} ms")
        await peer.send({"type": "conversation.item.retrieve", "item_id": item_id})
        item = (await peer.until("conversation.item.retrieved"))["item"]
        words = str(item["content"][0]["transcript"]).split()
        require(4 <= len(words) <= 6, f"1000 of 4000 ms keep {len(words)} of 20 words")
        await refusal(peer, _truncate(item_id, 2000), param="audio_end_ms")


@check(
    "impossible-truncation-refused",
    "7",
    "a truncation beyond the end is refused and changes nothing",
    Needs.SCRIPT,
)
async def impossible_truncation_refused(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=3700))
        item_id = (await answered(peer))["output"][0]["id"]
        for audio_end_ms in (3701, -1, "x"):
            await refusal(peer, _truncate(item_id, audio_end_ms), param="audio_end_ms")
        await refusal(peer, _truncate(item_id, 0, content_index=9), param="content_index")
        await peer.send(_truncate(item_id, 3700))
        await peer.until("conversation.item.truncated")


@check("truncate-ends-speech", "7", "truncating what is being spoken ends the answer first", Needs.SCRIPT)
async def truncate_ends_speech(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=5000, pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        added = await peer.until("response.content_part.added")
        await peer.send(_truncate(added["item_id"], 0))
        done = await answer(peer, response_id)
        reason = (done["status_details"] or {}).get("reason")
        require((done["status"], reason) == ("cancelled", "client_cancelled"), f"{done['status']}, {reason}")
        await peer.until("conversation.item.truncated")


@check("history-as-heard", "7", "the model is given what was heard, and no more", Needs.SCRIPT)
async def history_as_heard(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        scripts = [
            {"audio_ms": 4000, "words": 20, "pace": "realtime"},
            {"echo_history": True, "pace": "burst"},
        ]
        await configure(peer, {"extra_body": {"script": scripts}}, _ACK_ONLY)
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta", where=lambda event: _sent_ms(peer) >= 1000)
        await _acknowledge(peer, 600, response_id=response_id)
        await peer.send({"type": "response.cancel"})
        await answer(peer, response_id)
        done = await answered(peer, output_modalities=["text"])
        history = json.loads(done["output"][0]["content"][0]["text"])
        words = [str(entry["text"]).split() for entry in history if entry["role"] == "assistant"]
        require(len(words) == 1 and len(words[0]) <= 4, f"600 of 4000 ms are heard, the history has {words}")


def _sent_ms(peer: Peer) -> int:
    return sum(
        int(event["duplex"]["audio_duration_ms"]) for event in peer.stream.of("response.output_audio.delta")
    )
