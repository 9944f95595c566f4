"""What the client says, until the server has it: exactly once, in order, over any number of connections.

Owns: numbering, what is kept until acknowledged, what is sent again, what an outage may cost.
Does not own: sockets (``link``), what is said (``session``), acknowledging events (``inbox``).
Here because: the kernel takes bytes that never arrive, so what was handed to a socket proves nothing
(case A-13); and during an outage fresh audio is worth more than stale (case N-03).

A frame is numbered in the moment it is first handed to a connection, never before: so what is dropped
before that leaves no hole in a series that must be dense (wire contract, section 2).
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec
import pybase64

#: What waits to be sent for the first time; beyond it ``full`` asks the program to wait.
ROOM_BYTES = 256 << 10
ROOM_FRAMES = 1024
#: What was sent and not acknowledged. Beyond it the oldest audio is forgotten, and lost if it must be sent
#: again: a server with a store acknowledges audio only when its turn is committed.
KEPT_BYTES = 32 << 20

_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True, eq=False)
class Frame:
    """An event of the client's. ``head`` is its JSON without the closing brace, without ids and audio."""

    event_id: str
    head: bytes
    pcm: bytes | None = None  #: audio of an append
    audio_us: int = 0  #: how many microseconds of it there are to lose
    number: int | None = None

    @classmethod
    def of(cls, event_id: str, body: dict[str, Any]) -> Frame:
        """``body`` may hold bytes, which become Base64. Raises TypeError for what is no JSON."""
        return cls(event_id, _ENCODER.encode(body)[:-1])

    @property
    def size(self) -> int:
        return len(self.head) + len(self.pcm or b"")

    def encode(self) -> bytes:
        parts = [self.head, b',"event_id":', _ENCODER.encode(self.event_id)]
        if self.number is not None:
            parts.append(b',"client_event_seq":%d' % self.number)
        if self.pcm is not None:
            parts += (b',"audio":"', pybase64.b64encode(self.pcm), b'"')
        return b"".join((*parts, b"}"))


class Outbox:
    """Frames in with ``put``, out with ``take``. Without ``numbered`` what is sent is forgotten."""

    def __init__(self, *, numbered: bool, outage_audio_s: float, kept_bytes: int = KEPT_BYTES) -> None:
        self._numbered = numbered
        self._outage_audio_us = outage_audio_s * 1e6
        self._most_kept_bytes = kept_bytes
        self._unsent: deque[Frame] = deque()
        self._unsent_audio_us = 0
        self._unsent_bytes = 0
        self._kept: deque[Frame] = deque()
        self._kept_bytes = 0
        self._last = 0  #: the newest number that was given
        self._next = 1  #: the number to be sent next; at most ``_last`` while something is sent again
        self._forgotten = 0  #: audio up to this number is forgotten
        self._dropped_us = 0
        self._outage = False
        self._held_until: float | None = None

    # ------------------------------------------------------------------ in

    @property
    def full(self) -> bool:
        """Whether the program should wait before it says more. Audio of an outage never makes it wait."""
        audio_waits = not self._outage and self._unsent_bytes > ROOM_BYTES
        return audio_waits or len(self._unsent) > ROOM_FRAMES

    def put(self, frame: Frame) -> None:
        self._unsent.append(frame)
        self._unsent_audio_us += frame.audio_us
        self._unsent_bytes += frame.size
        if self._outage:
            self._drop_stale()

    def forget_audio(self) -> None:
        """The program clears the input: audio that the server has not taken need not reach it before that.

        Else input for which there is no room would bar the way for the very event that makes room.
        """
        for frame in self._unsent:
            if frame.pcm is not None:
                self._count_sent(frame)
        self._unsent = deque(frame for frame in self._unsent if frame.pcm is None)
        if self._held_until is not None:
            for frame in itertools.islice(self._kept, self._next - self._first_kept, None):
                self._blank(frame)
                frame.audio_us = 0

    def _drop_stale(self) -> None:
        while self._unsent_audio_us > self._outage_audio_us:
            index = next(i for i, frame in enumerate(self._unsent) if frame.audio_us)
            frame = self._unsent[index]
            del self._unsent[index]
            self._count_sent(frame)
            self._dropped_us += frame.audio_us

    def _count_sent(self, frame: Frame) -> None:
        self._unsent_audio_us -= frame.audio_us
        self._unsent_bytes -= frame.size

    # ------------------------------------------------------------------ out

    @property
    def held_until(self) -> float | None:
        """Nothing is to be sent before this time: the server asked for patience."""
        return self._held_until

    def take(self, now: float) -> bytes | None:
        """The bytes to send now, if there are any."""
        if self._held_until is not None:
            if now < self._held_until:
                return None
            self._held_until = None
        if self._next <= self._last:
            return self._take_again()
        return self._take_first() if self._unsent else None

    def _take_again(self) -> bytes:
        frame = self._kept[self._next - self._first_kept]
        if not frame.pcm:
            self._dropped_us += frame.audio_us
        self._next += 1
        return frame.encode()

    def _take_first(self) -> bytes:
        frame = self._unsent.popleft()
        self._count_sent(frame)
        if self._numbered:
            self._last += 1
            self._next = self._last + 1
            frame.number = self._last
            self._kept.append(frame)
            self._kept_bytes += frame.size
            self._forget_oldest_audio()
        return frame.encode()

    @property
    def _first_kept(self) -> int:
        return self._last - len(self._kept) + 1

    def _forget_oldest_audio(self) -> None:
        while self._kept_bytes > self._most_kept_bytes and self._forgotten < self._last:
            self._forgotten = max(self._forgotten + 1, self._first_kept)
            frame = self._kept[self._forgotten - self._first_kept]
            self._blank(frame)

    def _blank(self, frame: Frame) -> None:
        """Keep the number, which must not be missing, and let the audio go: an empty append does nothing."""
        if frame.pcm:
            self._kept_bytes -= len(frame.pcm)
            frame.pcm = b""

    # ------------------------------------------------------------------ what the server says of it

    def acknowledge(self, number: int) -> None:
        """The server has everything up to ``number``."""
        while self._kept and self._first_kept <= number:
            self._kept_bytes -= self._kept.popleft().size
        self._next = max(self._next, min(number, self._last) + 1)

    def holds(self, event_id: str) -> bool:
        """Whether the server may not have this frame yet."""
        return any(frame.event_id == event_id for frame in (*self._kept, *self._unsent))

    def refuse(self, event_id: str, until: float) -> None:
        """No room for that frame, its number was not used: after ``until`` send from it on again."""
        for frame in self._kept:
            if frame.event_id == event_id and frame.number is not None:
                self._next = frame.number
                self._held_until = until
                return

    def expect(self, number: int) -> None:
        """The server waits for ``number``: send from there again."""
        if self._first_kept <= number <= self._last:
            self._next = number

    def disconnect(self) -> None:
        self._outage = True
        self._held_until = None
        self._drop_stale()

    def resume(self, last_number: int) -> None:
        """A connection is there; ``last_number`` is the newest that the server has used.

        What it lacks is numbered from there: the same numbers as before, unless the server lost some.
        """
        self.acknowledge(last_number)
        self._outage = False
        for number, frame in enumerate(self._kept, last_number + 1):
            frame.number = number
        self._last = last_number + len(self._kept)
        self._next = last_number + 1

    def take_dropped_ms(self) -> int:
        """Milliseconds of audio that will never be sent, since the last call."""
        dropped, self._dropped_us = self._dropped_us, 0
        return dropped // 1000
