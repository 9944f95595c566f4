"""Finding out that a peer is gone although its connection says nothing.

Owns: when to ping and when silence means death (wire contract, sections 3 and 11).
Does not own: what follows (an ordinary detach, by ``serving.connection``) nor the stuck reader
(``delivery.writer`` watches bytes that do not leave).
Here because: a pong waits behind whatever the peer or we are sending; counting pongs kills busy connections.
Any byte from the peer is life, and while our own bytes leave nothing is concluded from silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

#: The system tells the age of the newest byte in its own ticks, up to 10 ms long, and the loop's clock stands
#: still while it works: an answer that came at once may look a little older than its ping.
CLOCK_SLACK_S = 0.02

#: A silent peer is looked at so many times within the timeout: buffers are filled again as they drain, and in
#: between it shows that they did.
LOOKS = 8


class Pulse(Protocol):
    """What a keepalive needs to know of a link."""

    def ping(self) -> None: ...

    def buffered(self) -> int:
        """Bytes of ours that the other side has not taken yet."""
        ...

    def seconds_since_bytes(self) -> float | None: ...


class Keepalive:
    """Pings every ``interval_s``; calls ``dead`` once when no byte came for ``timeout_s`` after a ping.

    ``timeout_s`` 0 pings for the sake of proxies on the way and concludes nothing.
    """

    def __init__(self, link: Pulse, interval_s: float, timeout_s: float, dead: Callable[[], None]) -> None:
        self._link = link
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._dead = dead
        self._loop = asyncio.get_running_loop()
        self._last_message = self._loop.time()
        self._pinged_at = 0.0
        #: When silence means death, unless bytes of ours leave until then.
        self._dead_at = 0.0
        self._last_buffered = 0
        self._ping_timer = self._loop.call_later(interval_s, self._ping)
        self._look_timer: asyncio.TimerHandle | None = None

    def message_received(self) -> None:
        """A whole message came; the only sign of life where the system does not tell of bytes."""
        self._last_message = self._loop.time()

    def stop(self) -> None:
        self._ping_timer.cancel()
        if self._look_timer is not None:
            self._look_timer.cancel()

    def _ping(self) -> None:
        self._ping_timer = self._loop.call_later(self._interval_s, self._ping)
        if self._timeout_s and self._look_timer is None:
            self._pinged_at = self._loop.time()
            self._dead_at = self._pinged_at + self._timeout_s
            self._last_buffered = self._link.buffered()
            self._look_later()
        self._link.ping()

    def _look_later(self) -> None:
        self._look_timer = self._loop.call_later(self._timeout_s / LOOKS, self._look)

    def _look(self) -> None:
        self._look_timer = None
        now = self._loop.time()
        if self._age() <= now - self._pinged_at + CLOCK_SLACK_S:
            return
        buffered = self._link.buffered()
        if buffered < self._last_buffered:
            self._dead_at = now + self._timeout_s
        self._last_buffered = buffered
        if now < self._dead_at:
            self._look_later()
        else:
            self.stop()
            self._dead()

    def _age(self) -> float:
        age = self._link.seconds_since_bytes()
        return self._loop.time() - self._last_message if age is None else age
