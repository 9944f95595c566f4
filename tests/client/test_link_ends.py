"""Refused, replaced, drained, left, never begun: the session goes on, or ends with one clear reason."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from tests.client.memory import Server, now, read_all, settle

from counterpoint.client import (
    Backoff,
    ClientError,
    ConnectionLost,
    Event,
    Options,
    ServerRefused,
    SessionEnded,
)
from counterpoint.client.transport import BROKEN, Closed, UpgradeRefused

# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1001, 1005, BROKEN, 1009, 1011, 1012, 1013])
async def test_after_these_ends_the_session_goes_on(code: int) -> None:
    """Case I-14: how the connection ended is told, and that a resume is possible."""
    server = Server()
    session = await server.connect()
    server.obstacles = [Closed(BROKEN)]
    server.here.end(code, "why")
    await asyncio.sleep(0.001)
    reason = session.close_reason
    assert reason is not None
    assert (reason.code, reason.reason, reason.resumable) == (code, "why", True)
    await settle(5)
    assert session.close_reason is None
    await session.close()
    notices = [event for event in await read_all(session) if event.local]
    assert [(event["code"], event["reason"]) for event in notices] == [(code, "why")]


@pytest.mark.parametrize(("code", "resumable"), [(1008, False), (4001, True), (4408, True)])
async def test_after_these_it_does_not(code: int, resumable: bool) -> None:
    """Cases B-05, I-14: one who was replaced does not come back by himself."""
    server = Server()
    session = await server.connect()
    server.here.end(code, "why")
    with pytest.raises(ConnectionLost, match="why") as lost:
        await read_all(session)
    assert lost.value.code == code
    reason = session.close_reason
    assert reason is not None
    assert (reason.code, reason.reason, reason.resumable) == (code, "why", resumable)
    await settle(60)
    assert len(server.dialled) == 1
    await session.close()


async def test_a_clean_close_is_no_error() -> None:
    """Case I-14."""
    server = Server()
    session = await server.connect()
    server.here.end(1000)
    await read_all(session)
    reason = session.close_reason
    assert reason is not None
    assert (reason.code, reason.resumable) == (1000, False)
    with pytest.raises(SessionEnded):
        await session.append_audio(b"\0\0")


@pytest.mark.parametrize(
    ("type", "reason", "code", "clean"),
    [
        ("session.closed", "client_closed", 1000, True),
        ("session.closed", "model_closed", 1000, True),
        ("session.closed", "failed", 1011, False),
        ("session.closed", "drained", 1012, False),
        ("session.closed", "admin", 1008, False),
        ("session.expired", "max_duration", 1000, False),
        ("session.expired", "idle_ttl_expired", 1000, False),
    ],
)
async def test_the_last_event_says_why_a_session_ended(
    type: str, reason: str, code: int, clean: bool
) -> None:
    server = Server()
    session = await server.connect()
    waiting = asyncio.create_task(session.update({}))
    await settle()
    server.emit(type, session_id="sess_1", reason=reason)
    server.here.end(code)
    ended: list[Event] = []
    if clean:
        ended = await read_all(session)
        assert ended[-1].type == type
    else:
        with pytest.raises(SessionEnded, match=reason):
            await read_all(session)
    with pytest.raises(SessionEnded, match=reason):
        await waiting
    assert session.close_reason is not None
    assert (session.close_reason.code, session.close_reason.resumable) == (code, False)
    assert len(server.dialled) == 1


async def test_a_server_that_leaves_the_connection_open_after_the_end_is_left() -> None:
    server = Server()
    session = await server.connect()
    connection = server.here
    server.emit("session.closed", reason="model_closed")
    began = now()
    await read_all(session)
    assert now() - began < 3
    assert not connection.open


@pytest.mark.parametrize(
    "refusal", ["invalid_resume_token", "session_resume_expired", "session_resume_conflict"]
)
async def test_waits_end_when_the_session_cannot_be_resumed(refusal: str) -> None:
    """Case A-14: typed, within a second; A-05: never a success at the live edge."""
    server = Server()
    session = await server.connect()
    server.begin_response("r1")
    response = await anext(aiter(session.responses()))
    waiting = [
        asyncio.create_task(coroutine)
        for coroutine in (response.done(), session.update({}), read_all(session), session.commit_audio())
    ]
    await settle()
    server.resume_refusal = (refusal, 1008)
    began = now()
    server.here.end(BROKEN)
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert now() - began <= 1.0
    for result in results:
        assert isinstance(result, ConnectionLost)
        assert isinstance(result.__cause__, ServerRefused)
        assert result.__cause__.code == refusal
    with pytest.raises(ConnectionLost):
        await session.append_audio(b"\0\0")
    await session.close()


async def test_a_refusal_for_lack_of_room_is_tried_again() -> None:
    server = Server()
    async with server.connect():
        server.resume_refusal = ("resource_exhausted", 1013)
        server.here.end(BROKEN)
        await settle(3)
        assert len(server.resumes) > 1
        server.resume_refusal = None
        await settle(10)
        assert server.here.open


@pytest.mark.parametrize(
    ("obstacle", "final"),
    [
        (Closed(1008), True),
        (Closed(4001), True),
        (UpgradeRefused(401), True),
        (UpgradeRefused(404), True),
        (UpgradeRefused(429), False),
        (UpgradeRefused(502), False),
        (Closed(1013), False),
    ],
    ids=str,
)
async def test_which_obstacles_are_final(obstacle: Exception, final: bool) -> None:
    server = Server()
    session = await server.connect()
    server.obstacles = [obstacle]
    server.here.end(BROKEN)
    await settle(5)
    assert len(server.dialled) == (2 if final else 3)
    await session.close()


async def test_it_gives_up_in_the_end() -> None:
    """Case M-06."""
    server = Server()
    session = await server.connect(options=Options(backoff=Backoff(give_up_s=60)))
    server.obstacles = [Closed(BROKEN)] * 1000
    server.here.end(1012)
    began = now()
    with pytest.raises(ConnectionLost, match="gave up after 60 s") as lost:
        await read_all(session)
    assert 40 < now() - began <= 60
    assert lost.value.code == 1012
    assert 10 < len(server.dialled) < 60


async def test_a_server_that_accepts_and_drops_is_not_stormed() -> None:
    """Case M-06: a short-lived connection does not make the next wait short again."""
    server = Server()
    session = await server.connect()

    async def drop() -> None:
        while True:
            await asyncio.sleep(0.02)
            if server.current is not None:
                server.current.end(1011)

    dropping = asyncio.create_task(drop())
    with pytest.raises(ConnectionLost, match="gave up"):
        await read_all(session)
    dropping.cancel()
    assert len(server.dialled) < 60
    assert max(b - a for a, b in itertools.pairwise(server.dialled)) > 2


# --- leaving ------------------------------------------------------------------------------------


async def test_closing_ends_the_session_on_the_server_and_waits_for_its_word() -> None:
    server = Server()
    session = await server.connect()
    await session.append_audio(b"\1\0")
    await session.close()
    assert server.heard_types() == ["input_audio_buffer.append", "session.close"]
    assert (await read_all(session))[-1].type == "session.closed"
    assert session.close_reason is not None
    assert session.close_reason.code == 1000
    await session.close()


async def test_closing_twice_at_once_is_closing_once() -> None:
    server = Server()
    session = await server.connect()
    await asyncio.gather(session.close(), session.close(), session.close())
    assert server.heard_types() == ["session.close"]


async def test_a_server_that_does_not_answer_a_close_is_left() -> None:
    server = Server()
    session = await server.connect()
    connection = server.here
    connection.deaf = True
    began = now()
    await session.close()
    assert 7 < now() - began < 9
    assert connection.closed_with == 1000


async def test_closing_during_an_outage_ends_all_attempts() -> None:
    """Case N-02."""
    server = Server()
    session = await server.connect()
    server.obstacles = [Closed(BROKEN)] * 1000
    server.here.end(BROKEN)
    await settle(3)
    dialled = len(server.dialled)
    await session.close()
    await settle(60)
    assert len(server.dialled) == dialled
    await read_all(session)


@pytest.mark.parametrize("turns", range(12))
async def test_closing_at_any_moment_of_a_resume_leaves_no_connection(turns: int) -> None:
    """Case N-02."""
    server = Server()
    session = await server.connect(options=Options(backoff=Backoff(first_s=0.0)))
    server.here.end(BROKEN)
    for _ in range(turns):
        await asyncio.sleep(0.002)
    await session.close()
    await settle(60)
    assert [connection for connection in server.connections if connection.open] == []
    assert len(server.dialled) <= 2


async def test_a_resume_that_is_given_up_does_not_end_the_session() -> None:
    """1000 from a client ends its session (wire, section 1): a resume in flight must not say that."""
    server = Server()
    session = await server.connect(options=Options(handshake_timeout_s=0.5))
    server.here.end(BROKEN)
    server.resume_refusal = None
    original, server._resume = server._resume, lambda connection, event: None  # type: ignore[method-assign]
    await settle(2)
    server._resume = original  # type: ignore[method-assign]
    given_up = server.connections[1:]
    assert [connection.closed_with for connection in given_up if not connection.open] != []
    assert {connection.closed_with for connection in given_up} <= {1001, None}
    await settle(20)
    assert server.here.open
    await session.close()


async def test_leaving_keeps_the_session_for_another_client() -> None:
    server = Server()
    first = await server.connect()
    server.emit("x")
    await settle()
    connection = server.here
    point = await first.detach()
    assert connection.closed_with == 1001
    assert "token-0" not in repr(point)
    assert first.close_reason is not None
    assert (first.close_reason.code, first.close_reason.resumable) == (1001, True)
    with pytest.raises(ConnectionLost, match="left the session"):
        await first.send({"type": "x"})
    server.emit("y")
    async with server.connect(resume=point) as second:
        await settle()
        assert second.id == "sess_1"
        await second.append_audio(b"\1\0")
    events = await read_all(second)
    assert [event.type for event in events if event.seq is not None] == ["y", "session.closed"]
    assert [event["client_event_seq"] for event in server.applied] == [1, 2]


async def test_two_clients_of_one_session_do_not_fight() -> None:
    """Case B-05: one takeover for each explicit resume."""
    server = Server()
    first = await server.connect()
    second = await server.connect(resume=first.resume_point)
    with pytest.raises(ConnectionLost):
        await read_all(first)
    await settle(10)
    assert (len(server.dialled), len(server.resumes)) == (2, 1)
    assert second.close_reason is None
    await second.close()


# --- beginning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obstacle", "error", "text"),
    [
        (Closed(1013, "full"), ConnectionLost, "1013 full"),
        (UpgradeRefused(401), ServerRefused, "invalid_api_key"),
        (UpgradeRefused(503), ServerRefused, "http_503"),
        (TimeoutError(), ConnectionLost, "in time"),
    ],
    ids=str,
)
async def test_a_first_connection_is_tried_once(
    obstacle: Exception, error: type[ClientError], text: str
) -> None:
    server = Server()
    server.obstacles = [obstacle]
    with pytest.raises(error, match=text):
        await server.connect()
    await settle(60)
    assert len(server.dialled) == 1


async def test_a_refused_configuration_is_raised_and_the_connection_closed() -> None:
    server = Server()
    server._greet = lambda connection: connection.say(  # type: ignore[method-assign]
        {"type": "error", "error": {"code": "invalid_event", "message": "no", "param": "session.x"}}
    )
    with pytest.raises(ServerRefused, match="invalid_event") as refused:
        await server.connect({"x": 1})
    assert refused.value.param == "session.x"
    assert server.connections[0].closed_with == 1000


async def test_a_place_in_the_queue_is_told_before_the_session_is_there() -> None:
    server = Server()
    original = server._greet

    def queue(connection: Any) -> None:
        connection.say({"type": "session.queued", "position": 1, "eta_ms": None})
        connection.say_raw("{")
        original(connection)

    server._greet = queue  # type: ignore[method-assign]
    session = await server.connect()
    await session.close()
    assert [event.type for event in await read_all(session)][:2] == ["session.queued", "session.created"]


async def test_a_silent_server_is_given_up() -> None:
    server = Server()
    server.greets = False
    with pytest.raises(ConnectionLost, match="in time"):
        await server.connect(options=Options(handshake_timeout_s=1))
    assert server.connections[0].closed_with == 1000


async def test_a_first_connection_that_is_called_off_is_closed() -> None:
    """Case N-02: an attempt that was superseded cannot become a session, nor disturb the one that won."""
    slow, quick = Server(), Server()
    slow.greets = False
    attempt = asyncio.ensure_future(slow.connect().__aenter__())
    await settle(0.1)
    async with quick.connect() as session:
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)
        assert slow.connections[0].closed_with == 1000
        assert session.close_reason is None


async def test_without_a_token_a_lost_connection_is_the_end() -> None:
    server = Server()
    server.token = ""
    session = await server.connect()
    with pytest.raises(ConnectionLost, match="offers no resume"):
        _ = session.resume_point
    server.here.end(BROKEN)
    with pytest.raises(ConnectionLost):
        await read_all(session)
    assert session.close_reason is not None
    assert not session.close_reason.resumable


async def test_tokens_are_in_no_event() -> None:
    server = Server()
    session = await server.connect()
    server.here.end(BROKEN)
    await settle()
    await session.close()
    assert "token-" not in repr([event.data for event in await read_all(session)])
