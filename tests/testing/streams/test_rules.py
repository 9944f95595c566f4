"""Every rule finds its violation, seeded into a recording that keeps all rules, and finds no other.

Each seed is a small change of one recorded conversation (``recording``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pybase64
import pytest

from counterpoint.testing.streams.rules import RULES, check_session
from counterpoint.testing.streams.stream import Event, Stream, joined

from .recording import record

Seed = Callable[[Stream], None]


def the(stream: Stream, kind: str, number: int = 0) -> Event:
    return list(stream.of(kind))[number]


def renumber(stream: Stream) -> None:
    """Make the numbers dense again, so that only what was meant is broken."""
    number = 0
    for event in stream.received:
        if "server_event_seq" in event:
            number += 1
            event["server_event_seq"] = number


def without(kind: str, number: int = 0) -> Seed:
    def seed(stream: Stream) -> None:
        stream.received.remove(the(stream, kind, number))
        renumber(stream)

    return seed


def again(kind: str, number: int = 0, **changes: Any) -> Seed:
    """Say an event twice, the second time with ``changes``."""

    def seed(stream: Stream) -> None:
        event = the(stream, kind, number)
        copy = {**event, "event_id": f"{event['event_id']}-again", **changes}
        stream.received.insert(stream.received.index(event) + 1, copy)
        renumber(stream)

    return seed


def moved(kind: str, before: str, number: int = 0) -> Seed:
    """Move the first event of ``kind`` behind the next event of type ``before``."""

    def seed(stream: Stream) -> None:
        event = the(stream, kind, number)
        at = stream.received.index(event)
        behind = next(i for i, e in enumerate(stream.received) if i > at and e["type"] == before)
        stream.received.insert(behind, stream.received.pop(at))
        renumber(stream)

    return seed


def changed(kind: str, path: str, value: Any, number: int = 0) -> Seed:
    def seed(stream: Stream) -> None:
        *parents, last = path.split(".")
        place: Any = the(stream, kind, number)
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if value is GONE:
            del place[last]
        else:
            place[last] = value

    return seed


def both(*seeds: Seed) -> Seed:
    def seed(stream: Stream) -> None:
        for one in seeds:
            one(stream)

    return seed


def as_stock(stream: Stream) -> None:
    """A recording of a stock connection would hold none of this."""
    stream.extended = False


def oddity(stream: Stream) -> None:
    stream.oddities.append("'hello'")


def odd_samples(stream: Stream) -> None:
    delta = the(stream, "response.output_audio.delta")
    delta["delta"] = pybase64.b64encode(pybase64.b64decode(delta["delta"])[:-1]).decode()


def header(stream: Stream) -> None:
    delta = the(stream, "response.output_audio.delta")
    delta["delta"] = pybase64.b64encode(b"RIFF" + pybase64.b64decode(delta["delta"])).decode()


def after_the_end(stream: Stream) -> None:
    delta = dict(the(stream, "response.output_audio.delta"))
    delta["event_id"] += "-late"
    end = stream.received.index(the(stream, "response.done"))
    stream.received.insert(end + 1, delta)
    renumber(stream)


def second_active(stream: Stream) -> None:
    """The second response is created before the first is done."""
    created = the(stream, "response.created", 1)
    stream.received.remove(created)
    stream.received.insert(stream.received.index(the(stream, "response.done")), created)
    renumber(stream)


def swapped_numbers(stream: Stream) -> None:
    first, second = (the(stream, "playback.acknowledged", i) for i in (0, 1))
    key = "server_event_seq"
    first[key], second[key] = second[key], first[key]


def two_errors(stream: Stream) -> None:
    again("error")(stream)


def no_hint(stream: Stream) -> None:
    error = the(stream, "error")["error"]
    error["code"], error["type"] = "input_backpressure", "rate_limit_error"


def other_code(stream: Stream) -> None:
    assert stream.closed == 1000
    stream.closed = 1011


def epoch_back(stream: Stream) -> None:
    the(stream, "session.closed")["duplex"] = {"epoch": 0, "turn_id": 1}


GONE: Any = object()
DONE = "response.done"
ITEM_DONE = "response.output_item.done"
TRANSCRIPT = "response.output_audio_transcript"
COMPLETED = "conversation.item.input_audio_transcription.completed"

#: What breaks each rule, and which others are broken by it.
SEEDS: dict[str, tuple[Seed, set[str]]] = {
    "frames-are-events": (oddity, set()),
    "official-form": (changed("error", "error.message", 5), set()),
    "stock-sees-official-only": (as_stock, set()),
    "extension-form": (changed("session.closed", "reason", "bored"), set()),
    "created-first": (moved("session.created", "session.updated"), set()),
    "numbers-dense": (changed("session.closed", "server_event_seq", 9999), set()),
    "numbers-rise": (swapped_numbers, {"numbers-dense"}),
    "connection-events-unnumbered": (
        changed("session.created", "server_event_seq", 1),
        {"numbers-dense", "numbers-rise"},
    ),
    "session-events-numbered": (
        both(changed(COMPLETED, "server_event_seq", GONE), renumber),
        set(),
    ),
    "event-ids-unique": (changed("session.closed", "event_id", GONE), {"extension-form"}),
    "epochs-rise": (epoch_back, {"extension-form"}),
    "close-code": (other_code, set()),
    "terminal-last": (again("session.closed"), set()),
    "response-named": (
        changed("response.content_part.added", "response_id", GONE),
        {"official-form"},
    ),
    "response-created-once": (without("response.created"), set()),
    "response-done-once": (again(DONE), set()),
    "nothing-after-done": (after_the_end, {"content-in-part", "content-done-once"}),
    "one-active-response": (second_active, set()),
    "response-status": (changed("response.created", "response.status", "completed"), set()),
    "response-reason": (changed(DONE, "response.status_details.error", None, 3), set()),
    "response-usage": (changed(DONE, "response.usage", None), set()),
    "response-output": (changed(DONE, "response.output", []), set()),
    "item-steps": (
        moved("response.content_part.added", ITEM_DONE),
        {"content-in-part", "all-closed-at-done"},
    ),
    "all-closed-at-done": (without(ITEM_DONE), {"response-output"}),
    "content-in-part": (moved("response.content_part.added", f"{TRANSCRIPT}.done"), set()),
    "content-done-once": (again(f"{TRANSCRIPT}.done"), set()),
    "deltas-add-up": (without(f"{TRANSCRIPT}.delta"), set()),
    "done-as-said": (changed("response.content_part.done", "part.transcript", "one"), set()),
    "places-stable": (changed(ITEM_DONE, "output_index", 4), set()),
    "item-status": (changed(ITEM_DONE, "item.status", "in_progress"), {"response-output"}),
    "calls-are-named": (changed("response.function_call_arguments.done", "name", "other"), set()),
    "whole-samples": (odd_samples, set()),
    "no-container": (header, set()),
    "durations-add-up": (changed("response.output_audio.delta", "duplex.audio_duration_ms", 3), set()),
    "items-in-one-chain": (changed("conversation.item.added", "previous_item_id", "item_unknown", 1), set()),
    "item-added-once": (again("conversation.item.done"), set()),
    "commit-makes-item": (moved("input_audio_buffer.committed", "conversation.item.added"), set()),
    "speech-in-pairs": (changed("input_audio_buffer.speech_stopped", "audio_end_ms", 0, 1), set()),
    "transcript-of-item": (changed(COMPLETED, "transcript", "good evening", 1), set()),
    "positions-ordered": (changed("playback.acknowledged", "playback.sent_ms", 10**6), {"positions-rise"}),
    "positions-rise": (
        both(
            *(
                changed("playback.acknowledged", f"playback.{key}", 0, 1)
                for key in ("played_ms", "committed_ms")
            )
        ),
        set(),
    ),
    "error-form": (changed("error", "error.type", "warning"), {"error-class"}),
    "error-class": (changed("error", "error.type", "server_error"), set()),
    "retry-hint": (no_hint, set()),
    "error-names-event": (changed("error", "error.event_id", "event_unknown"), set()),
    "one-error-per-event": (two_errors, set()),
    "error-numbered-like-event": (
        both(changed("error", "server_event_seq", GONE, 1), renumber),
        set(),
    ),
    "error-reveals-nothing": (
        changed("error", "error.message", "KeyError in /home/me/server.py, line 3"),
        set(),
    ),
}


def broken(stream: Stream) -> set[str]:
    return {violation.rule.name for violation in check_session([stream])}


def test_the_recording_keeps_every_rule() -> None:
    stream = record()
    assert check_session([stream]) == []
    unseen = [rule.name for rule in RULES if not rule.seen(stream)]
    assert unseen == []


def test_a_truncation_takes_back_what_was_acknowledged_and_nothing_else_does() -> None:
    """Wire, section 7; invariant 116."""
    stream = record()
    SEEDS["positions-rise"][0](stream)
    second = the(stream, "playback.acknowledged", 1)
    truncated = {"type": "conversation.item.truncated", "item_id": second["item_id"], "audio_end_ms": 0}
    stream.received.insert(stream.received.index(second), truncated)
    rise = next(rule for rule in RULES if rule.name == "positions-rise")
    assert list(rise.check(stream)) == []
    truncated["audio_end_ms"] = 1
    assert len(list(rise.check(stream))) == 1


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_a_violation_is_caught_by_name(name: str) -> None:
    seed, also = SEEDS[name]
    stream = record()
    seed(stream)
    found = broken(stream)
    assert found == {name} | also


@pytest.mark.parametrize(
    ("encoding", "caught"), [("audio/pcm", True), ("audio/pcmu", False), ("audio/pcma", False)]
)
def test_an_odd_number_of_bytes_is_whole_samples_of_g711(encoding: str, caught: bool) -> None:
    stream = record()
    odd_samples(stream)
    the(stream, "response.created")["response"]["audio"]["output"]["format"] = {"type": encoding}
    assert ("whole-samples" in broken(stream)) == caught


def test_an_event_without_its_fields_is_a_violation_and_no_crash() -> None:
    stream = record()
    del the(stream, "conversation.item.added")["item"]
    assert {"official-form", "items-in-one-chain"} <= broken(stream)


def test_connections_of_a_session_are_one_stream() -> None:
    """What is sent again after a resume counts once."""
    whole = record()
    head = the(whole, DONE)["server_event_seq"]
    first = Stream([e for e in whole.received if e.get("server_event_seq", 0) <= head], whole.sent, True)
    rest = [e for e in whole.received if e.get("server_event_seq", 0) > head - 20]
    resumed = {**the(whole, "session.created"), "type": "session.resumed", "event_id": "event_resumed"}
    second = Stream([resumed, *rest], [], True, after=head - 20)
    resumed |= {
        "session_id": resumed["session"]["id"],
        "replay": {"from": head - 19, "to": head, "gap": False, "dropped_audio_events": 0},
        "last_client_event_seq": 0,
        "input_audio_ms": 0,
    }
    assert check_session([first, second]) == []
    numbers = [e["server_event_seq"] for e in joined([first, second]).received if "server_event_seq" in e]
    assert numbers == list(range(1, numbers[-1] + 1))
