"""The door: addresses, arguments, and that every session starts from nothing (case N-01)."""

from __future__ import annotations

import sys
from subprocess import run
from typing import Any

import pytest
from tests.client.memory import Server, settle

from counterpoint.client import ResumePoint, connect
from counterpoint.client.connect import Connecting
from counterpoint.client.transport import Closed, WebSocketTransport

POINT = ResumePoint("sess_1", "secret", 0)


async def dialled(monkeypatch: pytest.MonkeyPatch, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
    """The URL and the arguments with which ``connect`` dials."""
    seen: list[tuple[str, dict[str, Any]]] = []

    async def dial(url: str, **kwargs: Any) -> WebSocketTransport:
        seen.append((url, kwargs))
        raise Closed(1006)

    monkeypatch.setattr(WebSocketTransport, "dial", dial)
    with pytest.raises(Exception, match="1006"):
        await connect(*args, **kwargs)
    return seen[0]


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("ws://host:8099/v1/realtime", "ws://host:8099/v1/realtime?autostart=0"),
        ("ws://host:8099", "ws://host:8099/v1/realtime?autostart=0"),
        ("https://host/", "wss://host/v1/realtime?autostart=0"),
        ("http://host/other", "ws://host/other?autostart=0"),
        ("wss://host?duplex=1&empty=", "wss://host/v1/realtime?duplex=1&empty=&autostart=0"),
    ],
)
async def test_an_address_becomes_a_url(monkeypatch: pytest.MonkeyPatch, address: str, url: str) -> None:
    assert (await dialled(monkeypatch, address))[0] == url


async def test_the_model_goes_into_the_url_and_the_key_into_the_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, kwargs = await dialled(monkeypatch, "ws://host", model="gpt realtime", api_key="k")
    assert url == "ws://host/v1/realtime?model=gpt+realtime&autostart=0"
    assert kwargs["headers"] == {"Authorization": "Bearer k"}


async def test_a_server_of_the_official_api_is_asked_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    url, kwargs = await dialled(monkeypatch, "ws://host", extended=False)
    assert (url, kwargs["headers"]) == ("ws://host/v1/realtime", {})


@pytest.mark.parametrize("address", ["host:8099", "ftp://host", "ws:///v1", "", "127.0.0.1"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match="not the address of a server"):
        connect(address)


def test_a_session_is_resumed_as_it_is() -> None:
    with pytest.raises(ValueError, match="as it is"):
        connect("ws://host", resume=POINT, session={"instructions": "x"})
    with pytest.raises(ValueError, match="as it is"):
        connect("ws://host", resume=POINT, extended=False)


async def test_every_session_starts_from_nothing() -> None:
    """Cases A-05, N-01: three sessions by one ``connect``, the second and third see nothing of the first."""
    servers = [Server() for _ in range(3)]
    current: list[Server] = []
    door = Connecting(lambda: current[-1].connect()._make(), {}, None)
    for number, server in enumerate(servers):
        server.session = server.session | {"id": f"sess_{number}"}
        current.append(server)
        async with door as session:
            assert (session.id, len(session.conversation)) == (f"sess_{number}", 0)
            item = {"id": f"item_{number}", "type": "message", "role": "assistant", "content": []}
            server.begin_response("r1")
            server.emit("conversation.item.added", item=item)
            for _ in range(480 // (number + 1)):
                server.emit("x")
            response = await anext(aiter(session.responses()))
            server.speak("r1", bytes([number, 0]))
            server.end_response("r1", "cancelled")
            assert (await response.done()).interrupted
            await session.append_audio(bytes([number, 0]))
            await settle()
            assert server.audio() == bytes([number, 0])
            assert server.applied[0]["client_event_seq"] == 1
        events = [event async for event in session.events()]
        assert [event.seq for event in events if event.seq] == list(range(1, server.head + 1))
        assert [item.id for item in session.conversation] == [f"item_{number}"]


async def test_one_block_at_a_time() -> None:
    server = Server()
    door = server.connect()
    async with door:
        with pytest.raises(RuntimeError, match="entered already"):
            await door.__aenter__()


async def test_a_block_that_fails_closes_its_session() -> None:
    server = Server()
    with pytest.raises(KeyError):
        async with server.connect():
            raise KeyError
    assert server.heard_types() == ["session.close"]


def test_the_client_needs_nothing_of_the_server() -> None:
    """Case N-06: its own layers, aiohttp, msgspec and pybase64."""
    code = (
        "import importlib, pkgutil, sys\n"
        "import counterpoint.client as package\n"
        "for module in pkgutil.iter_modules(package.__path__):\n"
        "    importlib.import_module(f'counterpoint.client.{module.name}')\n"
        "ours = {name.split('.')[1] for name in sys.modules if name.startswith('counterpoint.')}\n"
        "print(sorted(ours))\n"
        "print(sorted({'numpy', 'uvloop', 'structlog', 'prometheus_client', 'typer'} & set(sys.modules)))\n"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("['client', 'errors', 'protocol']\n[]\n", "")
