"""What one connection is sent, in order, as fast as it takes it.

Owns: one task per attachment: batches from the log, connection-scoped events, back-pressure, the last frames.
Does not own: framing and buffers (``serving``, behind ``Link``), what the log holds, who is attached.
Here because: one writer per connection is what makes wire order and numbers agree (case I-13).

The task sleeps on a future that ``wake`` resolves; there is no task, timer or lock per event. ``close`` takes
effect in the moment it is called, so that a successor may start at once, however stuck this connection is.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from counterpoint.limits import TransportLimits
from counterpoint.protocol import codec
from counterpoint.protocol.audio import PCM16_24K, AudioFormat
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.codes import CloseCode
from counterpoint.protocol.events import SessionSkipped
from counterpoint.protocol.projection import connection_frame, session_frame

from .cursor import Cursor
from .entries import Entry, Skipped
from .pacing import Pacing
from .player import Player
from .replies import Replies
from .watchdog import Watchdog

#: One write is about so large: what is handed to a transport counts as sent, so little is handed to it ahead.
BATCH_BYTES = 16 * 1024
BATCH_ENTRIES = 64

#: The loop gets a turn after so much, also from a connection that never pushes back: a millisecond or so of
#: work. Counted and not timed, so that a simulated run is the same every time.
TURN_ENTRIES = 256

#: A held-back entry is asked about again no sooner than this, however little is missing.
PACING_STEP_S = 0.005


class Link(Protocol):
    """The sending side of one connection. Messages go out whole and in order."""

    def write(self, frames: Sequence[bytes]) -> None:
        """Hand messages to the transport. Never blocks; does nothing once the link is closing or lost.

        Whoever reads the connection hears of its loss, and so does the next ``drain``.
        """
        ...

    async def drain(self) -> None:
        """Return when the transport takes more. Raises ``ConnectionError`` when it is lost, or aborted."""
        ...

    def buffered(self) -> int:
        """Bytes that the transport still holds."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """The closing handshake. Returns when the connection is gone, at the latest after ``abort``."""
        ...

    def abort(self) -> None:
        """End the connection now (RST)."""
        ...


class Loss(enum.Enum):
    """Why a writer gave up on its connection."""

    STALLED = "stalled"  #: it took no byte for ``transport.send_timeout_s``
    BROKEN = "lost"  #: it was lost while it was waited for


class _Phase(enum.Enum):
    """What is still sent. A phase never comes back."""

    OPEN = enum.auto()  #: everything, as it comes
    FLUSHING = enum.auto()  #: everything that there is, then the close
    CLOSING = enum.auto()  #: the connection-scoped events, then the close; the log is not touched any more
    ENDED = enum.auto()


class Writer:
    """Writes for one attachment from its ``cursor``; ``run`` is its task.

    ``lost(loss)`` is called at most once, synchronously, when the connection stalls or breaks: the caller
    detaches it. A stalled connection is closed (1013) by the writer itself. ``snapshot(as_of)`` makes the
    messages that stand in for entries that are gone. ``event_id()`` makes the ids of ``session.skipped``.
    With a ``player`` audio goes there, in the ``output_format`` of its response: an extended connection gets
    the event with an empty delta, so that its numbers have no hole, and a stock one does not get it.
    """

    def __init__(
        self,
        link: Link,
        cursor: Cursor,
        limits: TransportLimits,
        *,
        extended: bool,
        beta: bool = False,
        lost: Callable[[Loss], None],
        snapshot: Callable[[int], Sequence[bytes]],
        event_id: Callable[[], str],
        pacing: Pacing | None = None,
        player: Player | None = None,
        output_format: Callable[[str | None], AudioFormat] = lambda _: PCM16_24K,
    ) -> None:
        #: Whether the connection speaks the extensions; a client may say so at any time.
        self.extended = extended
        self._beta = beta
        self._link = link
        self._cursor = cursor
        self._close_timeout_s = limits.close_timeout_s
        self._lost = lost
        self._snapshot = snapshot
        self._event_id = event_id
        self._pacing = pacing
        self._player = player
        self._output_format = output_format
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(limits.send_timeout_s, link.buffered, self._stalled)
        self._replies = Replies()
        self._phase = _Phase.OPEN
        self._close_with: tuple[int, str] = (CloseCode.INTERNAL, "")
        self._deadline: asyncio.TimerHandle | None = None
        self._sleeping: asyncio.Future[None] | None = None
        #: ``_write_at_rest`` is due in this turn of the loop.
        self._scheduled = False
        self._room: asyncio.Future[None] | None = None
        self._turn = 0

    # ------------------------------------------------------------------ asked from outside

    def send(self, frame: bytes, *, counted: bool = True) -> bool:
        """Queue a connection-scoped message: it goes out before the next log entry. False after ``close``.

        ``counted=False`` for replies of the handshake, which are not held against the client.
        """
        if self._phase is not _Phase.OPEN:
            return False
        self._replies.put(frame, counted=counted)
        self.wake()
        return True

    @property
    def has_room(self) -> bool:
        """Whether the connection may be read: replies find room, or are not written anyway."""
        return not self._replies.full or self._phase is not _Phase.OPEN

    async def room(self) -> None:
        """Return when ``has_room``. One caller at a time."""
        while not self.has_room:
            self._room = self._loop.create_future()
            await self._room

    def wake(self) -> None:
        """Something changed: the log, the playback position. Nothing is written before the caller is done."""
        if self._sleeping is not None and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._write_at_rest)

    def close(self, code: int, reason: str = "", *, flush_log: bool = False) -> None:
        """Send what is queued, with ``flush_log`` also what the log holds, and close with ``code``.

        Without ``flush_log`` no entry is taken from this call on. Ends within ``close_timeout_s``, by a
        reset if need be. The first call decides; later ones do nothing.
        """
        if self._phase is not _Phase.OPEN:
            return
        if flush_log:
            self._phase = _Phase.FLUSHING
        else:
            self._leave_log()
        self._close_with = (code, reason)
        if self._close_timeout_s:
            self._deadline = self._loop.call_later(self._close_timeout_s, self._link.abort)
        self._tell_room()
        self.wake()

    # ------------------------------------------------------------------ the task

    async def run(self) -> None:
        """Write until the connection was closed or is lost. A cancellation resets the connection."""
        self._cursor.listen(self.wake)
        try:
            await self._write_all()
            await self._link.close(*self._close_with)
        except ConnectionError as error:
            error.__traceback__ = None  # the transport keeps it, and it leads back here: a cycle (C-14)
            self._broken()
        except BaseException:
            self._link.abort()
            raise
        finally:
            self._end()

    async def _write_all(self) -> None:
        while True:
            done = self._write_some()
            if not done:
                if self._phase is not _Phase.OPEN:
                    return
                await self._sleep()
            # Also after a sleep, which may have ended because what was written at rest did not leave.
            await self._link.drain()
            await self._let_others_run(done)

    def _write_some(self) -> int:
        """Write the replies and then some of the log. Returns how much was done; 0: nothing to do."""
        frames = self._replies.take_all()
        done = len(frames)
        if done:
            self._tell_room()
        if self._phase is not _Phase.CLOSING:
            done += self._add_entries(frames)
        if frames:
            self._link.write(frames)
            self._watchdog.wrote(frames)
        return done

    def _add_entries(self, frames: list[bytes]) -> int:
        """Append what comes next to ``frames``; returns how many things of the log that covers."""
        pacing = self._pacing if self._phase is _Phase.OPEN else None
        batch = self._cursor.take(self._loop.time(), BATCH_ENTRIES, BATCH_BYTES, pacing)
        if batch is None:
            frames += self._snapshot(self._cursor.jump())
            return 1
        player = self._player
        for next_ in batch:
            if not isinstance(next_, Entry):
                frame = self._announcement(next_)
            elif player is not None and next_.kind.audio:
                frame = self._played_by(player, next_)
            else:
                frame = self._frame(next_, next_.body)
            if frame is not None:
                frames.append(frame)
        return len(batch)

    def _frame(self, entry: Entry, body: bytes) -> bytes | None:
        return session_frame(
            entry.kind, body, entry.duplex, entry.number, extended=self.extended, beta=self._beta
        )

    def _played_by(self, player: Player, entry: Entry) -> bytes | None:
        audio, body = codec.take_audio(entry.body)
        tag = entry.tag
        assert tag is not None  # whatever belongs to an item has one
        player.play(tag, audio, self._output_format(tag.response_id))
        return self._frame(entry, body) if self.extended else None

    def _announcement(self, skipped: Skipped) -> bytes | None:
        """The message that entries are passed over; None if this connection has no word for it."""
        event = SessionSkipped(start=skipped.first, end=skipped.last, reason=skipped.reason)
        body = codec.encode_body(event, self._event_id())
        return connection_frame(kind_of(event), body, extended=self.extended, beta=self._beta)

    def _write_at_rest(self) -> None:
        """Write what there is while the task sleeps on: to wake it for one event costs more than the event.

        It is woken for all that takes time: pacing, more than one batch, a link that pushes back, the end.
        """
        self._scheduled = False
        if self._sleeping is None or self._sleeping.done():
            return
        try:
            if self._phase is _Phase.OPEN and self._pacing is None:
                self._write_some()
                if self._cursor.at_end and self._link.buffered() <= BATCH_BYTES:
                    return
        except Exception as error:  # noqa: BLE001  # the task raises it
            self._sleeping.set_exception(error)
        else:
            self._sleeping.set_result(None)

    async def _let_others_run(self, done: int) -> None:
        """Give the loop a turn when enough was done since the last one: ``drain`` need not have given any."""
        self._turn += done
        if self._turn >= TURN_ENTRIES:
            self._turn = 0
            await asyncio.sleep(0)

    async def _sleep(self) -> None:
        """Until ``wake``, or until the audio that pacing holds back may go."""
        self._sleeping = self._loop.create_future()
        wait_s = self._pacing.held_for_s() if self._pacing is not None else 0.0
        timer = self._loop.call_later(max(wait_s, PACING_STEP_S), self.wake) if wait_s else None
        try:
            await self._sleeping
        finally:
            self._sleeping = None
            if timer is not None:
                timer.cancel()

    # ------------------------------------------------------------------ the end

    def _stalled(self) -> None:
        if self._phase is _Phase.OPEN:
            self.close(CloseCode.TRY_AGAIN, "slow consumer")
            self._lost(Loss.STALLED)
        else:
            self._link.abort()

    def _broken(self) -> None:
        self._link.abort()
        if self._phase is _Phase.OPEN:
            self._leave_log()
            self._lost(Loss.BROKEN)

    def _leave_log(self) -> None:
        self._phase = _Phase.CLOSING
        self._cursor.listen(None)

    def _end(self) -> None:
        if self._phase is not _Phase.CLOSING:
            self._cursor.listen(None)
        self._phase = _Phase.ENDED
        self._watchdog.stop()
        if self._deadline is not None:
            self._deadline.cancel()
        self._tell_room()

    def _tell_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
