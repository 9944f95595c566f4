"""Who gets in, as whom, and what the door says otherwise (wire contract, sections 1 and 10; case I-10)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from counterpoint.serving.app import Server
from counterpoint.testing.schema.events import value_problems
from counterpoint.testing.server import running_server

SHOP, DESK, ADMIN = "sk-shop", "sk-desk", "sk-admin"
NOBODY = "sk-nobody"


def line(key: str, *words: str) -> str:
    return " ".join((hashlib.sha256(key.encode()).hexdigest(), *words)) + "\n"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(line(SHOP, "shop") + line(DESK, "desk") + line(ADMIN, "operator", "admin"))
    return file


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def server(keys: Path) -> AsyncIterator[Server]:
    settings = {
        "access.keys_file": str(keys),
        "lease.reaper_interval_s": 0.02,
        "debug.state_route": True,
        "transport.handshake_timeout_s": 5,
    }
    async with running_server(settings) as up:
        yield up


Socket = aiohttp.ClientWebSocketResponse


@asynccontextmanager
async def connect(
    http: aiohttp.ClientSession, server: Server, key: str | None = None, **more: Any
) -> AsyncIterator[Socket]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= more.pop("headers", {})
    async with http.ws_connect(server.url, headers=headers, **more) as socket:
        yield socket


async def status(http: aiohttp.ClientSession, server: Server, key: str | None = None, **more: Any) -> int:
    """The HTTP status that refuses a connection; 101 if none does."""
    try:
        async with connect(http, server, key, **more):
            return 101
    except aiohttp.WSServerHandshakeError as refusal:
        return refusal.status


async def event(socket: Socket, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while True:
            found: dict[str, Any] = await socket.receive_json()
            if found["type"] == kind:
                return found


async def close_code(socket: Socket) -> int | None:
    async with asyncio.timeout(5):
        while (message := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
    return socket.close_code if message.type is not aiohttp.WSMsgType.CLOSE else message.data


async def secret(http: aiohttp.ClientSession, server: Server, key: str = SHOP, **body: Any) -> dict[str, Any]:
    url = f"{server.page_url}v1/realtime/client_secrets"
    async with http.post(url, json=body, headers={"Authorization": f"Bearer {key}"}) as answer:
        found: dict[str, Any] = await answer.json()
        return found | {"status": answer.status}


def rewrite(keys: Path, *lines: str) -> None:
    """Write the file of keys, and make sure that it shows within one tick of the file system's clock."""
    keys.write_text("".join(lines))
    os.utime(keys, (1, 1))


def slots(server: Server) -> int:
    return server.manager.slots.used


# --------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "presented",
    [
        {"headers": {"Authorization": f"Bearer {SHOP}"}},
        {"headers": {"authorization": f"bearer  {SHOP}"}},
        {"headers": {"api-key": SHOP}},
        {"protocols": ("realtime", f"openai-insecure-api-key.{SHOP}")},
    ],
)
async def test_a_key_is_read_from_every_place(
    http: aiohttp.ClientSession, server: Server, presented: dict[str, Any]
) -> None:
    async with connect(http, server, **presented) as socket:
        await event(socket, "session.created")
        assert socket.protocol in (None, "realtime")


@pytest.mark.parametrize(
    "presented",
    [
        {},
        {"headers": {"Authorization": "Bearer "}},
        {"headers": {"Authorization": f"Basic {SHOP}"}},
        {"headers": {"Authorization": f"Bearer {NOBODY}"}},
        {"headers": {"Authorization": "Bearer ek_0123456789"}},
        {"protocols": ("realtime", f"openai-insecure-api-key.{NOBODY}")},
        {"params": {"api_key": SHOP, "key": SHOP}},
    ],
)
async def test_without_a_good_key_there_is_no_upgrade_and_no_slot(
    http: aiohttp.ClientSession, server: Server, presented: dict[str, Any]
) -> None:
    assert await status(http, server, **presented) == 401
    assert slots(server) == 0


async def test_a_refusal_has_the_form_that_client_libraries_read(
    http: aiohttp.ClientSession, server: Server
) -> None:
    async with http.get(f"{server.page_url}v1/models") as answer:
        assert answer.status == 401
        assert (await answer.json())["error"]["code"] == "invalid_api_key"
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_resume_token_does_not_stand_for_a_key(http: aiohttp.ClientSession, server: Server) -> None:
    async with connect(http, server, SHOP) as socket:
        created = await event(socket, "session.created")
        query = {"resume": created["session"]["id"], "resume_token": created["resume_token"]}
        assert await status(http, server, params=query) == 401
        assert await status(http, server, NOBODY, params=query) == 401
        async with connect(http, server, DESK, params=query) as other:
            error = (await event(other, "error"))["error"]
            assert error["code"] == "invalid_resume_token", "one code for all that is not one's own"
            assert await close_code(other) == 1008
        async with connect(http, server, SHOP, params=query) as again:
            assert (await event(again, "session.created"))["session"]["id"] == created["session"]["id"]


