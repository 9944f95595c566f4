"""A data channel as delivery sees it: before it is open, when it is full, and at its end."""

from __future__ import annotations

import asyncio
import json

import pytest

from counterpoint.serving.webrtc.link import HIGH_WATER, ChannelLink


class FakeChannel:
    most_bytes = 100

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.waiting = 0
        self.closing = False

    def send(self, text: str) -> None:
        self.sent.append(text)

    def buffered(self) -> int:
        return self.waiting

    def close(self) -> None:
        self.closing = True


class End:
    def __init__(self, close_timeout_s: float = 5.0) -> None:
        self.hung_up = 0
        self.channel = FakeChannel()
        self.link = ChannelLink(self._hang_up, close_timeout_s)

    def _hang_up(self) -> None:
        self.hung_up += 1


async def test_what_is_written_early_is_sent_in_order_once_the_channel_is_open() -> None:
    end = End()
    end.link.write([b"one", b"two"])
    assert end.link.buffered() == 6
    end.link.opened(end.channel)
    end.link.write([b"three"])
    assert end.channel.sent == ["one", "two", "three"]
    assert end.link.buffered() == 0


async def test_a_full_channel_holds_the_writer_back() -> None:
    end = End()
    end.link.opened(end.channel)
    end.channel.waiting = HIGH_WATER + 1
    draining = asyncio.create_task(end.link.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    end.channel.waiting = 0
    end.link.drained()
    await draining


async def test_a_loss_is_told_to_whoever_waits_and_to_whoever_asks_later() -> None:
    end = End()
    end.link.opened(end.channel)
    end.channel.waiting = HIGH_WATER + 1
    draining = asyncio.create_task(end.link.drain())
    await asyncio.sleep(0)
    end.link.lost()
    with pytest.raises(ConnectionResetError):
        await draining
    with pytest.raises(ConnectionResetError):
        await end.link.drain()
    end.link.write([b"late"])
    assert end.channel.sent == []
    assert end.link.buffered() == 0


async def test_a_close_waits_for_the_channel_and_then_hangs_up() -> None:
    end = End()
    end.link.opened(end.channel)
    closing = asyncio.create_task(end.link.close(1000))
    await asyncio.sleep(0)
    assert end.channel.closing
    assert not closing.done()
    end.link.lost()  # as the call does when the channel is closed
    await closing


async def test_a_peer_that_does_not_close_is_hung_up_on() -> None:
    end = End(close_timeout_s=0.01)
    end.link.opened(end.channel)
    await end.link.close(1000)
    assert end.hung_up == 1
    end.link.abort()
    assert end.hung_up == 1


async def test_a_channel_that_never_opened_is_closed_at_once() -> None:
    end = End()
    end.link.write([b"unheard"])
    await end.link.close(1000)
    assert end.hung_up == 1


async def test_a_message_that_the_peer_cannot_take_is_an_error_under_its_number() -> None:
    """Before and after the channel is open: the peer would close it, and again at every replay."""
    end = End()
    large = json.dumps({"type": "large", "event_id": "event_7", "x": "x" * 100, "server_event_seq": 7})
    end.link.write([large.encode(), b"{}"])
    end.link.opened(end.channel)
    apology, small = end.channel.sent
    error = json.loads(apology)
    assert (error["type"], error["event_id"], error["server_event_seq"]) == ("error", "event_7", 7)
    assert error["error"]["code"] == "unsupported"
    assert small == "{}"
