"""Real sockets on loopback: every end of a connection, large events, peers that do not answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import WSMsgType, web

from counterpoint import __version__
from counterpoint.client.transport import BROKEN, NO_STATUS, Closed, UpgradeRefused, WebSocketTransport

Handler = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    async def upgrade(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse(
            protocols=("realtime",), max_msg_size=0, timeout=0.1, autoping=False
        )
        await websocket.prepare(request)
        await handler(websocket, request)
        return websocket

    app = web.Application()
    app.router.add_get("/", upgrade)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def dial(url: str, *, ping_s: float = 20.0) -> WebSocketTransport:
    return await WebSocketTransport.dial(url, headers={"X-Asked": "yes"}, tls=None, ping_s=ping_s)


async def send_on(transport: WebSocketTransport) -> None:
    """Send until that fails; the kernel may take some of it after the end."""
    for _ in range(100):
        await transport.send(b"{}")
        await asyncio.sleep(0.001)


async def until_closed(websocket: web.WebSocketResponse) -> int | None:
    """The code with which the client closes; pings are not answered."""
    while True:
        message = await websocket.receive()
        if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING, WSMsgType.ERROR):
            return websocket.close_code


async def reset(websocket: web.WebSocketResponse, request: web.Request) -> None:
    assert request.transport is not None
    request.transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    request.transport.abort()


async def end(websocket: web.WebSocketResponse, request: web.Request) -> None:
    assert request.transport is not None
    request.transport.close()


@pytest.mark.parametrize(
    ("finish", "code", "reason"),
    [
        *(
            (lambda w, r, code=code: w.close(code=code, message=b"why"), code, "why")
            for code in (1000, 1001, 1008, 1009, 1011, 1012, 1013, 4001)
        ),
        (lambda w, r: w._writer.send_frame(b"", WSMsgType.CLOSE), NO_STATUS, ""),
        (reset, BROKEN, ""),
        (end, BROKEN, ""),
    ],
    ids=[1000, 1001, 1008, 1009, 1011, 1012, 1013, 4001, "no code", "reset", "end of stream"],
)
async def test_how_it_ended_is_known(finish: Handler, code: int, reason: str) -> None:
    """Case I-14: by the server's code, or by none; and it stays known."""

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        await websocket.send_str("first")
        await finish(websocket, request)

    async with serving(handler) as url:
        transport = await dial(url)
        assert await transport.receive() == "first"
        for _ in range(2):
            with pytest.raises(Closed) as closed:
                await transport.receive()
            assert closed.value.code == code
            if reason:
                assert closed.value.reason == reason
        with pytest.raises(Closed):
            await send_on(transport)
        await transport.close(1000)


async def test_large_events_arrive_and_large_frames_leave() -> None:
    """Case H-06: the largest event of ours, and a snapshot beyond it."""
    received: list[int] = []

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        for size in (3 << 20, 20 << 20):
            await websocket.send_str("x" * size)
        received.append(len((await websocket.receive()).data))
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url)
        assert [len(await transport.receive()) for _ in range(2)] == [3 << 20, 20 << 20]
        await transport.send(b"x" * (10 << 20))
        await transport.close(1000)
    assert received == [10 << 20]


async def test_binary_frames_are_told_from_text() -> None:
    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        await websocket.send_bytes(b"{}")
        await websocket.send_str("{}")
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url)
        assert [await transport.receive() for _ in range(2)] == [b"{}", "{}"]
        await transport.close(1000)


async def test_text_that_is_no_utf8_ends_the_connection() -> None:
    """Case I-01."""

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        assert websocket._writer is not None
        await websocket._writer.send_frame(b"\xff", WSMsgType.TEXT)
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url)
        with pytest.raises(Closed) as closed:
            await transport.receive()
        assert closed.value.code == 1007
        await transport.close(1001)


async def test_what_the_upgrade_says() -> None:
    seen: list[tuple[str, str, str | None]] = []

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        headers = request.headers
        seen.append((headers["User-Agent"], headers["X-Asked"], websocket.ws_protocol))
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url)
        await transport.close(1000)
    assert seen == [(f"counterpoint/{__version__}", "yes", "realtime")]


@pytest.mark.parametrize("code", [1000, 1001])
async def test_the_server_sees_the_code_with_which_the_client_leaves(code: int) -> None:
    seen: list[int | None] = []

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        seen.append(await until_closed(websocket))

    async with serving(handler) as url:
        transport = await dial(url)
        reading = asyncio.create_task(transport.receive())
        await asyncio.sleep(0)
        await transport.close(code)
        with pytest.raises(Closed):
            await reading
        await transport.close(code)
    assert seen == [code]


@pytest.mark.parametrize("status", [401, 404, 429, 503])
async def test_a_refused_upgrade_tells_its_status(status: int) -> None:
    async def refuse(websocket: web.WebSocketResponse, request: web.Request) -> None:
        raise AssertionError("unreachable")

    async def middleware(request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/", middleware)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with pytest.raises(UpgradeRefused) as refused:
        await dial(f"ws://127.0.0.1:{runner.addresses[0][1]}/")
    assert refused.value.status == status
    await runner.cleanup()


async def test_nobody_there_is_a_connection_that_broke() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Closed) as closed:
        await dial(f"ws://127.0.0.1:{port}/")
    assert closed.value.code == BROKEN


async def test_a_server_that_answers_no_upgrade_can_be_called_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await dial(f"ws://127.0.0.1:{silent.getsockname()[1]}/")


async def test_a_peer_that_answers_no_ping_is_dead() -> None:
    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url, ping_s=0.2)
        with pytest.raises(Closed) as closed:
            async with asyncio.timeout(5):
                await transport.receive()
        assert closed.value.code == BROKEN
        await transport.close(1001)


async def test_pings_are_answered_while_nobody_reads_what_we_send() -> None:
    """Our own bytes wait for the peer; what he sends is read all the same (case K-03)."""
    pong: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    read_on = asyncio.Event()

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        for number in range(3):
            await websocket.ping(str(number).encode())
            await websocket.send_str(str(number))
        await read_on.wait()
        while (message := await websocket.receive()).type is not WSMsgType.PONG:
            pass
        pong.set_result(message.data)
        await until_closed(websocket)

    async with serving(handler) as url:
        transport = await dial(url)
        sending = asyncio.create_task(transport.send(b"x" * (30 << 20)))
        await asyncio.sleep(0.05)
        assert not sending.done()
        assert [await transport.receive() for _ in range(3)] == ["0", "1", "2"]
        read_on.set()
        await sending
        assert await pong == b"0"
        await transport.close(1000)


async def test_a_peer_that_reads_nothing_holds_no_socket() -> None:
    leave = asyncio.Event()

    async def handler(websocket: web.WebSocketResponse, request: web.Request) -> None:
        await leave.wait()

    async with serving(handler) as url:
        transport = await dial(url)
        sending = asyncio.create_task(transport.send(b"x" * (30 << 20)))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            await transport.close(1001)
            await asyncio.gather(sending, return_exceptions=True)
        leave.set()
