"""What the system tells of a socket, and what it tells of one that is closed."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from counterpoint.serving.link import SocketPulse

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_closed_socket_tells_nothing_and_breaks_no_keepalive(new_loop: object) -> None:
    """Its keepalive may look once more; uvloop then raises what no socket of the library does."""
    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        runner.run(_look_at_a_closed_socket())


async def _look_at_a_closed_socket() -> None:
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
    pulse = SocketPulse(transport.get_extra_info("socket"), lambda: 0, lambda: None)
    transport.abort()
    await asyncio.sleep(0.01)
    assert (pulse.seconds_since_bytes(), pulse.buffered()) == (None, 0)
    theirs.close()
