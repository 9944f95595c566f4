"""The items of a response and their parts: order, places, and that the pieces make the whole.

Owns: the rules about ``response.output_item.*``, ``response.content_part.*`` and the content between them.
Does not own: the response as a whole (``responses``), the conversation (``items``).
Here because: what a person reads and hears is put together from these events by every client on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pybase64

from .responses import response_id
from .stream import Event, Rule, Scope, Stream

#: What each kind of text is called in its ``done`` event, in the part and in the item.
_TEXTS = {
    "response.output_text": "text",
    "response.output_audio_transcript": "transcript",
    "response.function_call_arguments": "arguments",
}
_AUDIO = "response.output_audio"
_CONTENT = (*_TEXTS, _AUDIO)

#: The steps of an item. Content lies between the second pair, arguments between the outer ones.
_STEPS = (
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
)
_ADDED, _PART_ADDED, _PART_DONE, _ITEM_DONE = _STEPS[0], _STEPS[2], _STEPS[3], _STEPS[4]

_DELTAS = tuple(f"{kind}.delta" for kind in _CONTENT)
_DONES = tuple(f"{kind}.done" for kind in _CONTENT)

#: How files begin that hold audio; a delta holds samples and nothing else.
_HEADERS = (b"RIFF", b"OggS", b"ID3", b"fLaC", b"\x1aE\xdf\xa3")

#: Encodings in which every byte is a sample.
_ONE_BYTE = ("audio/pcmu", "audio/pcma")

_Part = tuple[str, int, str]


def _item_id(event: Event) -> str | None:
    found = event["item"].get("id") if "item" in event else event.get("item_id")
    return found if isinstance(found, str) else None


def _part(event: Event) -> _Part:
    """Item, content index and kind of content."""
    kind = event["type"].removesuffix(".delta").removesuffix(".done")
    return event["item_id"], event.get("content_index", 0), kind


def _item_steps(stream: Stream) -> Iterator[str]:
    reached: dict[str, int] = {}
    for event in stream.received:
        item_id, kind = _item_id(event), event["type"]
        if kind == _ADDED and item_id is not None:
            reached[item_id] = -1
        if item_id not in reached or kind not in _STEPS:
            continue
        step = _STEPS.index(kind)
        if kind == _PART_ADDED and reached[item_id] == _STEPS.index(_PART_DONE):
            pass  # the next part of the same item
        elif step <= reached[item_id]:
            yield f"{kind} of {item_id} comes after {_STEPS[reached[item_id]]}"
        reached[item_id] = step


def _all_closed(stream: Stream) -> Iterator[str]:
    """At its end nothing of a response is open."""
    open_: dict[tuple[str | None, str], str] = {}
    for event in stream.received:
        found, kind = response_id(event), event["type"]
        if kind == _ADDED:
            open_[found, f"item {event['item']['id']}"] = kind
        elif kind == _PART_ADDED:
            open_[found, f"part {event['content_index']} of {event['item_id']}"] = kind
        elif kind == _ITEM_DONE:
            open_.pop((found, f"item {event['item']['id']}"), None)
        elif kind == _PART_DONE:
            open_.pop((found, f"part {event['content_index']} of {event['item_id']}"), None)
        elif kind == "response.done":
            for owner, what in [key for key in open_ if key[0] == found]:
                yield f"{found} is done and its {what} is not"
                del open_[owner, what]


def _content_in_part(stream: Stream) -> Iterator[str]:
    open_: set[tuple[str, int]] = set()
    items: set[str] = set()
    for event in stream.received:
        kind = event["type"]
        if kind == _ADDED:
            items.add(event["item"]["id"])
        elif kind == _ITEM_DONE:
            items.discard(event["item"]["id"])
        elif kind == _PART_ADDED:
            open_.add((event["item_id"], event["content_index"]))
        elif kind == _PART_DONE:
            open_.discard((event["item_id"], event["content_index"]))
        elif kind in _DELTAS or kind in _DONES:
            item_id, index, content = _part(event)
            inside = item_id in items if "arguments" in content else (item_id, index) in open_
            if not inside:
                yield f"{kind} of {item_id} comes outside of its part"


def _done_once(stream: Stream) -> Iterator[str]:
    done: set[_Part] = set()
    for event in stream.of(*_DELTAS, *_DONES):
        part = _part(event)
        if part in done:
            yield f"{event['type']} of {part[0]} comes after the end of that"
        if event["type"] in _DONES:
            done.add(part)


def _deltas_add_up(stream: Stream) -> Iterator[str]:
    said: dict[_Part, str] = {}
    for event in stream.of(*_DELTAS, *_DONES):
        part = _part(event)
        key = _TEXTS.get(part[2])
        if key is None:
            continue
        if event["type"] in _DELTAS:
            said[part] = said.get(part, "") + event["delta"]
        elif event[key] != said.get(part, ""):
            yield f"{event['type']} of {part[0]} is {event[key]!r}, its deltas make {said.get(part, '')!r}"


def _done_as_said(stream: Stream) -> Iterator[str]:
    """The part and the item end with the text that their content ended with."""
    final: dict[tuple[str, int, str], str] = {}
    for event in stream.received:
        kind = event["type"]
        if kind in _DONES and (key := _TEXTS.get(_part(event)[2])) is not None:
            final[event["item_id"], event.get("content_index", 0), key] = event[key]
        elif kind == _PART_DONE:
            yield from _compare(event["item_id"], event["content_index"], event["part"], final)
        elif kind == _ITEM_DONE:
            item = event["item"]
            if item["type"] == "function_call":
                yield from _compare(item["id"], 0, item, final)
            for index, part in enumerate(item.get("content") or []):
                yield from _compare(item["id"], index, part, final)


def _compare(item_id: str, index: int, shown: Event, final: dict[tuple[str, int, str], str]) -> Iterator[str]:
    for key in _TEXTS.values():
        expected = final.get((item_id, index, key))
        if expected is not None and shown.get(key) != expected:
            yield f"{item_id} ends with the {key} {shown.get(key)!r}, which was {expected!r}"


def _places(stream: Stream) -> Iterator[str]:
    """An item keeps its index, counted from 0 in its response; so does a part in its item."""
    indexes: dict[str, int] = {}
    counts: dict[str | None, int] = {}
    parts: dict[str, int] = {}
    for event in stream.received:
        item_id, index = _item_id(event), event.get("output_index")
        if index is None or item_id is None:
            continue
        if event["type"] == _ADDED:
            expected = counts.get(response_id(event), 0)
            counts[response_id(event)] = expected + 1
            indexes[item_id] = expected
        if indexes.get(item_id, index) != index:
            yield f"{event['type']} of {item_id} has output_index {index}, not {indexes[item_id]}"
        if event["type"] == _PART_ADDED:
            if event["content_index"] != parts.get(item_id, 0):
                yield f"a part of {item_id} has content_index {event['content_index']}"
            parts[item_id] = parts.get(item_id, 0) + 1


def _statuses(stream: Stream) -> Iterator[str]:
    for event in stream.of(_ADDED, _ITEM_DONE):
        status = event["item"].get("status")
        if event["type"] == _ADDED and status != "in_progress":
            yield f"{_item_id(event)} was added {status}"
        if event["type"] == _ITEM_DONE and status not in ("completed", "incomplete"):
            yield f"{_item_id(event)} is done and {status}"


def _calls_are_named(stream: Stream) -> Iterator[str]:
    named: dict[str, Event] = {}
    for event in stream.of("response.function_call_arguments.done", _ITEM_DONE):
        if event["type"] != _ITEM_DONE:
            named[event["item_id"]] = event
            if not event.get("name") or not event.get("call_id"):
                yield f"the call {event['item_id']} has no name or no call_id"
        elif (call := named.get(event["item"]["id"])) is not None:
            for key in ("name", "call_id"):
                if call.get(key) != event["item"].get(key):
                    yield f"the call {call['item_id']} changed its {key}"


def _whole_samples(stream: Stream) -> Iterator[str]:
    """Of PCM two bytes; of G.711 every number of bytes is whole."""
    narrow = {
        response_id(event) for event in stream.of("response.created") if _output_type(event) in _ONE_BYTE
    }
    for event in stream.of(f"{_AUDIO}.delta"):
        audio = _decoded(event)
        if not audio:
            yield f"an audio delta of {event['item_id']} holds no audio"
        elif len(audio) % 2 and response_id(event) not in narrow:
            yield f"an audio delta of {event['item_id']} holds {len(audio)} bytes"


def _output_type(created: Event) -> str | None:
    """The encoding of a response's audio, where it is told."""
    output = (created["response"].get("audio") or {}).get("output") or {}
    found: str | None = (output.get("format") or {}).get("type")
    return found


