"""One live session and the connections that come and go: everything between a socket and its machine.

Owns: attaching, detaching and replacing connections, the session's outbox, its end.
Does not own: which sessions exist (``runtime.manager``), what a connection says (``runtime.intake``), the
machine's effects (``runtime.runner``), generations and retained output (``delivery``).
Here because: the session outlives its connections; this is where the two meet, and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from counterpoint.delivery.attachment import Attachments, Held, LeasePort, Takeover
from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.credential import ResumeCredential
from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.log import EventLog
from counterpoint.delivery.pacing import Pacing
from counterpoint.delivery.player import Player
from counterpoint.delivery.writer import Link, Loss, Writer
from counterpoint.errors import ResumeRefused
from counterpoint.plugins.contract import AudioDelta, ModelEvent, TurnEnd, Usage
from counterpoint.protocol import codec, projection
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.commands import ResumeSession
from counterpoint.protocol.events import (
    Event,
    ReplaySummary,
    SessionCreated,
    SessionGoAway,
    SessionReplaced,
    SessionResumed,
)
from counterpoint.session.effects import Discard, Emit, EndSession, Reply, Tag
from counterpoint.session.inputs import Attached, CloseRequested, Detached, Played
from counterpoint.session.machine import SessionMachine

from .bounds import Bounds
from .intake import Intake
from .lease import Lease
from .metrics import Metrics
from .runner import Runner
from .tasks import Tasks

log = structlog.get_logger(__name__)

#: What aiohttp and RFC 6455 call a closing handshake without a code.
_NO_CODE = 1005


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a connection wants to be spoken to (wire contract, "Stock and extended connections")."""

    extended: bool = False
    beta: bool = False
    player: Player | None = None  #: of the connection, where audio does not go into frames


class Attachment:
    """One connection of a session, as the server's read loop holds it. Harmless once it is not current."""

    def __init__(self, live: LiveSession, held: Held, writer: Writer, dialect: Dialect) -> None:
        self.live = live
        self.held = held
        self.writer = writer
        self.extended = dialect.extended
        self.beta = dialect.beta
        self.player = dialect.player

    @property
    def current(self) -> bool:
        return self.live.attachments.is_current(self.held.generation)

    def receive(self, frame: str | bytes) -> None:
        """A frame from the peer; without effect once another connection has taken over."""
        if self.current:
            self.live.receive(self, frame)

    def hear(self, pcm: bytes, rate: int) -> None:
        """PCM16 from the peer's microphone, where audio does not come in frames."""
        if self.current:
            self.live.hear(self, pcm, rate)

    def played(self, item_id: str, played_ms: int) -> None:
        """The connection's player has come so far in an item."""
        if self.current:
            self.live.played(item_id, played_ms)

    async def room(self) -> None:
        """Return when the connection may be read: replies that it causes would find room."""
        if not self.writer.has_room:
            await self.writer.room()

    def disconnected(self, code: int | None) -> None:
        """The connection ended; ``code`` is the peer's close code, None if there was no closing handshake."""
        if self.current:
            self.live.disconnected(self, code)

    def extend(self) -> None:
        if not self.extended:
            self.extended = self.writer.extended = True
            self.live.repeat_go_away(self)

    def say(self, event: Event, *, counted: bool = True) -> None:
        """A connection-scoped event; dropped if the connection's dialect has no word for it."""
        frame = self.in_its_words(event)
        if frame is not None:
            self.writer.send(frame, counted=counted)

    def in_its_words(self, event: Event) -> bytes | None:
        """The unnumbered frame of ``event`` in the connection's dialect, if that has a word for it."""
        body = codec.encode_body(event, self.live.machine.ids.event())
        return projection.connection_frame(kind_of(event), body, extended=self.extended, beta=self.beta)


