"""The conversation as its client builds it: items, commits, speech, transcripts, playback.

Owns: the rules about ``conversation.item.*``, ``input_audio_buffer.*`` and playback positions.
Does not own: what a response writes into its items (``parts``).
Here because: the list that a client shows must be the list that the model is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .stream import Event, Rule, Scope, Stream

_ADDED, _DONE, _DELETED = "conversation.item.added", "conversation.item.done", "conversation.item.deleted"
_COMMITTED = "input_audio_buffer.committed"
_STARTED, _STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"
_TRANSCRIPTION = "conversation.item.input_audio_transcription."
_POSITIONS = ("generated_ms", "sent_ms", "played_ms", "committed_ms")


def _chain(stream: Stream) -> Iterator[str]:
    order: list[str] = []
    for event in stream.of(_ADDED, _DELETED):
        if event["type"] == _DELETED:
            if event["item_id"] in order:
                order.remove(event["item_id"])
            continue
        item_id, previous = event["item"]["id"], event.get("previous_item_id")
        if previous is None:
            order.insert(0, item_id)
        elif previous in order:
            order.insert(order.index(previous) + 1, item_id)
        else:
            yield f"{item_id} follows {previous}, which is not there"
            order.append(item_id)


def _once(stream: Stream) -> Iterator[str]:
    added: set[str] = set()
    done: set[str] = set()
    for event in stream.of(_ADDED, _DONE, _DELETED):
        if event["type"] == _DELETED:
            added.discard(event["item_id"])
            done.discard(event["item_id"])
            continue
        item_id = event["item"]["id"]
        seen = added if event["type"] == _ADDED else done
        if item_id in seen:
            yield f"{event['type']} of {item_id} comes twice"
        if event["type"] == _DONE and item_id not in added:
            yield f"{item_id} is done and was not added"
        seen.add(item_id)


def _commits(stream: Stream) -> Iterator[str]:
    """A commit announces its item, adds it, and it is done, in this order."""
    committed: dict[str, int] = {}
    steps = (_COMMITTED, _ADDED, _DONE)
    for event in stream.of(*steps):
        item_id = event["item_id"] if event["type"] == _COMMITTED else event["item"]["id"]
        step = steps.index(event["type"])
        if event["type"] == _COMMITTED:
            committed[item_id] = 0
        elif item_id in committed:
            if step != committed[item_id] + 1:
                yield f"{event['type']} of {item_id} comes after {steps[committed[item_id]]}"
            committed[item_id] = step
    yield from (f"{item_id} was committed and is not done" for item_id, step in committed.items() if step < 2)


def _speech(stream: Stream) -> Iterator[str]:
    started: dict[str, int] = {}
    newest = 0
    for event in stream.of(_STARTED, _STOPPED):
        at = event["audio_start_ms" if event["type"] == _STARTED else "audio_end_ms"]
        if event["type"] == _STARTED:
            if event["item_id"] in started:
                yield f"the speech of {event['item_id']} starts twice"
            if at < newest:
                yield f"speech starts at {at} ms, before the end of the speech before it, {newest} ms"
            started[event["item_id"]] = at
        else:
            begin = started.get(event["item_id"])
            if begin is None:
                yield f"the speech of {event['item_id']} stops and never started"
            elif at < begin:
                yield f"the speech of {event['item_id']} stops at {at} ms and starts at {begin} ms"
            newest = max(newest, at)


def _transcripts(stream: Stream) -> Iterator[str]:
    added: set[str] = set()
    pieces: dict[str, str] = {}
    over: set[str] = set()
    for event in stream.received:
        kind = event["type"]
        if kind == _ADDED:
            added.add(event["item"]["id"])
        if not kind.startswith(_TRANSCRIPTION):
            continue
        item_id = event["item_id"]
        if item_id not in added:
            yield f"{kind} is about {item_id}, which was not added"
        if item_id in over:
            yield f"{kind} comes after the end of the transcript of {item_id}"
        if kind.endswith(".delta"):
            pieces[item_id] = pieces.get(item_id, "") + (event.get("delta") or "")
        elif kind.endswith((".completed", ".failed")):
            over.add(item_id)
            if (
                kind.endswith(".completed")
                and pieces.get(item_id, event["transcript"]) != event["transcript"]
            ):
                yield f"the transcript of {item_id} is not what its deltas make"


def _playback_of(event: Event) -> Iterator[dict[str, Any]]:
    for holder in (event, event.get("session") or {}, event.get("duplex") or {}):
        if isinstance(playback := holder.get("playback"), dict):
            yield playback


def _positions_ordered(stream: Stream) -> Iterator[str]:
    for event in stream.received:
        for playback in _playback_of(event):
            values = [playback.get(key, 0) for key in _POSITIONS]
            if values != sorted(values, reverse=True) or values[-1] < 0:
                yield f"{event['type']} has the positions {values}"


def _positions_rise(stream: Stream) -> Iterator[str]:
    newest: dict[str, list[int]] = {}
    for event in stream.received:
        if event["type"] == "session.snapshot":
            newest.clear()  # a truncation may be among what was lost
        elif event["type"] == "conversation.item.truncated" and event["item_id"] in newest:
            # What was cut off is in the history no longer, whatever was acknowledged before (invariant 116).
            cut = newest[event["item_id"]]
            cut[2:] = [min(value, event["audio_end_ms"]) for value in cut[2:]]
        if event["type"] != "playback.acknowledged":
            continue
        values = [event["playback"][key] for key in _POSITIONS]
        before = newest.setdefault(event["item_id"], values)
        if any(now < then for now, then in zip(values, before, strict=True)):
            yield f"the positions of {event['item_id']} go from {before} to {values}"
        newest[event["item_id"]] = values


RULES = (
    Rule("items-in-one-chain", "5", "every item follows one that is there", _chain, about=(_ADDED,)),
    Rule("item-added-once", "5", "an item is added once, then done once", _once, about=(_ADDED,)),
    Rule("commit-makes-item", "4", "committed, added, done: in this order", _commits, about=(_COMMITTED,)),
    Rule("speech-in-pairs", "4", "speech starts, then stops, on one clock", _speech, about=(_STARTED,)),
    Rule(
        "transcript-of-item",
        "4",
        "a transcript belongs to an item, ends once, and is what its deltas make",
        _transcripts,
        about=tuple(f"{_TRANSCRIPTION}{end}" for end in ("delta", "completed", "failed")),
    ),
    Rule(
        "positions-ordered",
        "7",
        "generated, sent, played, committed: none is ahead of the one before",
        _positions_ordered,
        Scope.CONNECTION,
        ("playback.acknowledged", "session.created", "session.updated"),
    ),
    Rule(
        "positions-rise",
        "7",
        "playback goes back only to a truncation",
        _positions_rise,
        about=("playback.acknowledged",),
    ),
)