async def test_a_new_key_is_good_at_once(http: aiohttp.ClientSession, server: Server, keys: Path) -> None:
    rewrite(keys, line(SHOP, "shop"), line(NOBODY, "somebody"))
    assert await status(http, server, NOBODY) == 101


async def test_a_revoked_key_ends_what_it_opened(
    http: aiohttp.ClientSession, server: Server, keys: Path
) -> None:
    issued = await secret(http, server)
    async with (
        connect(http, server, SHOP, params={"duplex": "1"}) as mine,
        connect(http, server, issued["value"]) as by_secret,
        connect(http, server, DESK) as other,
        connect(http, server, SHOP, params={"autostart": "0"}) as waiting,
    ):
        for socket in (mine, by_secret, other):
            await event(socket, "session.created")
        rewrite(keys, line(DESK, "desk"))
        assert (await event(mine, "session.closed"))["reason"] == "admin"
        assert await close_code(mine) == 1008
        assert await close_code(by_secret) == 1008
        await waiting.send_json({"type": "session.update", "session": {}})
        assert (await event(waiting, "error"))["error"]["code"] == "invalid_api_key"
        assert await close_code(waiting) == 1008
        assert await status(http, server, SHOP) == 401
        assert await status(http, server, issued["value"]) == 401
        await other.send_json({"type": "session.update", "session": {}})
        await event(other, "session.updated")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:3000", 101),
        ("http://127.0.0.1", 101),
        ("https://shop.example", 403),
        ("null", 403),
    ],
)
async def test_other_origins_are_turned_away(
    http: aiohttp.ClientSession, server: Server, origin: str, expected: int
) -> None:
    assert await status(http, server, SHOP, headers={"Origin": origin}) == expected


async def test_origins_that_are_listed_are_the_ones() -> None:
    settings = {"access.origins": "https://shop.example"}
    async with running_server(settings) as server, aiohttp.ClientSession() as http:
        assert await status(http, server, headers={"Origin": "https://shop.example"}) == 101
        assert await status(http, server, headers={"Origin": "http://localhost:3000"}) == 403


# --------------------------------------------------------------------------- client secrets


async def test_a_secret_comes_with_its_session_in_the_official_form(
    http: aiohttp.ClientSession, server: Server
) -> None:
    for session in ({"type": "realtime", "instructions": "sell nothing"}, {"type": "transcription"}):
        issued = await secret(http, server, session=session)
        assert issued.pop("status") == 200
        assert value_problems("client_secret", issued) == []
        assert session.items() <= issued["session"].items()


async def test_what_a_secret_fixes_wins_silently(http: aiohttp.ClientSession, server: Server) -> None:
    fixed = {"type": "realtime", "instructions": "sell nothing", "audio": {"output": {"voice": "default"}}}
    issued = await secret(http, server, session={**fixed, "model": "gpt-realtime"})
    async with connect(http, server, issued["value"], params={"model": "no-such-model"}) as socket:
        session = (await event(socket, "session.created"))["session"]
        assert (session["instructions"], session["model"]) == ("sell nothing", "gpt-realtime")
        update = {"instructions": "sell everything", "max_output_tokens": 99}
        await socket.send_json({"type": "session.update", "session": update})
        session = (await event(socket, "session.updated"))["session"]
        assert (session["instructions"], session["max_output_tokens"]) == ("sell nothing", 99)
    async with connect(http, server, issued["value"], params={"autostart": "0"}) as socket:
        await socket.send_json({"type": "session.update", "session": update})
        session = (await event(socket, "session.created"))["session"]
        assert (session["instructions"], session["max_output_tokens"]) == ("sell nothing", 99)


async def test_a_secret_may_stand_in_a_subprotocol(http: aiohttp.ClientSession, server: Server) -> None:
    """As browsers do it."""
    value = (await secret(http, server))["value"]
    protocols = ("realtime", f"openai-insecure-api-key.{value}")
    async with connect(http, server, protocols=protocols) as socket:
        await event(socket, "session.created")
        assert socket.protocol == "realtime"


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"type": "party"}, "session.type"),
        ({"model": "no-such-model"}, "model"),
        ({"audio": {"input": {"format": {"type": "mp3"}}}}, "session.audio.input.format.type"),
        ({"extra_body": {"script": {"tempo": 3}}}, "session.extra_body.script.tempo"),
    ],
)
async def test_a_session_that_could_not_be_is_refused_when_the_secret_is_made(
    http: aiohttp.ClientSession, server: Server, session: dict[str, Any], param: str
) -> None:
    answer = await secret(http, server, session=session)
    assert (answer["status"], answer["error"]["param"]) == (400, param)


async def test_secrets_are_made_with_a_key_only(http: aiohttp.ClientSession, server: Server) -> None:
    value = (await secret(http, server))["value"]
    assert (await secret(http, server, key=value))["status"] == 403
    assert (await secret(http, server, key=NOBODY))["status"] == 401


