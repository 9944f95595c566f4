"""Group A of the known cases: resume, replay, rotation of tokens, the event log."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest

from counterpoint.testing.proxy import Faults

from .client import MANUAL, PATIENCE_S, append, fresh_id, user_says
from .wire import Refused
from .world import GRACE_S, World, until

BURST = {"audio_ms": 400, "pace": "burst"}


@pytest.mark.parametrize("acknowledged", [False, True])
async def test_a02_resume_before_any_output_and_after_a_long_silence(
    world: World, acknowledged: bool
) -> None:
    """Case A-02. Nothing was missed, so nothing is refused: with no event yet, and with none kept."""
    await world.serve({"journal.ttl_s": GRACE_S})
    caller = await world.call()
    caller.reset()
    resumed = await caller.resume(cursor=0)
    assert resumed["replay"] == {"from": None, "to": None, "gap": False, "dropped_audio_events": 0}

    await caller.script(BURST)
    await caller.answer()
    if acknowledged:
        await caller.send({"type": "session.event_ack", "server_event_seq": caller.cursor})
        await until(lambda: _journal_is_empty(world, caller.id))
    else:
        await asyncio.sleep(GRACE_S + 0.1)  # kept no longer than this, and the silence is the test
    last = caller.cursor
    caller.reset()
    resumed = await caller.resume(cursor=last)
    assert resumed["session_id"] == caller.id
    assert resumed["replay"] == {"from": None, "to": None, "gap": False, "dropped_audio_events": 0}
    await caller.answer()
    assert caller.events("response.created")[-1]["server_event_seq"] > last


async def _journal_is_empty(world: World, session_id: str) -> bool:
    state = await world.session_state(session_id)
    return state is not None and state["journal_bytes"] == 0


async def test_a02_a_resume_in_the_query_needs_no_cursor(world: World) -> None:
    """Case A-02, for clients that can only change their query: no cursor is a cursor of 0."""
    await world.serve()
    caller = await world.call(BURST, stock=True)
    await caller.answer()
    caller.reset()
    query = {"resume": caller.id, "resume_token": caller.token}
    connection = await world.connect(query=query)
    created = await connection.expect("session.created")
    assert created["session"]["id"] == caller.id
    assert created["attachment_generation"] == 2
    done = await connection.expect("response.done")
    assert done == caller.events("response.done")[0]


async def test_a05_a_restarted_server_knows_nothing_of_its_former_sessions(world: World) -> None:
    """Case A-05. Without a store a resume is refused, never answered at the live edge."""
    server = await world.spawn()
    port = int(server.url.rsplit(":", 1)[1].split("/")[0])
    caller = await world.call({"audio_ms": 1000, "chunk_ms": 4, "words": 250, "pace": "burst"})
    await caller.answer()
    assert caller.cursor > 480
    server.signal(signal.SIGKILL)
    await server.exited()
    await caller.connection.ended()

    await world.spawn(port=port)
    refused = await caller.try_resume()
    await refused.error("invalid_resume_token")
    assert (await refused.ended()).code == 1008
    fresh = await world.call(BURST)
    await fresh.answer()
    assert fresh.id != caller.id
    assert sorted(fresh.record.events) == list(range(1, fresh.cursor + 1))


#: Cursors that name nothing, and the codes that refuse them.
IMPOSSIBLE_CURSORS: list[tuple[Any, str]] = [
    ("ahead", "session_resume_conflict"),
    (-1, "invalid_session_resume"),
    ("7", "invalid_session_resume"),
    (None, "invalid_session_resume"),
    (2**63, "invalid_session_resume"),
]


async def test_a06_a_cursor_from_the_future_changes_nothing(world: World) -> None:
    """Case A-06. Each is refused by name; the owner stays, keeps receiving, and no token is used up."""
    await world.serve()
    caller = await world.call({"audio_ms": 1000, "pace": "burst"})
    await caller.answer()
    response_id = await caller.ask()
    for cursor, code in IMPOSSIBLE_CURSORS:
        event = caller.resumption() | {
            "last_received_server_event_seq": caller.cursor + 1000 if cursor == "ahead" else cursor
        }
        stray = await world.connect(query={"autostart": "0"})
        await stray.send(event | {"event_id": "the-resume"})
        await stray.error(code, event_id="the-resume")
        assert (await stray.ended()).code == 1008
    assert (await caller.done(response_id))["status"] == "completed"
    assert caller.connection.alive
    await caller.answer()
    state = await world.session_state(caller.id)
    assert state is not None
    assert (state["generation"], state["lease_generation"]) == (1, 1)
    await caller.resume()


async def test_a06_a_cursor_in_the_query_from_the_future_changes_nothing(world: World) -> None:
    """Case A-06, in the query."""
    await world.serve()
    caller = await world.call()
    for cursor in ("1000", "-1", "x", str(2**63)):
        query = {"resume": caller.id, "resume_token": caller.token, "last_received_server_event_seq": cursor}
        stray = await world.connect(query=query)
        await stray.error("session_resume_conflict" if cursor == "1000" else "invalid_session_resume")
        assert (await stray.ended()).code == 1008
    await caller.send({"type": "session.heartbeat"})
    await caller.expect("session.heartbeat_ack")


@pytest.mark.parametrize(("runs", "chunks"), [(5, 500), pytest.param(20, 1000, marks=pytest.mark.slow)])
async def test_a07_live_events_never_overtake_a_replay(world: World, runs: int, chunks: int) -> None:
    """Case A-07. Resumes in the middle of a burst, each through a slow link: one dense series each."""
    await world.serve({"limits.max_sessions": runs})
    proxy = await world.proxy()
    proxy.to_client = Faults(bytes_per_s=200_000)

    async def run() -> None:
        caller = await world.call({"audio_ms": chunks, "chunk_ms": 1, "pace": "burst", "words": chunks})
        response_id = await caller.ask()
        await caller.connection.until(lambda event: event.get("server_event_seq", 0) >= 50)
        caller.reset()
        resumed = await caller.resume(via=proxy.through(world.url))
        assert not resumed["replay"]["gap"]
        assert (await caller.done(response_id))["status"] == "completed"
        assert caller.cursor > 2 * chunks
        assert sorted(caller.record.events) == list(range(1, caller.cursor + 1))
        await caller.hang_up()

    await asyncio.gather(*(run() for _ in range(runs)))


async def test_a12_a_resumed_conversation_holds_every_item_once(world: World) -> None:
    """Case A-12. The model is given each item once, in order; an id that exists is refused."""
    await world.serve()
    caller = await world.call(
        {"audio_ms": 100, "pace": "burst"}, session={"playback_commit_policy": "commit_all_on_done"}
    )
    for turn in range(3):
        await caller.send(user_says(f"turn {turn}", f"item_{turn}"))
        await caller.send({"type": "response.create"})
        await caller.done()
    caller.reset()
    await caller.resume()
    await caller.script({"echo_history": True, "pace": "burst"})
    await caller.send(user_says("turn 1 again", "item_1") | {"event_id": "again"})
    await caller.error("item_create_duplicate_item_id", event_id="again")
    before = [event["item"]["id"] for event in caller.events("conversation.item.added")]
    answer = await caller.answer("what was said?")
    history = _history(answer)
    assert [item["id"] for item in history][:-1] == before
    assert [item["text"] for item in history if item["role"] == "user"] == [
        "turn 0",
        "turn 1",
        "turn 2",
        "what was said?",
    ]


def _history(answer: dict[str, Any]) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = json.loads(answer["output"][0]["content"][0]["transcript"])
    return history


@pytest.mark.parametrize("cut_at", [900, 30_000, 61_234])
async def test_a13_numbered_input_is_heard_exactly_once_over_a_reconnect(world: World, cut_at: int) -> None:
    """Case A-13. The connection breaks at some byte; what the server lacks is sent again, once."""
    await world.serve()
    proxy = await world.proxy()
    caller = await world.call({"echo_input": True, "pace": "burst"}, session=MANUAL)
    caller.reset()
    proxy.to_server = Faults(reset_at=cut_at)
    await caller.resume(via=proxy.through(world.url))

    spoken = b"".join(sample.to_bytes(2, "little") for sample in range(50 * 480))
    chunks = [
        append(spoken[at : at + 960], client_event_seq=at // 960 + 1) for at in range(0, len(spoken), 960)
    ]
    try:
        for chunk in chunks:
            await caller.send(chunk)
    except ConnectionError:
        pass
    await caller.connection.ended()
    resumed = await caller.resume()
    heard = resumed["last_client_event_seq"]
    assert heard < 50
    assert resumed["input_audio_ms"] == heard * 20
    # A client that is unsure may send more than what is missing: numbers that were used are ignored.
    await caller.send(
        *chunks[max(0, heard - 3) :], {"type": "input_audio_buffer.commit", "client_event_seq": 51}
    )
    await caller.expect("input_audio_buffer.committed")
    await caller.send({"type": "response.create", "client_event_seq": 52})
    await caller.done()
    assert caller.audio() == spoken


async def test_a13_a_gap_is_told_once_and_filled(world: World) -> None:
    """Case A-13. A number that was left out gets one error, which names what is expected."""
    await world.serve()
    caller = await world.call(session=MANUAL)
    late = [append(bytes(960), client_event_seq=number, event_id=fresh_id()) for number in (2, 3, 4)]
    await caller.send(*late)
    await caller.error("client_event_gap", event_id=late[0]["event_id"], expected=1)
    await caller.send(append(bytes(960), client_event_seq=1), *late)
    acknowledged = await caller.expect("session.input_ack", client_event_seq=4)
    assert acknowledged["input_audio_ms"] == 80
    assert len(caller.connection.named("error")) == 1


@pytest.mark.parametrize("cap_s", [4, pytest.param(15, marks=pytest.mark.slow)])
async def test_a15_the_cap_of_a_session_is_announced_and_a_resume_before_it_loses_nothing(
    world: World, cap_s: int
) -> None:
    """Case A-15. Notice a tenth of the cap ahead; a resume then loses no audio; the end has its event."""
    await world.serve({"limits.max_session_s": cap_s})
    caller = await world.call({"audio_ms": 60_000, "chunk_ms": 40})
    response_id = await caller.ask()
    notice = await caller.expect("session.expiring", reason="max_duration", within=cap_s + PATIENCE_S)
    assert notice["in_ms"] == pytest.approx(cap_s * 100, abs=50)
    old = caller.connection
    resumed = await caller.resume()
    assert not resumed["replay"]["gap"]
    assert (await old.ended()).code == 4001
    expired = await caller.expect("session.expired", reason="max_duration")
    assert expired["session_id"] == caller.id
    assert (await caller.connection.ended()).code == 1000
    ended = caller.events("response.done")[-1]["response"]
    assert (ended["id"], ended["status"]) == (response_id, "cancelled")
    assert len(caller.audio(response_id)) > (cap_s - 1) * 48_000
    refused = await caller.try_resume()
    await refused.error("session_resume_expired")


async def test_a_stock_client_is_told_of_the_end_in_its_own_words(world: World) -> None:
    """Case A-15: on a stock connection the cap is an error that it knows to be fatal, and 1000."""
    await world.serve({"limits.max_session_s": 0.3})
    caller = await world.call(stock=True)
    await caller.error("session_expired")
    assert (await caller.connection.ended()).code == 1000


async def test_an_upgrade_is_needed(world: World) -> None:
    """Section 1 of the wire contract: what is no upgrade is answered in HTTP."""
    await world.serve()
    with pytest.raises(Refused) as refused:
        await world.connect(headers={"Upgrade": "none"})
    assert refused.value.status == 426
