"""The helper methods: what they send, what they wait for, what they know."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.client.memory import PCM_24K, Server, settle

from counterpoint.client import AnswerMissed, ServerRefused, Session
from counterpoint.client.transport import BROKEN
from counterpoint.protocol.audio import PCM16_24K, ULAW_8K

ULAW = {"type": "audio/pcmu"}


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def session(server: Server) -> AsyncIterator[Session]:
    async with server.connect({"instructions": "Be brief."}) as session:
        yield session


def accept_update(server: Server, input_format: dict[str, Any]) -> None:
    audio = {"input": {"format": input_format}, "output": {"format": PCM_24K}}
    server.session = server.session | {"audio": audio}
    server.emit("session.updated", session=server.session)


# --- opening and configuration ------------------------------------------------------------------


async def test_the_first_event_opens_the_session_as_an_extended_one(server: Server, session: Session) -> None:
    assert server.here.heard[0] == {
        "type": "session.update",
        "session": {"instructions": "Be brief."},
        "extensions": True,
    }
    assert (session.id, session.config) == ("sess_1", server.session)
    assert (session.input_format, session.output_format) == (PCM16_24K, PCM16_24K)
    assert repr(session) == "Session('sess_1')"


async def test_a_stock_session_is_configured_once_the_server_has_spoken() -> None:
    server = Server()
    server.speaks_first = True
    server.answer = lambda event: accept_update(server, ULAW)
    async with server.connect({"instructions": "x"}, extended=False) as session:
        assert session.input_format == ULAW_8K
    assert [event["type"] for event in server.connections[0].heard] == ["session.update"]
    assert server.connections[0].closed_with == 1000


async def test_a_stock_session_whose_configuration_is_refused_is_closed() -> None:
    server = Server()
    server.speaks_first = True
    server.answer = lambda event: server.refuse(event, "invalid_event")
    with pytest.raises(ServerRefused):
        await server.connect({"x": 1}, extended=False)
    assert server.connections[0].closed_with == 1000


async def test_only_an_accepted_update_changes_what_the_helpers_encode(
    server: Server, session: Session
) -> None:
    """Case A-11: 24 kHz PCM, a refused update, an accepted one to mu-law; audio around all of them."""
    server.answer = lambda event: None
    refused = asyncio.create_task(session.update({"audio": {"input": {"format": {"type": "nonsense"}}}}))
    await settle()
    await session.append_audio(b"\1\0" * 24)
    server.refuse(server.applied[0], "invalid_event", param="session.audio.input.format.type")
    with pytest.raises(ServerRefused, match="invalid_event"):
        await refused
    assert session.input_format == PCM16_24K
    await session.append_audio(b"\2\0" * 24)

    accepted = asyncio.create_task(session.update({"audio": {"input": {"format": ULAW}}}))
    await settle()
    await session.append_audio(b"\3\0" * 24)
    await settle()
    accept_update(server, ULAW)
    assert (await accepted)["audio"]["input"]["format"] == ULAW
    assert session.input_format == ULAW_8K
    await session.append_audio(b"\4" * 8)
    await settle()
    appends = [event for event in server.applied if event["type"] == "input_audio_buffer.append"]
    said = [(base64.b64decode(event["audio"])[0], event["format"]) for event in appends]
    assert said == [(1, PCM_24K), (2, PCM_24K), (3, PCM_24K), (4, ULAW)]


async def test_after_a_resume_an_update_counts_when_its_event_comes(server: Server, session: Session) -> None:
    server.here.end(BROKEN)
    accept_update(server, ULAW)
    missed = server.journal.pop()
    await settle()
    assert session.input_format == PCM16_24K
    server.here.say(missed)
    await settle()
    assert session.input_format == ULAW_8K


async def test_after_a_gap_the_configuration_is_the_servers(server: Server, session: Session) -> None:
    server.here.end(BROKEN)
    accept_update(server, ULAW)
    server.boundary = 1
    await settle()
    assert session.input_format == ULAW_8K


async def test_a_gap_on_a_live_connection_leaves_no_stale_configuration(
    server: Server, session: Session
) -> None:
    """A ``session.updated`` that was lost is made good by the snapshot."""
    server.session = server.session | {"audio": {"input": {"format": ULAW}}}
    server.here.say(server.snapshot())
    await settle()
    assert session.input_format == ULAW_8K


async def test_capabilities_are_there_or_empty(server: Server, session: Session) -> None:
    assert session.capabilities == {}
    server.session = server.session | {"capabilities": {"interaction": "frame"}}
    accept_update(server, PCM_24K)
    await settle()
    assert session.capabilities == {"interaction": "frame"}


# --- input --------------------------------------------------------------------------------------


async def test_audio_is_cut_into_small_pieces_of_whole_samples(server: Server, session: Session) -> None:
    pcm = bytes(range(251)) * 300
    await session.append_audio(pcm)
    await session.append_audio(memoryview(b"\7"))  # an odd byte is the server's to keep (wire, section 4)
    await session.append_audio(b"")
    await settle()
    assert server.audio() == pcm + b"\7"
    sizes = [len(base64.b64decode(event["audio"])) for event in server.applied]
    assert all(size == 12_000 for size in sizes[:-2])
    assert len(sizes) == len(pcm) // 12_000 + 2


Call = Callable[[Session], Awaitable[Any]]

CALLS: dict[str, tuple[Call, dict[str, Any], tuple[str, dict[str, Any]], Any]] = {
    "commit": (
        lambda session: session.commit_audio(),
        {"type": "input_audio_buffer.commit"},
        ("input_audio_buffer.committed", {"item_id": "item_1"}),
        "item_1",
    ),
    "clear": (
        lambda session: session.clear_audio(),
        {"type": "input_audio_buffer.clear"},
        ("input_audio_buffer.cleared", {}),
        None,
    ),
    "create": (
        lambda session: session.create_item({"id": "mine", "type": "message"}, previous_item_id="root"),
        {
            "type": "conversation.item.create",
            "item": {"id": "mine", "type": "message"},
            "previous_item_id": "root",
        },
        ("conversation.item.added", {"item": {"id": "mine"}}),
        "mine",
    ),
    "retrieve": (
        lambda session: session.retrieve_item("mine"),
        {"type": "conversation.item.retrieve", "item_id": "mine"},
        ("conversation.item.retrieved", {"item": {"id": "mine", "content": []}}),
        {"id": "mine", "content": []},
    ),
    "delete": (
        lambda session: session.delete_item("mine"),
        {"type": "conversation.item.delete", "item_id": "mine"},
        ("conversation.item.deleted", {"item_id": "mine"}),
        None,
    ),
    "truncate": (
        lambda session: session.truncate_item("mine", 700),
        {
            "type": "conversation.item.truncate",
            "item_id": "mine",
            "content_index": 0,
            "audio_end_ms": 700,
        },
        ("conversation.item.truncated", {"item_id": "mine", "audio_end_ms": 700}),
        None,
    ),
    "update": (
        lambda session: session.update({"instructions": "x"}),
        {"type": "session.update", "session": {"instructions": "x"}},
        ("session.updated", {"session": {"id": "sess_1"}}),
        {"id": "sess_1"},
    ),
    "cancel": (
        lambda session: session.cancel(),
        {"type": "response.cancel"},
        ("response.done", {"response": {"id": "r", "status": "cancelled", "conversation_id": "c"}}),
        True,
    ),
    "cancel one": (
        lambda session: session.cancel("r"),
        {"type": "response.cancel", "response_id": "r"},
        ("response.done", {"response": {"id": "r", "status": "cancelled", "conversation_id": None}}),
        True,
    ),
}


@pytest.fixture(params=CALLS)
def call(request: pytest.FixtureRequest) -> tuple[Call, dict[str, Any], tuple[str, dict[str, Any]], Any]:
    return CALLS[request.param]


async def test_a_request_is_sent_and_returns_with_its_answer(
    server: Server,
    session: Session,
    call: tuple[Call, dict[str, Any], tuple[str, dict[str, Any]], Any],
) -> None:
    method, sent, (answer, fields), result = call
    asking = asyncio.ensure_future(method(session))
    await settle()
    server.emit("conversation.item.added", item={"id": "another"})
    server.emit("response.done", response={"id": "another", "status": "completed", "conversation_id": None})
    await settle()
    assert not asking.done()
    server.emit(answer, **fields)
    assert await asking == result
    (event,) = server.applied
    assert {key: event[key] for key in event if key not in ("event_id", "client_event_seq")} == sent


async def test_a_refused_request_raises_what_was_wrong(
    server: Server,
    session: Session,
    call: tuple[Call, dict[str, Any], tuple[str, dict[str, Any]], Any],
) -> None:
    server.answer = lambda event: server.refuse(event, "invalid_event", param="x")
    with pytest.raises(ServerRefused) as refused:
        await call[0](session)
    assert (refused.value.code, refused.value.param) == ("invalid_event", "x")


async def test_a_request_outlives_an_outage(
    server: Server,
    session: Session,
    call: tuple[Call, dict[str, Any], tuple[str, dict[str, Any]], Any],
) -> None:
    method, _, (answer, fields), result = call
    server.answer = lambda event: server.emit(answer, **fields)
    server.here.deaf = True
    asking = asyncio.ensure_future(method(session))
    await settle()
    server.here.end(BROKEN)
    assert await asking == result
    assert len(server.applied) == 1


async def test_an_answer_in_a_gap_is_missed_and_a_question_not_yet_asked_is_not(
    server: Server, session: Session
) -> None:
    asked = asyncio.create_task(session.clear_audio())
    await settle()
    server.here.deaf = True
    unasked = asyncio.create_task(session.send_text("hello"))
    await settle()
    server.here.end(BROKEN)
    server.emit("input_audio_buffer.cleared")
    server.boundary = 1
    server.answer = lambda event: server.emit("conversation.item.added", item=event["item"])
    with pytest.raises(AnswerMissed):
        await asked
    assert (await unasked).startswith("item_")


async def test_text_becomes_a_message_and_part_of_the_conversation(server: Server, session: Session) -> None:
    server.answer = lambda event: server.emit(
        "conversation.item.added", item=event["item"], previous_item_id=None
    )
    item_id = await session.send_text("Good morning")
    item = session.conversation.get(item_id)
    assert item is not None
    assert (item.role, item.text) == ("user", "Good morning")


async def test_a_raw_event_is_sent_as_it_is_with_an_id(server: Server, session: Session) -> None:
    assert await session.send({"type": "barge_in", "event_id": "mine"}) == "mine"
    other = await session.send({"type": "input.text.append", "text": "x"})
    await session.acknowledge_playback("r1", 700)
    await settle()
    assert server.applied[0] == {"type": "barge_in", "event_id": "mine", "client_event_seq": 1}
    assert server.applied[1]["event_id"] == other
    assert server.applied[2]["played_ms"] == 700
    for reserved in ("session.resume", "session.event_ack", "session.heartbeat", "session.close"):
        with pytest.raises(ValueError, match=reserved):
            await session.send({"type": reserved})
    with pytest.raises(TypeError):
        await session.send({"type": "x", "y": object()})


# --- answers ------------------------------------------------------------------------------------


async def test_who_asks_for_an_answer_gets_his_own(server: Server, session: Session) -> None:
    def answer(event: dict[str, Any]) -> None:
        server.begin_response("unasked")
        server.begin_response("asked", event["response"]["metadata"])
        server.speak("asked", b"ab", "Hello")
        server.end_response("asked")

    server.answer = answer
    response = await session.respond(instructions="x", metadata={"mine": "1"})
    assert response.id == "asked"
    assert (await response.done()).text == "Hello"
    sent = server.applied[0]["response"]
    assert sent["instructions"] == "x"
    assert sent["metadata"] == {"mine": "1", "counterpoint_request": server.applied[0]["event_id"]}
    assert (await anext(aiter(session.responses()))).id == "unasked"


async def test_an_answer_that_its_asker_no_longer_awaits_is_not_lost(
    server: Server, session: Session
) -> None:
    asking = asyncio.create_task(session.respond())
    await settle()
    asking.cancel()
    await settle()
    server.begin_response("r1", server.applied[0]["response"]["metadata"])
    assert (await anext(aiter(session.responses()))).id == "r1"


async def test_a_cancel_that_comes_too_late_is_no_error(server: Server, session: Session) -> None:
    """Case D-03."""
    server.answer = lambda event: server.refuse(event, "response_cancel_not_active")
    assert await session.cancel() is False


async def test_a_cancel_that_meets_the_end_says_so(server: Server, session: Session) -> None:
    server.answer = lambda event: server.end_response("r1", "completed")
    assert await session.cancel() is False


async def test_an_interruption_ends_the_audio_that_is_being_read(server: Server, session: Session) -> None:
    server.begin_response("r1")
    response = await anext(aiter(session.responses()))
    for _ in range(10):
        server.speak("r1", b"ab")
    audio = aiter(response.audio())
    assert await anext(audio) == b"ab"
    server.end_response("r1", "cancelled")
    await settle()
    assert [chunk async for chunk in audio] == []
    assert (await response.done()).interrupted


async def test_an_app_that_reads_audio_only_is_served(server: Server, session: Session) -> None:
    """Case K-03."""
    server.begin_response("r1")
    response = await anext(aiter(session.responses()))
    size = 0

    async def listen() -> None:
        nonlocal size
        async for chunk in response.audio():
            size += len(chunk)

    listening = asyncio.create_task(listen())
    for number in range(5000):
        server.speak("r1", bytes(3840))
        if number % 20 == 0:
            await asyncio.sleep(0.01)
    server.end_response("r1")
    await listening
    assert size == 5000 * 3840
    await settle(2)
    assert server.acknowledged[-1] == server.head
    assert (await anext(aiter(session.events()))).type == "client.overflow"
