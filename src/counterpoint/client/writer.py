"""What is sent next on a connection, and when.

Owns: acknowledging events, heartbeats, sending what the outbox holds, making a hasty program wait.
Does not own: which connection (``link``), what is kept and sent again (``outbox``).
Here because: it is the half of a connection that has a clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from .event import AUDIO_DROPPED, Event, notice
from .inbox import Inbox
from .outbox import Frame, Outbox
from .transport import Closed, Transport

#: Longest that one task of the client goes on without letting the program run.
SLICE_S = 0.005


class Writer:
    """Lives as long as the session; ``run`` serves one connection. No ``heartbeat_s``: official API only."""

    def __init__(
        self, inbox: Inbox, outbox: Outbox, *, heartbeat_s: float | None, notify: Callable[[Event], None]
    ) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._heartbeat_s = heartbeat_s
        self._heartbeat_at = 0.0
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._stopped = False

    # ------------------------------------------------------------------ for the program

    def say(self, frame: Frame) -> None:
        self._outbox.put(frame)
        self._woken.set()

    async def room(self) -> None:
        """Wait while too much waits to be sent. Audio of an outage is never waited for."""
        while self._outbox.full and not self._stopped:
            self._room.clear()
            await self._room.wait()

    # ------------------------------------------------------------------ for the link

    def wake(self) -> None:
        """Something may have become due."""
        self._woken.set()

    def disconnect(self) -> None:
        self._outbox.disconnect()
        self._room.set()

    def stop(self) -> None:
        """Nothing will be sent any more: nobody needs to wait for room."""
        self._stopped = True
        self._room.set()

    async def run(self, transport: Transport) -> None:
        """Until the connection ends; how it ended is for its reader to learn."""
        yielded_at = self._loop.time()
        if self._heartbeat_s is not None:
            self._heartbeat_at = yielded_at + self._heartbeat_s
        try:
            while True:
                frame = self._next_frame(self._loop.time())
                if frame is None:
                    await self._sleep()
                else:
                    await transport.send(frame)
                    self._room.set()
                if self._loop.time() - yielded_at > SLICE_S:
                    await asyncio.sleep(0)
                    yielded_at = self._loop.time()
        except Closed:
            return

    def _next_frame(self, now: float) -> bytes | None:
        if self._heartbeat_s is not None:
            number = self._inbox.take_acknowledgement(now)
            if number is not None:
                return msgspec.json.encode({"type": "session.event_ack", "server_event_seq": number})
            if now >= self._heartbeat_at:
                self._heartbeat_at = now + self._heartbeat_s
                return msgspec.json.encode({"type": "session.heartbeat"})
        return self._outbox.take(now)

    async def _sleep(self) -> None:
        """Until there is something to send."""
        dropped_ms = self._outbox.take_dropped_ms()
        if dropped_ms:
            self._notify(notice(AUDIO_DROPPED, audio_ms=dropped_ms))
        self._woken.clear()
        if self._heartbeat_s is None:
            await self._woken.wait()
            return
        deadlines = (self._heartbeat_at, self._inbox.ack_at, self._outbox.held_until)
        timer = self._loop.call_at(min(at for at in deadlines if at is not None), self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