def _no_header(stream: Stream) -> Iterator[str]:
    for event in stream.of(f"{_AUDIO}.delta"):
        if _decoded(event).startswith(_HEADERS):
            yield f"an audio delta of {event['item_id']} begins as a file does"


def _decoded(event: Event) -> bytes:
    try:
        return pybase64.b64decode(event["delta"], validate=True)
    except ValueError:
        return b""


def _durations(stream: Stream) -> Iterator[str]:
    if not stream.extended:
        return
    sums: dict[_Part, int] = {}
    for event in stream.of(f"{_AUDIO}.delta", f"{_AUDIO}.done"):
        stated = event.get("duplex", {}).get("audio_duration_ms")
        if stated is None:
            continue
        part = _part(event)
        if event["type"].endswith(".delta"):
            sums[part] = sums.get(part, 0) + stated
        elif stated != sums.get(part, 0):
            yield f"{part[0]} lasts {stated} ms, its deltas {sums.get(part, 0)} ms"


RULES = (
    Rule("item-steps", "5", "an item goes through its steps in order", _item_steps, about=_STEPS[:1]),
    Rule("all-closed-at-done", "5", "what a response began it ends", _all_closed, about=("response.done",)),
    Rule(
        "content-in-part",
        "5",
        "content comes between begin and end of its part",
        _content_in_part,
        about=_DELTAS,
    ),
    Rule("content-done-once", "5", "content ends once, and nothing of it follows", _done_once, about=_DONES),
    Rule("deltas-add-up", "5", "the deltas make the done value", _deltas_add_up, about=_DELTAS),
    Rule("done-as-said", "5", "part and item end with what was said", _done_as_said, about=(_ITEM_DONE,)),
    Rule("places-stable", "5", "indexes count from 0 and stay", _places, about=(_ADDED,)),
    Rule(
        "item-status", "5", "an item is in progress, then completed or incomplete", _statuses, about=(_ADDED,)
    ),
    Rule(
        "calls-are-named",
        "5",
        "a finished call has its name and its id",
        _calls_are_named,
        about=("response.function_call_arguments.done",),
    ),
    Rule(
        "whole-samples",
        "5",
        "audio comes in whole samples",
        _whole_samples,
        Scope.SESSION,
        (f"{_AUDIO}.delta",),
    ),
    Rule("no-container", "5", "audio has no container", _no_header, Scope.SESSION, (f"{_AUDIO}.delta",)),
    Rule("durations-add-up", "5", "the durations make the whole", _durations, about=(f"{_AUDIO}.done",)),
)
