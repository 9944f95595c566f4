"""Section 8: what is no event, what is none of ours, and that nothing else suffers from it.

Owns: the checks of malformed frames and unknown events, and that every event is answered.
Does not own: mistakes in known events (each where its rule is), the form of errors (``testing.streams``).
Here because: a client under development makes every mistake, and must be told instead of being cut off.
"""

from __future__ import annotations

from typing import Any

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.talk import refusal, settle, type_text
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.schema.events import official

_NO_EVENTS = (
    b"{",
    b"null",
    b"[]",
    b"5",
    b'"x"',
    b"{}",
    b'{"type": null}',
    b'{"type": {"toString": null}}',
    b'{"type": "response.cancel", "type": "response.cancel"}',
    b'{"type": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    b'{"type": "input_audio_buffer.append", "audio": NaN}',
    b'{"type": "input_audio_buffer.append", "audio": "\\ud800"}',
)

#: The least that each client event of the current API needs to be well-formed.
_LEAST: dict[str, dict[str, Any]] = {
    "conversation.item.create": {
        "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    },
    "conversation.item.delete": {"item_id": "item_unknown"},
    "conversation.item.retrieve": {"item_id": "item_unknown"},
    "conversation.item.truncate": {"item_id": "item_unknown", "content_index": 0, "audio_end_ms": 0},
    "input_audio_buffer.append": {"audio": ""},
    "session.update": {"session": {"type": "realtime"}},
}

#: Events that may have no effect that anybody is told of.
_QUIET = ("input_audio_buffer.append", "output_audio_buffer.clear")

#: What says that an event had its effect.
_EFFECTS = {
    "conversation.item.create": "conversation.item.added",
    "input_audio_buffer.clear": "input_audio_buffer.cleared",
    "response.create": "response.created",
    "session.update": "session.updated",
}


@check("malformed-frames-refused", "8", "what is no event is one error each, and the connection stays")
async def malformed_frames_refused(target: Target) -> None:
    async with target.session() as (peer, _):
        for frame in _NO_EVENTS:
            mark = peer.count
            await peer.send_frame(frame)
            await peer.until("error")
            await settle(peer)
            errors = [event for event in peer.since(mark) if event["type"] == "error"]
            require(len(errors) == 1, f"{frame[:40]!r} is answered by {len(errors)} errors")


@check("binary-frames-refused", "8", "a binary frame is an error, and the connection stays")
async def binary_frames_refused(target: Target) -> None:
    async with target.session() as (peer, _):
        await peer.send_frame(b'{"type": "response.create"}', binary=True)
        await peer.until("error")
        await settle(peer)
        require(not list(peer.stream.of("response.created")), "it was taken for an event")


@check("unknown-event-named", "8", "an event that does not exist is unknown_event")
async def unknown_event_named(target: Target) -> None:
    codes = ("unknown_event",) if target.offer.capabilities is not None else ()
    async with target.session() as (peer, _):
        await refusal(peer, {"type": "foo.bar"}, *codes)
        await settle(peer)


@check(
    "other-dialects-unsupported", "8", "events of other dialects of the API are unsupported", Needs.EXTENSIONS
)
async def other_dialects_unsupported(target: Target) -> None:
    async with target.session() as (peer, _):
        for kind in (
            "session.start",
            "session.input_audio.append",
            "decision.create",
            "response.item.create",
        ):
            await refusal(peer, {"type": kind}, "unsupported")
        await settle(peer)


@check("every-event-answered", "8", "every client event has its effect or exactly one error")
async def every_event_answered(target: Target) -> None:
    for kind in official()["client"]:
        async with target.session() as (peer, _):
            mark = peer.count
            event_id = await peer.send({"type": kind, **_LEAST.get(kind, {})})
            came = await settle(peer)
            errors = [
                event
                for event in came
                if event["type"] == "error" and event["error"].get("event_id") == event_id
            ]
            effect = _EFFECTS.get(kind)
            effects = sum(event["type"] == effect for event in peer.since(mark)) if effect else 0
            wanted = len(errors) if kind in _QUIET else 1
            # The update that ends the wait is an effect of its own.
            found = len(errors) + effects - (kind == "session.update")
            require(found == wanted <= 1, f"{kind}: {len(errors)} errors, {effects} effects")


@check("mistakes-hurt-nobody-else", "8", "one client's mistakes do not reach another's session")
async def mistakes_hurt_nobody_else(target: Target) -> None:
    async with target.session() as (good, _), target.session() as (bad, _):
        for frame in _NO_EVENTS:
            await bad.send_frame(frame)
        await type_text(good)
        await settle(bad)
        await settle(good)
        require(not list(good.stream.of("error")), "the other client was told of them")