async def test_a_secret_has_limits(http: aiohttp.ClientSession, server: Server) -> None:
    limits = {"max_sessions": 1, "max_minutes": 0.1}
    issued = await secret(http, server, limits=limits)
    assert issued["limits"] == limits
    async with connect(http, server, issued["value"], params={"duplex": "1"}) as socket:
        created = await event(socket, "session.created")
        assert await status(http, server, issued["value"]) == 429
        async with connect(http, server, issued["value"], params={"autostart": "0"}) as late:
            await late.send_json({"type": "session.update", "session": {}})
            error = (await event(late, "error"))["error"]
            assert error["code"] == "resource_exhausted"
            assert error["retry_after_ms"] > 0
            assert await close_code(late) == 1013
        live = server.manager.find(created["session"]["id"])
        assert live is not None
        assert live.machine.next_deadline() is not None, "six minutes at most"


# --------------------------------------------------------------------------- limits of a key


async def test_a_key_has_its_sessions_and_no_more(keys: Path, http: aiohttp.ClientSession) -> None:
    settings = {"access.keys_file": str(keys), "access.max_sessions_per_key": 1}
    async with running_server(settings) as server:
        value = (await secret(http, server))["value"]
        async with connect(http, server, SHOP) as socket:
            created = await event(socket, "session.created")
            assert await status(http, server, SHOP) == 429
            assert await status(http, server, value) == 429, "its secrets count for the key"
            assert await status(http, server, DESK) == 101
            query = {"resume": created["session"]["id"], "resume_token": created["resume_token"]}
            async with connect(http, server, SHOP, params=query) as again:
                await event(again, "session.created")


async def test_a_key_has_its_connections_a_minute(keys: Path, http: aiohttp.ClientSession) -> None:
    settings = {"access.keys_file": str(keys), "access.connections_per_minute": 2}
    async with running_server(settings) as server:
        assert [await status(http, server, SHOP) for _ in range(3)] == [101, 101, 429]
        assert await status(http, server, DESK) == 101
        headers = {"Authorization": f"Bearer {SHOP}", "Upgrade": "websocket", "Connection": "Upgrade"}
        async with http.get(f"{server.page_url}v1/realtime", headers=headers) as answer:
            assert 0 < int(answer.headers["Retry-After"]) <= 60
            assert (await answer.json())["error"]["type"] == "rate_limit_error"


# --------------------------------------------------------------------------- ending other people's sessions


async def delete(http: aiohttp.ClientSession, server: Server, session_id: str, key: str) -> int:
    url = f"{server.page_url}v1/sessions/{session_id}"
    async with http.delete(url, headers={"Authorization": f"Bearer {key}"}) as answer:
        return answer.status


async def test_an_administrator_ends_a_session(http: aiohttp.ClientSession, server: Server) -> None:
    async with connect(http, server, SHOP, params={"duplex": "1"}) as socket:
        session_id = (await event(socket, "session.created"))["session"]["id"]
        assert await delete(http, server, session_id, SHOP) == 403, "its owner is no administrator"
        assert await delete(http, server, session_id, NOBODY) == 401
        assert await delete(http, server, "sess_unknown", ADMIN) == 404
        assert await delete(http, server, session_id, ADMIN) == 204
        assert (await event(socket, "session.closed"))["reason"] == "admin"
        assert await close_code(socket) == 1008
        assert await delete(http, server, session_id, ADMIN) == 404


async def test_without_keys_nobody_is_an_administrator(http: aiohttp.ClientSession) -> None:
    async with running_server() as server, connect(http, server) as socket:
        session_id = (await event(socket, "session.created"))["session"]["id"]
        assert await delete(http, server, session_id, "anything") == 403


# --------------------------------------------------------------------------- logs


async def test_no_key_secret_or_token_is_logged(
    http: aiohttp.ClientSession, server: Server, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything that libraries and layers say, at the most talkative level."""
    caplog.set_level(logging.DEBUG)
    value = (await secret(http, server))["value"]
    said = [SHOP, NOBODY, ADMIN, value]
    await status(http, server, NOBODY)
    await status(http, server, headers={"api-key": NOBODY})
    await status(http, server, protocols=("realtime", f"openai-insecure-api-key.{NOBODY}"))
    async with connect(http, server, value) as socket:
        created = await event(socket, "session.created")
        said.append(created["resume_token"])
        query = {"resume": created["session"]["id"], "resume_token": created["resume_token"]}
        async with connect(http, server, value, params=query) as again:
            said.append((await event(again, "session.created"))["resume_token"])
            await again.send_str("{")
            await event(again, "error")
        async with connect(http, server, value, params=query) as refused:
            await event(refused, "error")
    async with connect(http, server, SHOP, params={"autostart": "0"}) as socket:
        request = {"session_id": "sess_1", "resume_token": "f" * 64, "last_received_server_event_seq": 0}
        await socket.send_json({"type": "session.resume", **request})
        await event(socket, "error")
        said.append("f" * 64)
    await delete(http, server, created["session"]["id"], ADMIN)
    logged = str([vars(record) for record in caplog.records])
    assert "client secret issued" in logged
    for word in said:
        assert word not in logged
