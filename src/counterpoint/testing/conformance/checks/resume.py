"""Section 3: coming back to a session, replay, takeover.

Owns: the checks of ``session.resume`` on extended and of resuming in the query on stock connections.
Does not own: how connections end (``handshake``).
Here because: what a client may rely on after a loss is the heart of the extensions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

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


@dataclass
class Point:
    """From where a client resumes."""

    session_id: str
    token: str
    cursor: int = 0

    def request(self, **changes: Any) -> Event:
        return {
            "type": "session.resume",
            "session_id": self.session_id,
            "resume_token": self.token,
            "last_received_server_event_seq": self.cursor,
            **changes,
        }

    @asynccontextmanager
    async def resumed(self, target: Target, **changes: Any) -> AsyncIterator[tuple[Peer, Event]]:
        """Another connection that resumes; and what it was told."""
        request = self.request(**changes)
        async with target.connect(query={"autostart": "0"}) as peer:
            peer.stream.extended = True
            peer.stream.after = request["last_received_server_event_seq"]
            peer.stream.secrets.append(request["resume_token"])
            await peer.send(request)
            first = await peer.until("session.resumed", "error")
            require(first["type"] == "session.resumed", f"the resume was refused: {first.get('error')}")
            yield peer, first

    async def refused(self, target: Target, *codes: str, **changes: Any) -> Event:
        """A resume that must fail; returns the error."""
        async with target.connect(query={"autostart": "0"}) as peer:
            peer.stream.secrets.append(self.token)
            error = await refusal(peer, self.request(**changes), *codes)
            require(await peer.end() == 1008, f"the close code is {peer.code}")
            return error


@asynccontextmanager
async def resuming(target: Target, *, extended: bool = True) -> AsyncIterator[tuple[Peer, Point]]:
    """A session, and the point from which it can be resumed before anything happened in it."""
    target.requires("supports_session_resume")
    async with target.session(extended=extended) as (peer, session):
        created = next(peer.since(0))
        yield peer, Point(session["id"], created["resume_token"])


def newest(peer: Peer) -> int:
    """The newest number on a connection."""
    return max((event.get("server_event_seq", 0) for event in peer.since(0)), default=0)


@check("resume-nothing-missed", "3", "a resume after nothing was missed replays nothing", Needs.EXTENSIONS)
async def resume_nothing_missed(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        async with point.resumed(target) as (again, told):
            require(told["session_id"] == point.session_id, "another session")
            require(told["attachment_generation"] == 2, f"generation {told['attachment_generation']}")
            nothing = {"from": None, "to": None, "gap": False, "dropped_audio_events": 0}
            require(told["replay"] == nothing, f"the replay is {told['replay']}")
            await settle(again)


@check(
    "resume-replays", "3", "a resume sends what was missed, under its numbers, then goes on", Needs.EXTENSIONS
)
async def resume_replays(target: Target) -> None:
    async with resuming(target) as (peer, point):
        item = await type_text(peer)
        await configure(peer)
        head = newest(peer)
        await peer.drop()
        async with point.resumed(target) as (again, told):
            expected = {"from": 1, "to": head, "gap": False, "dropped_audio_events": 0}
            require(told["replay"] == expected, f"the replay is {told['replay']}, not {expected}")
            added = await again.until("conversation.item.added")
            require(added["item"]["id"] == item["id"], "another item")
            await again.until("session.updated")
            await settle(again)
            require(newest(again) == head + 1, f"the newest number is {newest(again)}, not {head + 1}")


@check(
    "token-kept-until-proven",
    "3",
    "a reply that was lost costs nothing: the token is still good",
    Needs.EXTENSIONS,
)
async def token_kept_until_proven(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        for _ in range(3):
            async with point.resumed(target) as (again, _):
                await again.drop()
        async with point.resumed(target) as (again, _):
            await settle(again)


@check("token-rotates", "3", "a token that was proven received replaces the one before", Needs.EXTENSIONS)
async def token_rotates(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        async with point.resumed(target) as (again, told):
            require(told["resume_token"] != point.token, "the token is the same")
            await again.send({"type": "session.heartbeat"})
            await again.until("session.heartbeat_ack")
            await point.refused(target, "invalid_resume_token")
            await again.drop()
        async with point.resumed(target, resume_token=told["resume_token"]) as (third, _):
            await settle(third)


@check("resume-refusals-alike", "3", "a wrong token and an unknown session look alike", Needs.EXTENSIONS)
async def resume_refusals_alike(target: Target) -> None:
    async with resuming(target) as (peer, point):
        wrong = await point.refused(target, "invalid_resume_token", resume_token="0" * 64)
        unknown = await point.refused(target, "invalid_resume_token", session_id="sess_" + "0" * 32)
        require(wrong["message"] == unknown["message"], "the messages differ")
        await settle(peer)


@check("resume-malformed", "3", "a malformed resume is invalid_session_resume", Needs.EXTENSIONS)
async def resume_malformed(target: Target) -> None:
    async with resuming(target) as (peer, point):
        for cursor in (-1, "7", None, 1.5, 2**63):
            async with target.connect(query={"autostart": "0"}) as other:
                request = point.request(last_received_server_event_seq=cursor)
                await refusal(other, request, "invalid_session_resume", "session_resume_conflict")
                require(await other.end() == 1008, f"the close code is {other.code}")
        await settle(peer)


@check(
    "resume-from-the-future",
    "3",
    "a cursor beyond the newest event is session_resume_conflict",
    Needs.EXTENSIONS,
)
async def resume_from_the_future(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await point.refused(target, "session_resume_conflict", last_received_server_event_seq=1000)
        await settle(peer)


@check(
    "ended-session-expired",
    "3",
    "an ended session is session_resume_expired to whoever has its token",
    Needs.EXTENSIONS,
)
async def ended_session_expired(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.send({"type": "session.close"})
        await peer.end()
        await point.refused(target, "session_resume_expired")
        await point.refused(target, "invalid_resume_token", resume_token="0" * 64)


@check("late-resume-refused", "1", "a resume is a first event, or invalid_session_resume", Needs.EXTENSIONS)
async def late_resume_refused(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await refusal(peer, point.request(), "invalid_session_resume")
        await settle(peer)


@check(
    "takeover-told", "3", "a resume replaces the connection before it, which is told: 4001", Needs.EXTENSIONS
)
async def takeover_told(target: Target) -> None:
    async with resuming(target) as (peer, point), point.resumed(target) as (again, _):
        replaced = await peer.until("session.replaced")
        require(replaced["session_id"] == point.session_id, "another session")
        require(replaced["attachment_generation"] == 1, "not its own generation")
        require(await peer.end() == 4001, f"the close code is {peer.code}")
        await settle(again)


@check("acknowledged-is-gone", "3", "after a gap a snapshot says what there is", Needs.EXTENSIONS)
async def acknowledged_is_gone(target: Target) -> None:
    async with resuming(target) as (peer, point):
        item = await type_text(peer)
        await configure(peer)
        head = newest(peer)
        await peer.send({"type": "session.event_ack", "server_event_seq": head})
        await settle(peer)
        head = newest(peer)
        await peer.drop()
        async with point.resumed(target) as (again, told):
            require(told["replay"]["gap"] is True, f"the replay is {told['replay']}")
            snapshot = await again.until("session.snapshot")
            require(snapshot["as_of_server_event_seq"] >= head, "the snapshot is old")
            listed = [entry["id"] for entry in snapshot["conversation"]["items"]]
            require(listed == [item["id"]], f"the snapshot lists {listed}")
            await settle(again)


@check("replay-without-audio", "3", "no_audio passes over audio, and says so", Needs.SCRIPT)
async def replay_without_audio(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await configure(peer, script(audio_ms=400))
        await answered(peer)
        await peer.drop()
        async with point.resumed(target, replay="no_audio") as (again, told):
            await again.until("response.done")
            require(told["replay"]["dropped_audio_events"] > 0, "no audio is counted")
            require(list(again.stream.of("session.skipped")), "nothing says what is skipped")
            require(not list(again.stream.of("response.output_audio.delta")), "audio was sent")
            require(list(again.stream.of("response.output_audio_transcript.done")), "text is missing")


@check("replay-from-playhead", "3", "from_playhead passes over what was played", Needs.SCRIPT)
async def replay_from_playhead(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await configure(peer, script(audio_ms=800, chunk_ms=80), {"playback_commit_policy": "ack_only"})
        done = await answered(peer)
        await peer.send({"type": "playback.ack", "response_id": done["id"], "played_ms": 400})
        await peer.until("playback.acknowledged")
        await peer.drop()
        async with point.resumed(target, replay="from_playhead") as (again, told):
            await again.until("response.done")
            audio = len(list(again.stream.of("response.output_audio.delta")))
            require(audio == 5, f"{audio} of 10 deltas of 80 ms were sent, 400 ms were played")
            require(told["replay"]["dropped_audio_events"] == 5, f"the replay is {told['replay']}")


@check("interrupted-not-replayed", "3", "audio of an interrupted response is never sent again", Needs.SCRIPT)
async def interrupted_not_replayed(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await configure(peer, script(audio_ms=4000, pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta")
        await peer.send({"type": "response.cancel"})
        await answer(peer, response_id)
        await peer.drop()
        async with point.resumed(target) as (again, _):
            await again.until("response.done")
            require(not list(again.stream.of("response.output_audio.delta")), "audio was sent again")
            reasons = {skipped["reason"] for skipped in again.stream.of("session.skipped")}
            require(reasons == {"interrupted"}, f"skipped because of {reasons}")


@check(
    "numbers-survive", "2", "a resume tells the newest number and how much audio was heard", Needs.EXTENSIONS
)
async def numbers_survive(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.send({"type": "session.update", "session": {"instructions": "one"}, "client_event_seq": 1})
        await peer.until("session.updated")
        await peer.drop()
        async with point.resumed(target) as (_, told):
            require(told["last_client_event_seq"] == 1, f"the number is {told['last_client_event_seq']}")
            require(told["input_audio_ms"] == 0, f"{told['input_audio_ms']} ms were heard")


@check("resume-announced", "1", "resume= without a token announces a session.resume", Needs.EXTENSIONS)
async def resume_announced(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.drop()
        async with target.connect(query={"resume": point.session_id}) as again:
            again.stream.extended, again.stream.after = True, 0
            await refusal(again, {"type": "response.create"}, "session_not_open")
            await again.send(point.request())
            await again.until("session.resumed")
            await settle(again)


@check(
    "stock-resume",
    "3",
    "a stock client resumes in its query: session.created again, and what it missed",
    Needs.EXTENSIONS,
)
async def stock_resume(target: Target) -> None:
    async with resuming(target, extended=False) as (peer, point):
        item = await type_text(peer)
        await peer.drop()
        query = {"resume": point.session_id, "resume_token": point.token}
        async with target.connect(query=query) as again:
            again.stream.after = 0
            created = await again.until("session.created")
            require(created["session"]["id"] == point.session_id, "another session")
            require(created["resume_token"] != point.token, "the token is the same")
            added = await again.until("conversation.item.added")
            require(added["item"]["id"] == item["id"], "another item")
            await settle(again)


@check("stock-resume-by-headers", "1", "token and cursor of a resume may be headers", Needs.EXTENSIONS)
async def stock_resume_by_headers(target: Target) -> None:
    async with resuming(target, extended=False) as (peer, point):
        await configure(peer)
        await peer.drop()
        headers = {"X-Resume-Token": point.token, "X-Last-Event-Seq": "1"}
        async with target.connect(query={"resume": point.session_id}, headers=headers) as again:
            again.stream.after = 1
            await again.until("session.created")
            require(await settle(again) == [], "what was received is sent again")


@check("stock-gap-lists-items", "3", "after a gap a stock client is told every item", Needs.EXTENSIONS)
async def stock_gap_lists_items(target: Target) -> None:
    async with resuming(target, extended=False) as (peer, point):
        items = [(await type_text(peer, text))["id"] for text in ("One.", "Two.")]
        await configure(peer)
        await peer.send({"type": "session.event_ack", "server_event_seq": newest(peer)})
        await settle(peer)
        await peer.drop()
        query = {"resume": point.session_id, "resume_token": point.token}
        async with target.connect(query=query) as again:
            again.stream.after = 0
            await settle(again)
            told = [event["item"]["id"] for event in again.stream.of("conversation.item.added")]
            require(told == items, f"the items told are {told}")
            require(len(list(again.stream.of("conversation.item.done"))) == 2, "they are not told to be done")