class LiveSession:
    """A session from its admission to its end. ``ended(live)`` is called once, after its terminal event."""

    def __init__(
        self,
        machine: SessionMachine,
        budget: TotalBudget,
        lease: Lease,
        *,
        principal: str,
        key: str = "",
        bounds: Bounds,
        metrics: Metrics,
        new_token: Callable[[], str],
        ended: Callable[[LiveSession], None],
    ) -> None:
        self.id = machine.session_id
        self.principal = principal
        #: The API key that it counts for, whoever resumes it.
        self.key = key
        self.machine = machine
        self.log = EventLog(bounds.journal, budget, self.accepted)
        self.lease = lease
        self.credential: ResumeCredential  # issued with the first attachment
        self.attachments = Attachments(self._lease_given_back)
        self.tasks = Tasks(self.id)
        self.runner: Runner  # ``bind``: a runner is made with its session as its outbox
        #: Set by the manager while it tries to clean up again.
        self.retrying = False
        self._intake: Intake
        self._bounds = bounds
        self._metrics = metrics
        self._new_token = new_token
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._current: Attachment | None = None
        #: Why every connection should go elsewhere, and until when (loop time); None: it should not.
        self._leaving: tuple[str, float] | None = None
        #: Of the input clock, what the metrics show already.
        self._counted_ms = 0

    def bind(self, runner: Runner) -> None:
        self.runner = runner
        self._intake = Intake(
            self.machine,
            self._bounds.limits,
            runner.post,
            input_bytes=lambda: runner.input_bytes,
            acknowledge=self.log.acknowledge,
            prove=self._prove_token,
        )

    def _prove_token(self) -> None:
        self.credential.prove()

    @property
    def attached(self) -> bool:
        return self._current is not None

    @property
    def last_client_event_seq(self) -> int:
        """Newest number of exactly-once input that was used."""
        return self._intake.last_number

    # ------------------------------------------------------------------ attaching

    def open(self, link: Link, dialect: Dialect, client_event_seq: int | None = None) -> Attachment:
        """The connection that opened the session: gets ``session.created`` before anything else.

        ``client_event_seq`` is the number of the event that opened it.
        """
        token = self._new_token()
        self.credential = ResumeCredential.issue(token)
        held = self.attachments.attach(self.lease.generation)
        attachment = self._attach(held, link, dialect, self.log.replay(0, self._loop.time()))
        attachment.say(self._created(token, held), counted=False)
        self._start(attachment)
        if client_event_seq is not None:
            self._intake.count(client_event_seq)
        return attachment

    async def resume(
        self, request: ResumeSession, link: Link, dialect: Dialect, principal: str, port: LeasePort | None
    ) -> Attachment:
        """Attach another connection. Raises ``ResumeRefused``, with nothing changed.

        Without a ``port`` the lease is the session's own, and nothing is awaited.
        """

        def validate() -> None:
            self._validate_resume(request, principal)

        if port is not None:
            takeover = await self.attachments.resume_through(port, validate)
        else:
            takeover = self.attachments.resume(validate, self._swap_lease)
        return self._activate(request, link, dialect, takeover)

    def _swap_lease(self, expected: int) -> int:
        return self.lease.resume(expected, self._loop.time())

    def _validate_resume(self, request: ResumeSession, principal: str) -> None:
        if principal != self.principal or not self.credential.verify(request.resume_token):
            raise ResumeRefused(ErrorCode.INVALID_RESUME_TOKEN, "unknown session or wrong token")
        if not self.machine.is_open:
            raise ResumeRefused(ErrorCode.SESSION_RESUME_EXPIRED, "the session has ended")
        self.log.replay(request.last_received_server_event_seq, self._loop.time())

    def _activate(
        self, request: ResumeSession, link: Link, dialect: Dialect, takeover: Takeover
    ) -> Attachment:
        now = self._loop.time()
        self._dismiss_replaced()
        token = self._new_token()
        self.credential.rotate(request.resume_token, token)
        after = request.last_received_server_event_seq
        cursor = self.log.replay(after, now, request.replay, self.machine.played(now))
        attachment = self._attach(takeover.current, link, dialect, cursor)
        if dialect.extended:
            attachment.say(self._resumed(token, takeover.current, cursor), counted=False)
        else:
            attachment.say(self._created(token, takeover.current), counted=False)
        self.repeat_go_away(attachment)
        self._start(attachment)
        return attachment

    def _dismiss_replaced(self) -> None:
        """Tell the connection that was replaced; it never holds up the one that replaces it."""
        old, self._current = self._current, None
        if old is None:
            return
        generation = old.held.generation
        old.say(SessionReplaced(session_id=self.id, attachment_generation=generation), counted=False)
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
            event_id=self.machine.ids.event,
            pacing=self._pacing(dialect.player),
            player=dialect.player,
            output_format=self.machine.output_format,
        )
        return Attachment(self, held, writer, dialect)

    def _pacing(self, player: Player | None) -> Pacing | None:
        lead_ms = self._bounds.limits.max_audio_lead_ms
        if player is not None:
            lead_ms = min(lead_ms or player.max_lead_ms, player.max_lead_ms)
        return Pacing(lead_ms, self._ahead_ms) if lead_ms else None

    def _ahead_ms(self, tag: Tag) -> float:
        return self.machine.ahead_of_playback_ms(tag, self._loop.time())

    def _start(self, attachment: Attachment) -> None:
        self._current = attachment
        self._intake.listen_to(attachment)
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
            last_client_event_seq=self.last_client_event_seq,
            input_audio_ms=self.machine.input_audio_ms,
        )

    def _snapshot(self, as_of: int) -> Sequence[bytes]:
        """What stands in for entries that are gone: a snapshot, or its parts one by one for stock clients."""
        attachment = self._current
        if attachment is None:
            return []
        events = self.machine.snapshot(as_of) if attachment.extended else self.machine.restated()
        return [frame for event in events if (frame := attachment.in_its_words(event)) is not None]

    # ------------------------------------------------------------------ what a connection says and does

    def receive(self, attachment: Attachment, frame: str | bytes) -> None:
        """One frame of the current connection."""
        self.lease.touch(self._loop.time())
        self._intake.receive(attachment, frame)

    def hear(self, attachment: Attachment, pcm: bytes, rate: int) -> None:
        """Sound of the current connection; that of a session which closes is nothing to answer."""
        if self.machine.is_open:
            self.lease.touch(self._loop.time())
            self._intake.hear(attachment, pcm, rate)

    def played(self, item_id: str, played_ms: int) -> None:
        self.runner.post(Played(item_id, played_ms))

    def disconnected(self, attachment: Attachment, code: int | None) -> None:
        """A close by the client with 1000 or without a code ends the session; any other end is a detach."""
        by_client = code in (CloseCode.NORMAL, _NO_CODE)
        if by_client:
            self.close("client_closed")
        self._detach(attachment.held, "client_closed" if by_client else "lost")

    def _lost(self, held: Held, loss: Loss) -> None:
        self._detach(held, loss.value)

    def _detach(self, held: Held, cause: str) -> None:
        dropped = self.attachments.detach(held.generation)
        if dropped is None:
            return
        self._metrics.connections_ended.labels(cause).inc()
        self._forget_connection(CloseCode.GOING_AWAY)
        if not self.machine.is_open:
            return
        self.runner.post(Detached())
        if not self.lease.resumable:
            self.close("disconnect_grace_expired")

    def _forget_connection(self, code: int, reason: str = "", *, flush_log: bool = False) -> None:
        current, self._current = self._current, None
        self._intake.listen_to(None)
        if current is not None:
            current.writer.close(code, reason, flush_log=flush_log)

    def _lease_given_back(self, lease: int) -> None:
        self.lease.detach(lease, self._loop.time())

    # ------------------------------------------------------------------ output

    def accepted(self, tag: Tag) -> None:
        """The log handed an entry to a transport, or gave it up."""
        self.runner.accepted(tag)
        self.runner.room_changed()

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
            self._current.say(effect.event)

    def discard(self, effect: Discard) -> None:
        self.log.discard(effect.response_id, effect.items)
        if self._current is not None and self._current.player is not None:
            self._current.player.clear(effect.response_id)

    def pending_bytes(self) -> int:
        return self.log.pending_bytes

    # ------------------------------------------------------------------ usage

    def produced(self, event: ModelEvent) -> None:
        """What the model said was made, whoever is there to get it (case C-18)."""
        match event:
            case AudioDelta(pcm):
                samples = len(pcm) // 2
                self._metrics.audio_out.inc(samples / self.machine.state.capabilities.output_rate)
            case TurnEnd(usage=Usage() as usage):
                self._metrics.tokens_in.inc(usage.input_tokens)
                self._metrics.tokens_out.inc(usage.output_tokens)
            case _:
                pass

    def _count_input(self) -> None:
        heard_ms = self.machine.input_audio_ms
        self._metrics.audio_in.inc((heard_ms - self._counted_ms) / 1000)
        self._counted_ms = heard_ms

    # ------------------------------------------------------------------ the end

    def go_away(self, reason: str, deadline_ms: int) -> None:
        """Tell the connection, and every one that comes after it, to resume elsewhere before the deadline."""
        self._leaving = (reason, self._loop.time() + deadline_ms / 1000)
        if self._current is not None:
            self.repeat_go_away(self._current)

    def repeat_go_away(self, attachment: Attachment) -> None:
        """Tell a connection that came, or learned the extensions, after the others were told."""
        if self._leaving is not None:
            reason, deadline = self._leaving
            left_ms = max(0, round((deadline - self._loop.time()) * 1000))
            attachment.say(SessionGoAway(reason=reason, deadline_ms=left_ms))

    def expire(self, now: float) -> None:
        """End the session if its lease ran out; an answer under way counts as activity."""
        self._count_input()
        if self.machine.busy:
            self.lease.touch(now)
        self.lease.limit_idle(self.machine.config.idle_timeout_s)
        reason = self.lease.expired(now)
        if reason is not None:
            self.close(reason)

    def close(self, reason: str) -> None:
        """End the session; ``reason`` is one of ``session.closed`` or ``session.expired``."""
        if self.machine.is_open:
            self.runner.post(CloseRequested(reason))

    def machine_ended(self, effect: EndSession) -> None:
        """The machine said its last word: flush it, close the connection, tell the manager."""
        self.lease.finish()
        self._intake.stop()
        if self.attachments.close() is not None:
            self._metrics.connections_ended.labels(effect.reason).inc()
        self._forget_connection(effect.close_code, effect.reason, flush_log=True)
        self._count_input()
        self._metrics.sessions_ended.labels(effect.reason).inc()
        self._ended(self)

    async def finish(self) -> None:
        """Wait for the last frames (bounded by the writer), then hold nothing any more."""
        await self.tasks.join()
        await self.runner.stop()
        self.runner.release()
        self.log.close()
