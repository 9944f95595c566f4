"""Section 2: the life and the configuration of a session.

Owns: the checks of ``session.update``, numbers, acknowledgements, the end of a session.
Does not own: resuming (``resume``).
Here because: what a session says of itself is what its client believes.
"""

from __future__ import annotations

from typing import Any

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.talk import MANUAL, configure, refusal, script, settle, type_text
from counterpoint.testing.conformance.target import Target

_BAD_DETECTION: dict[str, Any] = {"audio": {"input": {"turn_detection": {"type": "no_such_detection"}}}}


@check("update-acknowledged", "2", "an update is answered with the whole configuration in force")
async def update_acknowledged(target: Target) -> None:
    async with target.session() as (peer, before):
        after = await configure(peer, {"instructions": "Be brief."})
        require(after["instructions"] == "Be brief.", f"the instructions are {after['instructions']!r}")
        require(before.keys() <= after.keys(), f"{sorted(before.keys() - after.keys())} are not shown")


@check("update-keeps-the-rest", "2", "what an update does not name stays")
async def update_keeps_the_rest(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, {"instructions": "Be brief."})
        after = await configure(peer, {"output_modalities": ["text"]})
        require(after["instructions"] == "Be brief.", "the instructions are gone")
        require(after["output_modalities"] == ["text"], f"the modalities are {after['output_modalities']}")


@check("null-detection-disables", "2", "turn_detection: null leaves turns to the client")
async def null_detection_disables(target: Target) -> None:
    async with target.session() as (peer, _):
        after = await configure(peer, MANUAL)
        require(after["audio"]["input"]["turn_detection"] is None, "turn detection is still there")
        after = await configure(peer, {"instructions": "Be brief."})
        require(after["audio"]["input"]["turn_detection"] is None, "turn detection came back")


@check("update-all-or-nothing", "2", "an update with one mistake changes nothing")
async def update_all_or_nothing(target: Target) -> None:
    async with target.session() as (peer, before):
        update = {"type": "realtime", "instructions": "Leaked.", **_BAD_DETECTION}
        await refusal(peer, {"type": "session.update", "session": update})
        after = await configure(peer)
        require(after["instructions"] == before["instructions"], "the good half of the update was applied")


@check(
    "update-mistake-named", "2", "a refused update names the field as the client spelled it", Needs.EXTENSIONS
)
async def update_mistake_named(target: Target) -> None:
    async with target.session() as (peer, _):
        update = {"type": "session.update", "session": _BAD_DETECTION}
        await refusal(peer, update, param="session.audio.input.turn_detection.type")
        beta = {"type": "session.update", "session": {"input_audio_format": "g711-ulaw"}}
        await refusal(peer, beta, param="session.input_audio_format")


@check("extra-body-by-key", "2", "extra_body is merged by its keys, each replaced whole", Needs.SCRIPT)
async def extra_body_by_key(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(words=3))
        kept = await configure(peer, {"extra_body": {}})
        require(kept["extra_body"]["script"]["words"] == 3, "an update without the key dropped it")
        after = await configure(peer, {"extra_body": {"script": {"audio_ms": 100}}})
        require(after["extra_body"]["script"] == {"audio_ms": 100}, "the value was not replaced whole")


@check(
    "extended-by-update", "0", "extensions: true on an update makes a connection extended", Needs.EXTENSIONS
)
async def extended_by_update(target: Target) -> None:
    async with target.session() as (peer, session):
        require("capabilities" not in session, "the connection is extended before it asked")
        await peer.send({"type": "session.update", "session": {}, "extensions": True})
        updated = await peer.until("session.updated")
        require("capabilities" in updated["session"], "the connection is not extended")
        await peer.send({"type": "session.heartbeat"})
        await peer.until("session.heartbeat_ack")


@check("session-shows-its-state", "2", "a session shows state, epoch, turn and playback", Needs.EXTENSIONS)
async def session_shows_its_state(target: Target) -> None:
    async with target.session(extended=True) as (_, session):
        require(session["state"] == "open", f"the state is {session['state']}")
        require((session["epoch"], session["active_response_id"]) == (0, None), "it does not begin at rest")
        require(not any(session["playback"].values()), f"playback begins at {session['playback']}")


