"""One live session and the connections that come and go: everything between a socket and its machine.

Owns: attaching, detaching and replacing connections, what a connection may say, the session's outbox.
Does not own: which sessions exist (``runtime.manager``), the machine's effects (``runtime.runner``), generations
and retained output (``delivery``).
Here because: the session outlives its connections; this is where the two meet, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from counterpoint.delivery.attachment import Attachments, Held, LeasePort, Takeover
from counterpoint.delivery.credential import ResumeCredential
from counterpoint.delivery.cursor import Cursor, ReplayPolicy
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.writer import Link, Loss, Writer
from counterpoint.errors import ProtocolError, ResumeRefused
from counterpoint.protocol import codec, projection
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.commands import (
    AckEvents,
    AppendAudio,
    Command,
    CommitAudio,
    Heartbeat,
    ResumeSession,
    UpdateSession,
)
from counterpoint.protocol.events import (
    Event,
    HeartbeatAcknowledged,
    InputAcknowledged,
    ReplaySummary,
    SessionCreated,
    SessionGoAway,
    SessionReplaced,
    SessionResumed,
    error_event,
)
from counterpoint.session.effects import Discard, Emit, EndSession, Reply
from counterpoint.session.inputs import Attached, CloseRequested, CommandReceived, CommandRefused, Detached
from counterpoint.session.machine import SessionMachine

from .bounds import Bounds
from .inbox import Inbox, Verdict
from .lease import Lease
from .metrics import Metrics
from .runner import Runner
from .tasks import Tasks

log = structlog.get_logger(__name__)

#: While numbered events arrive they are acknowledged at least this often (wire contract, section 2).
ACK_INTERVAL_S = 1.0
#: When a client whose input was refused for lack of room should try again.
BACKPRESSURE_RETRY_MS = 250


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a connection wants to be spoken to (wire contract, "Stock and extended connections")."""

    extended: bool = False
    beta: bool = False


class Attachment:
    """One connection of a session, as the server's read loop holds it. Harmless once it is not current."""

    def __init__(self, live: LiveSession, held: Held, writer: Writer, dialect: Dialect) -> None:
        self.live = live
        self.held = held
        self.writer = writer
        self.extended = dialect.extended

    @property
    def current(self) -> bool:
        return self.live.attachments.is_current(self.held.generation)

    def receive(self, frame: str | bytes) -> None:
        """A frame from the peer; without effect once another connection has taken over."""
        if self.current:
            self.live.receive(self, frame)

    async def room(self) -> None:
        """Return when the connection may be read: replies that it causes would find room."""
        await self.writer.room()

    def disconnected(self, code: int | None) -> None:
        """The connection ended; ``code`` is the peer's close code, None if there was no closing handshake."""
        self.live.disconnected(self, code)


