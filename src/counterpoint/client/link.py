"""One session's line to the server: connects, reads, writes, and takes up again what was interrupted.

Owns: the connection of the moment, reading, which ends are final, dialling again.
Does not own: what is said and what events mean (``session``), sending (``writer``), numbers (``inbox``,
``outbox``).
Here because: everything above it can behave as if the line had never been cut.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from counterpoint.errors import ClientError, ConnectionLost, ServerRefused, SessionEnded
from counterpoint.protocol.codes import ERROR_CLASSES, CloseCode, ErrorClass, ErrorCode

from . import handshake
from .backoff import Retries
from .event import DISCONNECTED, MALFORMED, Event, notice, read_event, text_of
from .inbox import Inbox
from .options import CloseReason, Options, ResumePoint
from .outbox import Frame, Outbox
from .transport import BROKEN, Closed, Dial, Transport, UpgradeRefused
from .writer import SLICE_S, Writer

#: After its last event the server closes the connection; it need not be waited for longer.
_LAST_CLOSE_S = 2.0
#: When the server names no time after which refused input may be sent again.
_RETRY_MS = 250

#: Ends of a session that the program, or the model, wanted.
_WANTED_ENDS = ("client_closed", "model_closed")
#: A resume refused with one of these may succeed later.
_TEMPORARY = frozenset(code for code, kind in ERROR_CLASSES.items() if kind is not ErrorClass.INVALID_REQUEST)
_HTTP_FINAL = (400, 401, 403, 404)


class Link:
    """``deliver(event)`` gets every event once, in order; ``ended(error)`` is called once, None: as wanted.

    Neither may raise or block. Without ``extended`` nothing is numbered and a lost connection is the end.
    """

    def __init__(
        self,
        dial: Dial,
        options: Options,
        *,
        extended: bool,
        deliver: Callable[[Event], None],
        ended: Callable[[ClientError | None], None],
        random: Callable[[], float] = random.random,
    ) -> None:
        self._dial = dial
        self._options = options
        self._extended = extended
        self._deliver = deliver
        self._ended = ended
        self._inbox = Inbox(interval_s=options.ack_interval_s, every=options.ack_events)
        self._outbox = Outbox(numbered=extended, outage_audio_s=options.outage_audio_s)
        heartbeat_s = options.heartbeat_s if extended else None
        self._writer = Writer(self._inbox, self._outbox, heartbeat_s=heartbeat_s, notify=deliver)
        self._retries = Retries(options.backoff, random)
        self._loop = asyncio.get_running_loop()
        self._transport: Transport | None = None  #: None while there is no connection
        self._session_id = ""
        self._token = ""
        self._over: str | None = None  #: why the server ended the session, once it said so
        self._task: asyncio.Task[None] | None = None
        self._finished = False
        self._error: ClientError | None = None
        self._leaving: CloseCode | None = None  #: the program closes the connection, with this code
        #: How the newest connection ended; None while one is there.
        self.close_reason: CloseReason | None = None

    @property
    def resume_point(self) -> ResumePoint | None:
        """None if the server offers no resume."""
        if not self._token:
            return None
        return ResumePoint(self._session_id, self._token, self._inbox.cursor)

    # ------------------------------------------------------------------ for the session

    async def open(self, config: dict[str, Any], point: ResumePoint | None) -> None:
        """One attempt. Raises ``ServerRefused`` or ``ConnectionLost``."""
        opening = handshake.open_extended(config) if self._extended else handshake.open_stock()
        if point is not None:
            self._inbox.cursor = point.server_event_seq
            opening = handshake.resume(point, self._options.replay)
        try:
            await self._connect(opening)
        except TimeoutError as error:
            raise ConnectionLost("the server did not answer in time") from error
        except Closed as closed:
            raise ConnectionLost(f"no session: {closed}", code=closed.code) from closed
        except UpgradeRefused as refused:
            raise _refusal_by_http(refused) from None
        self._task = asyncio.create_task(self._run(), name="counterpoint client")

    def submit(self, frame: Frame) -> None:
        """Say it, as soon as there is a connection. Raises what the session ended with, if it has."""
        self.check()
        self._writer.say(frame)

    async def room(self) -> None:
        """Wait while too much waits to be sent. Audio is never waited for during an outage."""
        await self._writer.room()
        self.check()

    def check(self) -> None:
        """Raise what the session ended with, if it has."""
        if self._finished or self._leaving is not None:
            raise self.outcome

    @property
    def outcome(self) -> ClientError:
        """What to tell those who still want something of a session that is over for this client."""
        if self._error is not None:
            return self._error
        if self._leaving is CloseCode.GOING_AWAY:
            return ConnectionLost("this client has left the session", code=self._leaving)
        return SessionEnded(self._over or "client_closed")

    def forget_audio(self) -> None:
        """Audio that the server has not taken need not reach it."""
        self._outbox.forget_audio()

    def holds(self, event_id: str) -> bool:
        """Whether the server may not have that event yet."""
        return self._outbox.holds(event_id)

    async def close(self) -> None:
        """End the session and leave. Without a connection the server cannot be told: the session expires."""
        if self._leaving is not None:
            await self._done()
            return
        try:
            if self._transport is not None and self._extended and not self._finished:
                self.submit(Frame.of("close", {"type": "session.close"}))
                self._leaving = CloseCode.NORMAL
                await self._done(self._options.close_timeout_s)
        finally:
            await self.leave(CloseCode.NORMAL)

    async def leave(self, code: CloseCode) -> None:
        """Close the connection: 1000 ends the session, 1001 leaves it for a resume (wire, section 1)."""
        self._leaving = self._leaving or code
        await self._hang_up(self._leaving)
        if self._task is not None:
            self._task.cancel()
        await self._done()
        self._finish(None)

    async def _done(self, timeout_s: float | None = None) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout_s)

    # ------------------------------------------------------------------ connecting

    async def _connect(self, opening: handshake.Opening) -> None:
        async with asyncio.timeout(self._options.handshake_timeout_s):
            transport = await self._dial()
            try:
                event = await handshake.shake_hands(transport, opening, self._deliver)
            except BaseException:
                resuming = opening.awaited == "session.resumed"
                await transport.close(CloseCode.GOING_AWAY if resuming else CloseCode.NORMAL)
                raise
        self._attach(transport, event)

    def _attach(self, transport: Transport, event: Event) -> None:
        now = self._loop.time()
        self._transport = transport
        self.close_reason = None
        self._session_id = event.string("session_id") or text_of(event.object("session"), "id")
        token = event.data.pop("resume_token", "")  # it must not travel on, into some log
        self._token = token if self._extended and isinstance(token, str) else ""
        self._retries.connected(now)
        if event.type == "session.resumed":
            self._outbox.resume(event.integer("last_client_event_seq") or 0)
            self._inbox.acknowledge_at(now)
        self._deliver(event)

    async def _reconnect(self) -> ClientError | None:
        """Until there is a connection; an error: there will be none."""
        while (wait := self._retries.next_wait(self._loop.time())) is not None:
            await asyncio.sleep(wait)
            point = self.resume_point
            assert point is not None
            try:
                await self._connect(handshake.resume(point, self._options.replay))
            except TimeoutError:
                pass
            except Closed as closed:
                if _is_final(closed.code):
                    return _lost(str(closed), closed.code)
            except UpgradeRefused as refused:
                if refused.status in _HTTP_FINAL:
                    return _lost(str(refused), None)
            except ServerRefused as refusal:
                if refusal.code not in _TEMPORARY:
                    return _lost(str(refusal), CloseCode.REFUSED, refusal)
            else:
                return None
        assert self.close_reason is not None
        return _lost(f"gave up after {self._options.backoff.give_up_s:g} s", self.close_reason.code)

    # ------------------------------------------------------------------ the life of the line

    async def _run(self) -> None:
        error: ClientError | None = ConnectionLost("the client failed")
        try:
            error = await self._live()
        finally:
            await self._hang_up(self._leaving or CloseCode.GOING_AWAY)
            self._finish(None if self._leaving else error)

    async def _live(self) -> ClientError | None:
        while True:
            closed = await self._converse()
            self._note_close(closed)
            self._retries.lost(self._loop.time())
            self._writer.disconnect()
            # Never 1000: on a link that only seemed dead it might arrive, and end the session.
            await self._hang_up(CloseCode.GOING_AWAY)
            if self._over is not None:
                return None if self._over in _WANTED_ENDS else SessionEnded(self._over)
            if self._leaving is not None or closed.code == CloseCode.NORMAL:
                return None
            if not self._token or _is_final(closed.code):
                return _lost(str(closed), closed.code)
            self._deliver(notice(DISCONNECTED, code=closed.code, reason=closed.reason))
            if (error := await self._reconnect()) is not None:
                return error

    def _note_close(self, closed: Closed) -> None:
        code = closed.code
        if self._leaving is not None and code == BROKEN:
            code = self._leaving  # it was this side that ended it
        ended = self._over is not None or code in (CloseCode.NORMAL, CloseCode.REFUSED)
        self.close_reason = CloseReason(code, closed.reason, resumable=bool(self._token) and not ended)

    async def _hang_up(self, code: CloseCode) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close(code)

    def _finish(self, error: ClientError | None) -> None:
        if self._finished:
            return
        self._finished = True
        self._error = error
        if self.close_reason is None:
            self._note_close(Closed(BROKEN))
        self._writer.stop()
        self._ended(error)

    async def _converse(self) -> Closed:
        """Read and write until the connection ends."""
        transport = self._transport
        assert transport is not None
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(self._writer.run(transport))
            closed = await self._read(transport)
            writing.cancel()
        return closed

    # ------------------------------------------------------------------ reading

    async def _read(self, transport: Transport) -> Closed:
        yielded_at = self._loop.time()
        try:
            while self._over is None:
                self._take(await transport.receive())
                if self._loop.time() - yielded_at > SLICE_S:
                    await asyncio.sleep(0)
                    yielded_at = self._loop.time()
            async with asyncio.timeout(_LAST_CLOSE_S):
                while True:
                    await transport.receive()
        except Closed as closed:
            return closed
        except TimeoutError:
            return Closed(BROKEN, "the server left the connection open")

    def _take(self, frame: str | bytes) -> None:
        try:
            event = read_event(frame)
        except ValueError as error:
            self._deliver(notice(MALFORMED, reason=str(error)))
            return
        ack_at = self._inbox.ack_at
        if self._inbox.accept(event, self._loop.time()):
            self._heed(event)
            self._deliver(event)
        if self._inbox.ack_at != ack_at:
            self._writer.wake()

    def _heed(self, event: Event) -> None:
        match event.type:
            case "session.input_ack":
                self._outbox.acknowledge(event.integer("client_event_seq") or 0)
            case "session.closed" | "session.expired":
                self._over = event.string("reason") or "closed"
            case "error":
                self._heed_error(event.object("error"))
            case _:
                pass

    def _heed_error(self, error: dict[str, Any]) -> None:
        """Two errors are about numbers and not about what was said: the frames are sent again."""
        match error.get("code"):
            case ErrorCode.INPUT_BACKPRESSURE:
                retry = error.get("retry_after_ms")
                retry_s = (retry if isinstance(retry, int) else _RETRY_MS) / 1000
                self._outbox.refuse(text_of(error, "event_id"), self._loop.time() + retry_s)
            case ErrorCode.CLIENT_EVENT_GAP:
                expected = error.get("expected")
                if isinstance(expected, int):
                    self._outbox.expect(expected)
            case _:
                return
        self._writer.wake()


def _is_final(code: int) -> bool:
    """Ends after which no connection is tried: closed, refused, or taken over (wire contract, section 1)."""
    return code in (CloseCode.NORMAL, CloseCode.REFUSED) or 4000 <= code < 5000


def _lost(what: str, code: int | None, cause: ServerRefused | None = None) -> ConnectionLost:
    error = ConnectionLost(f"the connection was lost and cannot be resumed: {what}", code=code)
    error.__cause__ = cause
    return error


def _refusal_by_http(refused: UpgradeRefused) -> ServerRefused:
    code = ErrorCode.INVALID_API_KEY if refused.status == 401 else f"http_{refused.status}"
    return ServerRefused(code, f"the server answered the upgrade with {refused}")