@check("heartbeat-answered", "2", "a heartbeat is answered", Needs.EXTENSIONS)
async def heartbeat_answered(target: Target) -> None:
    async with target.session(extended=True) as (peer, session):
        await peer.send({"type": "session.heartbeat"})
        ack = await peer.until("session.heartbeat_ack")
        require(ack["session_id"] == session["id"], "another session")


@check(
    "impossible-ack-refused",
    "2",
    "an acknowledgement of what was not sent is invalid_event_ack",
    Needs.EXTENSIONS,
)
async def impossible_ack_refused(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        for number in (100_000, -1, "3", None, 2.5):
            ack = {"type": "session.event_ack", "server_event_seq": number}
            await refusal(peer, ack, "invalid_event_ack")
        await settle(peer)


@check("numbered-input-once", "2", "a numbered event that comes twice has its effect once", Needs.EXTENSIONS)
async def numbered_input_once(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        mark = peer.count
        await type_text(peer, client_event_seq=1)
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Again."}]}
        await peer.send({"type": "conversation.item.create", "item": item, "client_event_seq": 1})
        ack = await peer.until("session.input_ack")
        require(ack["client_event_seq"] == 1, f"number {ack['client_event_seq']} is acknowledged")
        await settle(peer)
        added = [event for event in peer.since(mark) if event["type"] == "conversation.item.added"]
        require(len(added) == 1, f"{len(added)} items were added")


@check("number-gap-told-once", "2", "a number that is missing is asked for once", Needs.EXTENSIONS)
async def number_gap_told_once(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        update = {"type": "session.update", "session": {}}
        error = await refusal(peer, {**update, "client_event_seq": 2}, "client_event_gap")
        require(error.get("expected") == 1, f"the number expected is {error.get('expected')}")
        mark = peer.count
        await peer.send({**update, "client_event_seq": 3})
        await settle(peer)
        errors = [event for event in peer.since(mark) if event["type"] == "error"]
        require(not errors, "the same gap is told twice")
        await peer.send({**update, "client_event_seq": 1})
        await peer.until("session.updated")


@check("close-answered", "2", "session.close is answered by session.closed, last, and 1000", Needs.EXTENSIONS)
async def close_answered(target: Target) -> None:
    async with target.session(extended=True) as (peer, session):
        await peer.send({"type": "session.close"})
        require(await peer.end() == 1000, f"the close code is {peer.code}")
        last = list(peer.since(0))[-1]
        expected = ("session.closed", session["id"], "client_closed")
        found = (last["type"], last.get("session_id"), last.get("reason"))
        require(found == expected, f"the last event is {found}")


@check("closing-refuses", "2", "commands of a closing session are session_closed", Needs.SCRIPT)
async def closing_refuses(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(cleanup_delay_ms=500))
        await peer.send({"type": "session.close"})
        await refusal(peer, {"type": "response.create"}, "session_closed")
        await peer.until("session.closed")


@check(
    "idle-session-expires",
    "2",
    "a session's own idle_timeout_s ends it: session.expired and 1000",
    Needs.EXTENSIONS,
)
async def idle_session_expires(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        shown = await configure(peer, {"idle_timeout_s": 1})
        require(shown["idle_timeout_s"] == 1, f"idle_timeout_s is {shown['idle_timeout_s']}")
        expired = await peer.until("session.expired")
        require(expired["reason"] == "idle_ttl_expired", f"the reason is {expired['reason']}")
        require(await peer.end() == 1000, f"the close code is {peer.code}")


@check("stock-expiry-told", "2", "a stock client learns of an expiry by an error, and 1000", Needs.EXTENSIONS)
async def stock_expiry_told(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, {"idle_timeout_s": 1})
        error = (await peer.until("error"))["error"]
        require(error["code"] == "session_expired", f"the code is {error['code']}")
        require(await peer.end() == 1000, f"the close code is {peer.code}")