class LiveSession:
    """A session from its admission to its end. ``ended(live)`` is called once, after its terminal event."""

    def __init__(
        self,
        machine: SessionMachine,
        event_log: EventLog,
        lease: Lease,
        *,
        principal: str,
        bounds: Bounds,
        metrics: Metrics,
        new_token: Callable[[], str],
        ended: Callable[[LiveSession], None],
    ) -> None:
        self.id = machine.session_id
        self.principal = principal
        self.machine = machine
        self.log = event_log
        self.lease = lease
        self.credential: ResumeCredential  # issued with the first attachment
        self.inbox = Inbox()
        self.attachments = Attachments(self._lease_given_back)
        self.tasks = Tasks(self.id)
        self.runner: Runner  # set by ``bind`` right after: the runner needs this object as its outbox
        self._bounds = bounds
        self._metrics = metrics
        self._new_token = new_token
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._current: Attachment | None = None
        #: Set by the manager while it tries to clean up again.
        self.retrying = False
        self._ack_timer: asyncio.TimerHandle | None = None

    def bind(self, runner: Runner) -> None:
        self.runner = runner

    @property
    def attached(self) -> bool:
        return self._current is not None

    # ------------------------------------------------------------------ attaching

    def open(self, link: Link, dialect: Dialect) -> Attachment:
        """The connection that opened the session: gets ``session.created`` before anything else."""
        token = self._new_token()
        self.credential = ResumeCredential.issue(token)
        held = self.attachments.attach(self.lease.generation)
        attachment = self._attach(held, link, dialect, self.log.replay(0, self._loop.time()))
        self._say(attachment, self._created(token, held), counted=False)
        self._start(attachment)
        return attachment

    async def resume(
        self, request: ResumeSession, link: Link, dialect: Dialect, principal: str, port: LeasePort | None
    ) -> Attachment:
        """Attach another connection. Raises ``ResumeRefused``, with nothing changed.

        Without a ``port`` the lease is the session's own and this does not suspend before the swap is done.
        """

        def validate() -> None:
            self._validate_resume(request, principal)

        if port is None:
            takeover = self.attachments.resume(validate, lambda lease: self.lease.resume(lease, self._loop.time()))
        else:
            takeover = await self.attachments.resume_through(port, validate)
        return self._activate(request, link, dialect, takeover)

    def _validate_resume(self, request: ResumeSession, principal: str) -> None:
        if not self.credential.verify(request.resume_token) or principal != self.principal:
            raise ResumeRefused(ErrorCode.INVALID_RESUME_TOKEN, "unknown session or wrong token")
        if not self.machine.is_open:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_EXPIRED, "the session has ended")
        self.log.replay(request.last_received_server_event_seq, self._loop.time())

    def _activate(self, request: ResumeSession, link: Link, dialect: Dialect, takeover: Takeover) -> Attachment:
        now = self._loop.time()
        self._replace(takeover)
        token = self._new_token()
        self.credential.rotate(request.resume_token, token)
        cursor = self.log.replay(
            request.last_received_server_event_seq,
            now,
            ReplayPolicy(request.replay.value),
            self.machine.played(now),
        )
        attachment = self._attach(takeover.current, link, dialect, cursor)
        if dialect.extended:
            greeting: Event = self._resumed(token, takeover.current, cursor)
        else:
            greeting = self._created(token, takeover.current)
        self._say(attachment, greeting, counted=False)
        self.inbox.reopen()
        self._start(attachment)
        return attachment

    def _replace(self, takeover: Takeover) -> None:
        old, self._current = self._current, None
        if old is None or takeover.replaced is None:
            return
        self._say(old, SessionReplaced(session_id=self.id, attachment_generation=old.held.generation), counted=False)
        old.writer.close(CloseCode.REPLACED, "replaced")
        self._metrics.connections_ended.labels("replaced").inc()

    def _attach(self, held: Held, link: Link, dialect: Dialect, cursor: Cursor) -> Attachment:
        writer = Writer(
            link,
            cursor,
            self._bounds.transport,
            extended=dialect.extended,
            beta=dialect.beta,
            lost=lambda loss: self._lost(held, loss),
            snapshot=self._snapshot,
        )
        return Attachment(self, held, writer, dialect)

    def _start(self, attachment: Attachment) -> None:
        self._current = attachment
        self.tasks.spawn("writer", attachment.writer.run())
        self.runner.post(Attached(attachment.extended))

    def _created(self, token: str, held: Held) -> SessionCreated:
        return SessionCreated(
            session=self.machine.describe(), resume_token=token, attachment_generation=held.generation
        )

    def _resumed(self, token: str, held: Held, cursor: Cursor) -> SessionResumed:
        return SessionResumed(
            session_id=self.id,
            session=self.machine.describe(),
            attachment_generation=held.generation,
            resume_token=token,
            replay=ReplaySummary(cursor.first, cursor.last, cursor.gap, cursor.dropped_audio_events),
            last_client_event_seq=self.inbox.last,
            input_audio_ms=self.machine.input_audio_ms,
        )

    def _snapshot(self, as_of: int) -> Sequence[bytes]:
        """What stands in for entries that are gone: a snapshot, or its items one by one for stock clients."""
        current = self._current
        extended = current is not None and current.extended
        events = self.machine.snapshot(as_of) if extended else self.machine.restated_items()
        return [codec.encode_body(event, self.machine.ids.event()) for event in events]

    # ------------------------------------------------------------------ detaching

    def disconnected(self, attachment: Attachment, code: int | None) -> None:
        """A close by the client with 1000 or without a code ends the session; any other end is a detach."""
        if not attachment.current:
            return
        by_client = code in (CloseCode.NORMAL, 1005)
        if by_client and self.machine.is_open:
            self.close("client_closed")
        self._detach(attachment.held, "client_closed" if by_client else "lost")

    def _lost(self, held: Held, loss: Loss) -> None:
        self._detach(held, loss.value)

    def _detach(self, held: Held, cause: str) -> None:
        dropped = self.attachments.detach(held.generation)
        if dropped is None:
            return
        self._metrics.connections_ended.labels(cause).inc()
        current, self._current = self._current, None
        if current is not None:
            current.writer.close(CloseCode.TRY_AGAIN if cause == Loss.STALLED.value else CloseCode.GOING_AWAY)
        self._lease_given_back(dropped.lease)
        if self.machine.is_open:
            self.runner.post(Detached())
            if not self.lease.resumable:
                self.close("disconnect_grace_expired")

    def _lease_given_back(self, lease: int) -> None:
        self.lease.detach(lease, self._loop.time())

    # ------------------------------------------------------------------ what a connection says

    def receive(self, attachment: Attachment, frame: str | bytes) -> None:
        """One frame of the current connection: exactly one effect or one error."""
        self.lease.touch(self._loop.time())
        try:
            command = codec.decode(frame)
        except ProtocolError as refusal:
            self._refused(refusal, refusal.client_event_seq)
            return
        match command:
            case Heartbeat():
                self.credential.prove()
                self._say(attachment, HeartbeatAcknowledged(session_id=self.id))
            case AckEvents():
                self._acknowledge(command)
            case ResumeSession():
                self._refuse(command, ErrorCode.INVALID_SESSION_RESUME, "a resume is the first event of a connection")
            case _:
                self._numbered(attachment, command, len(frame))

    def _acknowledge(self, command: AckEvents) -> None:
        try:
            self.log.acknowledge(command.server_event_seq)
        except ProtocolError as refusal:
            self._refuse(command, refusal.code, refusal.message, param=refusal.param)
        else:
            self.credential.prove()

    def _refuse(self, command: Command, code: str, message: str, *, param: str | None = None) -> None:
        """Refuse a command that no session ever sees: about a frame, not about the conversation."""
        refusal = ProtocolError(code, message, param=param, event_id=command.event_id)
        self.runner.post(CommandRefused(refusal))

    def _numbered(self, attachment: Attachment, command: Command, cost: int) -> None:
        """Exactly-once input first, then room, then the machine."""
        number = command.client_event_seq
        if number is not None and not self._is_next(command, number):
            return
        shortage = self._shortage(command)
        if shortage is not None:
            self.runner.post(CommandRefused(shortage, number))
            return
        if isinstance(command, UpdateSession) and command.extensions:
            attachment.extended = attachment.writer.extended = True
        if number is not None:
            self.inbox.use()
            self._schedule_ack()
        self.runner.post(CommandReceived(command, attachment.extended, cost))

    def _is_next(self, command: Command, number: int) -> bool:
        match self.inbox.judge(number):
            case Verdict.ACCEPT:
                return True
            case Verdict.GAP:
                gap = ProtocolError(
                    ErrorCode.CLIENT_EVENT_GAP,
                    f"expected client_event_seq {self.inbox.expected}",
                    param="client_event_seq",
                    event_id=command.event_id,
                    expected=self.inbox.expected,
                )
                self.runner.post(CommandRefused(gap, number))
            case Verdict.DUPLICATE:
                self._schedule_ack()
            case Verdict.AFTER_GAP:
                pass
        return False

    def _refused(self, refusal: ProtocolError, number: int | None) -> None:
        """A frame that is no command: its number, where it could be read, is used by the error."""
        if number is not None:
            if self.inbox.judge(number) is not Verdict.ACCEPT:
                return
            self.inbox.use()
            self._schedule_ack()
        self.runner.post(CommandRefused(refusal, number))

    def _shortage(self, command: Command) -> ProtocolError | None:
        """Why there is no room for ``command`` now; bytes and turns are counted before anything is applied."""
        message = None
        if isinstance(command, AppendAudio):
            if self.machine.held_input_bytes + len(command.audio) > self._bounds.limits.max_pending_input_bytes:
                message = f"limits.max_pending_input_bytes: more than {self._bounds.limits.max_pending_input_bytes} bytes of input wait"
        elif isinstance(command, CommitAudio) and self.machine.open_turns >= self._bounds.limits.max_pending_turns:
            message = f"limits.max_pending_turns: {self._bounds.limits.max_pending_turns} turns wait"
        if message is None:
            return None
        return ProtocolError(
            ErrorCode.INPUT_BACKPRESSURE,
            message,
            event_id=command.event_id,
            retry_after_ms=BACKPRESSURE_RETRY_MS,
        )

    def _schedule_ack(self) -> None:
        if self._ack_timer is None:
            self._ack_timer = self._loop.call_later(ACK_INTERVAL_S, self._send_ack)

    def _send_ack(self) -> None:
        self._ack_timer = None
        if self._current is not None and self.inbox.last:
            acknowledged = InputAcknowledged(
                client_event_seq=self.inbox.last, input_audio_ms=self.machine.input_audio_ms
            )
            self._say(self._current, acknowledged)

    def _say(self, attachment: Attachment, event: Event, *, counted: bool = True) -> None:
        """A connection-scoped event, in the connection's own dialect; dropped if it has no word for it."""
        body = codec.encode_body(event, self.machine.ids.event())
        frame = projection.connection_frame(kind_of(event), body, extended=attachment.extended)
        if frame is not None:
            attachment.writer.send(frame, counted=counted)

    # ------------------------------------------------------------------ runner's outbox

    def emit(self, effect: Emit) -> None:
        now = self._loop.time()
        self.lease.touch(now)
        self.log.record(
            kind_of(effect.event),
            codec.encode_body(effect.event, effect.event_id),
            now=now,
            duplex=b"" if effect.duplex is None else codec.encode_duplex(effect.duplex),
            tag=effect.tag,
            epoch=effect.epoch,
        )

    def reply(self, effect: Reply) -> None:
        if self._current is not None:
            self._say(self._current, effect.event)

    def discard(self, effect: Discard) -> None:
        self.log.discard(effect.response_id, effect.items)

    def pending_bytes(self) -> int:
        return self.log.pending_bytes

    # ------------------------------------------------------------------ the end

    def go_away(self, reason: str, deadline_ms: int) -> None:
        if self._current is not None:
            self._say(self._current, SessionGoAway(reason=reason, deadline_ms=deadline_ms))

    def expire(self, now: float) -> None:
        """End the session if its lease ran out; an answer under way counts as activity."""
        if self.machine.busy:
            self.lease.touch(now)
        reason = self.lease.expired(now)
        if reason is not None:
            self.close(reason)

    def close(self, reason: str) -> None:
        """End the session; ``reason`` is one of ``session.closed`` or ``session.expired``."""
        if self.lease.finish():
            self.runner.post(CloseRequested(reason))

    def machine_ended(self, effect: EndSession) -> None:
        """The machine said its last word: flush it, close the connection, tell the manager."""
        self.lease.finish()
        if self._ack_timer is not None:
            self._ack_timer.cancel()
        current, self._current = self._current, None
        self.attachments.close()
        if current is not None:
            current.writer.close(effect.close_code, effect.reason, flush_log=True)
        self._metrics.sessions_ended.labels(effect.reason).inc()
        self._ended(self)

    async def finish(self) -> None:
        """Wait for the last frames (bounded by the writer), then hold nothing any more."""
        await self.tasks.join()
        await self.runner.stop()
        self.log.close()
