"""The fault proxy does to a connection what it says, and no more."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from counterpoint.testing.proxy import BUFFER_BYTES, FaultProxy, Faults, proxying


@dataclass
class Ends:
    """Both ends of a connection through the proxy."""

    proxy: FaultProxy
    from_server: asyncio.StreamReader
    to_server: asyncio.StreamWriter
    from_client: asyncio.StreamReader
    to_client: asyncio.StreamWriter


@contextlib.asynccontextmanager
async def connected(
    *, idle_kill_s: float = 0.0, to_client: Faults | None = None, to_server: Faults | None = None
) -> AsyncIterator[Ends]:
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_server(lambda *ends: accepted.put_nowait(ends), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with proxying(f"ws://127.0.0.1:{port}/path", idle_kill_s=idle_kill_s) as proxy:
        proxy.to_client = to_client or proxy.to_client
        proxy.to_server = to_server or proxy.to_server
        from_server, to_server_ = await asyncio.open_connection("127.0.0.1", proxy.listening_port)
        from_client, to_client_ = await accepted.get()
        try:
            yield Ends(proxy, from_server, to_server_, from_client, to_client_)
        finally:
            for end in (to_server_, to_client_):
                end.close()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()
            server.close()
            await server.wait_closed()


async def gone(reader: asyncio.StreamReader, *, most: int = 0) -> bool:
    """Whether the connection ended by RST; False: by FIN. At most so many bytes may come before that."""
    arrived = 0
    try:
        while data := await reader.read(BUFFER_BYTES):
            arrived += len(data)
    except ConnectionResetError:
        return True
    finally:
        assert arrived <= most
    return False


async def test_bytes_pass_in_both_directions_and_an_end_does_too() -> None:
    async with connected() as ends:
        ends.to_server.write(b"up")
        ends.to_client.write(b"down")
        assert await ends.from_client.readexactly(2) == b"up"
        assert await ends.from_server.readexactly(4) == b"down"
        ends.to_server.write_eof()
        assert not await gone(ends.from_client)
        ends.to_client.write(b"still")
        assert await ends.from_server.readexactly(5) == b"still"
        assert (ends.proxy.newest.to_server.passed, ends.proxy.newest.to_client.passed) == (2, 9)


async def test_an_address_is_given_a_way_through_the_proxy() -> None:
    async with connected() as ends:
        port = ends.proxy.listening_port
        assert ends.proxy.through("ws://127.0.0.1:1/v1?a=b") == f"ws://127.0.0.1:{port}/v1?a=b"


async def test_a_reset_reaches_both_ends() -> None:
    async with connected() as ends:
        ends.proxy.newest.reset()
        assert await gone(ends.from_client)
        assert await gone(ends.from_server)


async def test_a_reset_by_one_end_reaches_the_other() -> None:
    async with connected() as ends:
        ends.to_server.transport.abort()
        ends.to_client.write(b"into the void")
        await gone(ends.from_client)
        assert ends.proxy.newest.to_client.passed <= len(b"into the void")


async def test_a_blackhole_swallows_nothing_and_passes_nothing_until_it_heals() -> None:
    async with connected() as ends:
        ends.proxy.newest.blackhole()
        ends.to_server.write(b"up")
        ends.to_client.write(b"down")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ends.from_client.readexactly(1), 0.1)
        ends.proxy.newest.heal()
        assert await ends.from_client.readexactly(2) == b"up"
        assert await ends.from_server.readexactly(4) == b"down"


async def test_a_half_closed_connection_still_brings_what_the_server_sends() -> None:
    async with connected() as ends:
        ends.proxy.newest.half_close()
        assert not await gone(ends.from_client)
        ends.to_client.write(b"down")
        assert await ends.from_server.readexactly(4) == b"down"


async def test_a_slow_link_holds_up_the_sender() -> None:
    size = 64 * BUFFER_BYTES
    rate = size / 0.5
    async with connected(to_client=Faults(bytes_per_s=rate)) as ends:
        started = time.monotonic()
        ends.to_client.write(bytes(size))
        assert len(await ends.from_server.readexactly(size)) == size
        assert time.monotonic() - started > 0.4


async def test_bytes_from_one_on_vanish_and_the_connection_stays() -> None:
    async with connected(to_client=Faults(drop_from=5)) as ends:
        ends.to_client.write(b"0123456789")
        assert await ends.from_server.readexactly(5) == b"01234"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ends.from_server.readexactly(1), 0.05)
        ends.to_server.write(b"up")
        assert await ends.from_client.readexactly(2) == b"up"


@pytest.mark.parametrize("limit", [1, 100, 3 * BUFFER_BYTES + 1])
async def test_a_connection_is_reset_at_the_very_byte(limit: int) -> None:
    async with connected(to_server=Faults(reset_at=limit)) as ends:
        ends.to_server.write(bytes(limit + 1000))
        assert await gone(ends.from_client, most=limit)
        assert ends.proxy.newest.to_server.passed == limit


async def test_a_connection_without_bytes_is_killed() -> None:
    async with connected(idle_kill_s=0.2) as ends:
        for _ in range(5):
            await asyncio.sleep(0.1)
            ends.to_server.write(b".")
        assert await ends.from_client.readexactly(5) == b"....."
        assert await gone(ends.from_server)


async def test_a_server_that_does_not_listen_ends_the_connection() -> None:
    async with connected() as ends:
        port = ends.proxy.listening_port
    async with proxying(f"ws://127.0.0.1:{port}/") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.listening_port)
        await gone(reader)
        writer.close()
        assert proxy.connections == []


async def test_an_address_without_a_port_is_refused() -> None:
    with pytest.raises(ValueError, match="host and port"):
        async with proxying("ws://example/"):
            pass
