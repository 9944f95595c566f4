"""Everything that is said arrives once, in order, however often the line is cut (cases A-13, N-03)."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.client.outbox import ROOM_BYTES, ROOM_FRAMES, Frame, Outbox

HEAD = b'{"type":"input_audio_buffer.append"'


def command(name: str) -> Frame:
    return Frame.of(name, {"type": "x"})


def audio(name: str, ms: int = 100, pcm: bytes = b"") -> Frame:
    return Frame(name, HEAD, pcm or b"\1\0" * ms, ms * 1000)


def outbox(*, numbered: bool = True, outage_audio_s: float = 2.0, kept_bytes: int = 1 << 20) -> Outbox:
    return Outbox(numbered=numbered, outage_audio_s=outage_audio_s, kept_bytes=kept_bytes)


def take_all(box: Outbox, now: float = 0.0) -> list[dict[str, Any]]:
    taken = []
    while (frame := box.take(now)) is not None:
        taken.append(json.loads(frame))
    return taken


def ids(taken: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(event["event_id"], event.get("client_event_seq")) for event in taken]


def test_a_frame_is_its_body_with_ids_and_audio() -> None:
    assert json.loads(Frame.of('odd "id"', {"type": "x", "a": {"b": [1, None]}}).encode()) == {
        "type": "x",
        "a": {"b": [1, None]},
        "event_id": 'odd "id"',
    }
    append = json.loads(audio("a", pcm=b"\1\2\3").encode())
    assert append == {
        "type": "input_audio_buffer.append",
        "event_id": "a",
        "audio": base64.b64encode(b"\1\2\3").decode(),
    }


def test_bytes_in_a_body_become_base64_and_what_is_no_json_is_refused_at_once() -> None:
    assert json.loads(Frame.of("a", {"type": "x", "audio": b"\1"}).encode())["audio"] == "AQ=="
    with pytest.raises(TypeError):
        Frame.of("a", {"type": "x", "loop": object()})


def test_numbers_are_dense_and_given_when_a_frame_is_first_sent() -> None:
    box = outbox()
    for name in "abc":
        box.put(command(name))
    assert ids(take_all(box)) == [("a", 1), ("b", 2), ("c", 3)]


def test_without_numbers_what_is_sent_is_forgotten() -> None:
    box = outbox(numbered=False)
    box.put(command("a"))
    assert ids(take_all(box)) == [("a", None)]
    assert not box.holds("a")


def test_after_a_resume_only_what_the_server_lacks_is_sent_again() -> None:
    """Case A-13."""
    box = outbox()
    for number in range(1, 6):
        box.put(command(str(number)))
    take_all(box)
    box.acknowledge(1)
    box.disconnect()
    box.put(command("6"))
    box.resume(3)
    assert ids(take_all(box)) == [("4", 4), ("5", 5), ("6", 6)]


def test_a_cut_while_sending_again_starts_over() -> None:
    box = outbox()
    for name in "abc":
        box.put(command(name))
    take_all(box)
    box.disconnect()
    box.resume(0)
    box.take(0.0)
    box.disconnect()
    box.resume(0)
    assert ids(take_all(box)) == [("a", 1), ("b", 2), ("c", 3)]


def test_numbers_follow_a_server_that_lost_some() -> None:
    box = outbox()
    for name in "abc":
        box.put(command(name))
    take_all(box)
    box.acknowledge(2)
    box.disconnect()
    box.resume(1)
    assert ids(take_all(box)) == [("c", 2)]


def test_numbers_go_on_where_another_client_stopped() -> None:
    box = outbox()
    box.resume(41)
    box.put(command("a"))
    assert ids(take_all(box)) == [("a", 42)]


def test_it_knows_what_the_server_may_not_have() -> None:
    box = outbox()
    box.put(command("sent"))
    take_all(box)
    box.put(command("unsent"))
    assert (box.holds("sent"), box.holds("unsent"), box.holds("other")) == (True, True, False)
    box.acknowledge(1)
    assert (box.holds("sent"), box.holds("unsent")) == (False, True)


# --- refused for now ----------------------------------------------------------------------------


def test_a_frame_without_room_is_sent_again_later_with_all_that_followed() -> None:
    box = outbox()
    for name in "abcd":
        box.put(command(name))
    take_all(box)
    box.refuse("b", until=5.0)
    box.expect(2)
    assert box.held_until == 5.0
    assert take_all(box, now=4.9) == []
    assert ids(take_all(box, now=5.0)) == [("b", 2), ("c", 3), ("d", 4)]
    assert box.held_until is None


def test_a_gap_is_filled_at_once() -> None:
    box = outbox()
    for name in "abc":
        box.put(command(name))
    take_all(box)
    box.expect(3)
    assert ids(take_all(box)) == [("c", 3)]


@pytest.mark.parametrize("number", [-1, 0, 1, 4, 99])
def test_a_server_that_waits_for_what_never_was_or_is_gone_changes_nothing(number: int) -> None:
    box = outbox()
    for name in "abc":
        box.put(command(name))
    take_all(box)
    box.acknowledge(1)
    box.expect(number)
    assert take_all(box) == []


def test_a_refusal_of_what_is_not_there_changes_nothing() -> None:
    box = outbox()
    box.put(command("a"))
    take_all(box)
    box.refuse("z", until=5.0)
    assert box.held_until is None


def test_a_clear_gets_past_audio_for_which_there_is_no_room() -> None:
    box = outbox()
    for name in "abc":
        box.put(audio(name))
    take_all(box)
    box.put(audio("d"))
    box.refuse("b", until=1.0)
    box.forget_audio()
    box.put(command("clear"))
    sent = take_all(box, now=1.0)
    assert ids(sent) == [("b", 2), ("c", 3), ("clear", 4)]
    assert [event.get("audio") for event in sent] == ["", "", None]
    assert box.take_dropped_ms() == 0
    assert not box.full


def test_a_clear_leaves_alone_what_the_server_may_have() -> None:
    box = outbox()
    box.put(audio("a"))
    take_all(box)
    box.disconnect()
    box.put(audio("b"))
    box.forget_audio()
    box.put(command("clear"))
    box.resume(0)
    sent = take_all(box)
    assert ids(sent) == [("a", 1), ("clear", 2)]
    assert sent[0]["audio"]


def test_patience_ends_with_the_connection_that_asked_for_it() -> None:
    box = outbox()
    box.put(command("a"))
    take_all(box)
    box.refuse("a", until=99.0)
    box.disconnect()
    box.resume(0)
    assert ids(take_all(box)) == [("a", 1)]


# --- outages ------------------------------------------------------------------------------------


def test_the_oldest_audio_of_a_long_outage_gives_way_and_leaves_no_hole() -> None:
    """Case N-03."""
    box = outbox(outage_audio_s=0.5)
    box.disconnect()
    box.put(command("before"))
    for number in range(8):
        box.put(audio(f"a{number}"))
    box.resume(0)
    assert ids(take_all(box)) == [("before", 1), *((f"a{number}", number - 1) for number in range(3, 8))]
    assert box.take_dropped_ms() == 300
    assert box.take_dropped_ms() == 0


def test_a_short_outage_loses_nothing() -> None:
    """Case N-03."""
    box = outbox(outage_audio_s=0.5)
    box.disconnect()
    for number in range(5):
        box.put(audio(f"a{number}"))
    box.resume(0)
    assert len(take_all(box)) == 5
    assert box.take_dropped_ms() == 0


def test_audio_that_waited_when_the_line_was_cut_counts() -> None:
    box = outbox(outage_audio_s=0.2)
    for number in range(4):
        box.put(audio(f"a{number}"))
    box.disconnect()
    box.resume(0)
    assert ids(take_all(box)) == [("a2", 1), ("a3", 2)]


def test_what_was_sent_once_is_never_dropped() -> None:
    box = outbox(outage_audio_s=0.0)
    for number in range(4):
        box.put(audio(f"a{number}"))
    take_all(box)
    box.disconnect()
    box.resume(0)
    assert len(take_all(box)) == 4


def test_a_source_that_must_not_lose_anything_does_not() -> None:
    box = outbox(outage_audio_s=math.inf)
    box.disconnect()
    for number in range(100):
        box.put(audio(f"a{number}"))
    box.resume(0)
    assert len(take_all(box)) == 100


# --- bounds -------------------------------------------------------------------------------------


def test_it_is_full_of_audio_only_while_there_is_a_connection() -> None:
    box = outbox(outage_audio_s=math.inf)
    box.put(audio("a", pcm=bytes(ROOM_BYTES + 1)))
    full = [box.full]
    box.disconnect()
    full.append(box.full)
    box.resume(0)
    full.append(box.full)
    take_all(box)
    assert [*full, box.full] == [True, False, True, False]


def test_it_is_full_of_commands_in_any_case() -> None:
    box = outbox()
    box.disconnect()
    for number in range(ROOM_FRAMES + 1):
        assert not box.full
        box.put(command(str(number)))
    assert box.full


def test_audio_that_nobody_acknowledges_is_forgotten_in_the_end_but_its_number_is_not() -> None:
    """Case C-15: what a client holds is bounded, whatever the server does."""
    box = outbox(kept_bytes=10_000)
    for number in range(1, 101):
        box.put(audio(f"a{number}", pcm=bytes(1000)))
        box.put(command(f"c{number}"))
    first = take_all(box)
    assert [len(event["audio"]) > 0 for event in first if "audio" in event] == [True] * 100
    box.disconnect()
    box.resume(0)
    again = take_all(box)
    assert ids(again) == ids(first)
    kept = [event["event_id"] for event in again if event.get("audio")]
    assert kept == [f"a{number}" for number in range(101 - len(kept), 101)]
    assert 0 < len(kept) < 10
    assert box.take_dropped_ms() == (100 - len(kept)) * 100


# --- all of it ----------------------------------------------------------------------------------


class Peer:
    """Takes frames by the rules of the wire contract: each number once, in order; refuses some for now."""

    def __init__(self) -> None:
        self.last = 0
        self.taken: list[str] = []
        self.told_of_gap = False

    def take(self, event: dict[str, Any], *, has_room: bool) -> str:
        number = event["client_event_seq"]
        if number <= self.last:
            return "seen"
        if number > self.last + 1:
            told, self.told_of_gap = self.told_of_gap, True
            return "silence" if told else "gap"
        if not has_room:
            return "no room"
        self.last = number
        self.told_of_gap = False
        self.taken.append(event["event_id"])
        return "taken"


STEPS = st.lists(
    st.one_of(
        st.just(("put",)),
        st.tuples(st.just("send"), st.integers(1, 4), st.booleans()),
        st.just(("acknowledge",)),
        st.just(("hear",)),
        st.tuples(st.just("cut"), st.integers(0, 3)),
    ),
    max_size=80,
)


@given(STEPS)
def test_a_peer_gets_everything_once_in_order_over_cuts_and_refusals(steps: list[Any]) -> None:
    box, peer, said = outbox(), Peer(), 0
    in_flight: list[tuple[dict[str, Any], bool]] = []
    for step in [*steps, *[("send", 9, True), ("hear",)] * 4, ("cut", 0), ("send", 999, True), ("hear",)]:
        match step:
            case ("put",):
                said += 1
                box.put(command(str(said)))
            case ("send", count, has_room):
                frames = [frame for _ in range(count) if (frame := box.take(math.inf)) is not None]
                in_flight += [(json.loads(frame), has_room) for frame in frames]
            case ("hear",):
                for event, has_room in in_flight:
                    verdict = peer.take(event, has_room=has_room)
                    if verdict == "gap":
                        box.expect(peer.last + 1)
                    elif verdict == "no room":
                        box.refuse(event["event_id"], 0.0)
                in_flight = []
            case ("acknowledge",):
                box.acknowledge(peer.last)
            case ("cut", arrive):
                for event, has_room in in_flight[:arrive]:
                    peer.take(event, has_room=has_room)
                in_flight = []
                peer.told_of_gap = False
                box.disconnect()
                box.resume(peer.last)
            case _:
                raise AssertionError(step)
    assert peer.taken == [str(number) for number in range(1, said + 1)]
