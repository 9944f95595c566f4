"""All sessions of one server: admitting, finding, resuming, ending them.

Owns: the registry, slots, ended sessions, the reaper, drain and shutdown.
Does not own: one session's life (``runtime.live``), sockets and authentication (``serving``).
Here because: what concerns more than one session is here, and nothing else is.

No lock stands between sessions: every table is touched on the loop and never across an await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from counterpoint.delivery.attachment import LeasePort
from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.writer import Link
from counterpoint.errors import AdmissionRefused, ProtocolError, ResumeRefused
from counterpoint.limits import Limits
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import ResumeSession
from counterpoint.protocol.config import SessionConfig, locked
from counterpoint.protocol.ids import IdSource
from counterpoint.session.machine import SessionMachine

from .bounds import Bounds
from .detection import DetectionService
from .ended import EndedSessions
from .lease import Lease
from .live import Attachment, Dialect, LiveSession
from .loop_lag import LoopLag
from .metrics import Metrics
from .runner import Runner
from .slots import RETRY_AFTER_MS, Slots, check_step_time
from .tasks import Tasks

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What a new session starts with."""

    dialect: Dialect = field(default_factory=Dialect)
    principal: str = ""  #: who may resume it
    key: str = ""  #: the API key that it counts for
    duplex: bool = False  #: opened with ``duplex=1``
    config: SessionConfig = field(default_factory=SessionConfig)
    #: A ``session`` whose fields win, now and over every later update (wire contract, section 10).
    locked: dict[str, Any] = field(default_factory=dict)
    max_session_s: float = 0.0  #: may shorten the server's bound, not lengthen it; 0: as the server has it
    #: Of the ``session.update`` that opens it, where the client numbers its events.
    client_event_seq: int | None = None


class SessionManager:
    """``entropy(n)`` returns n random bytes: session ids, tokens and event ids are made of nothing else."""

    def __init__(
        self,
        plugin: ModelPlugin,
        bounds: Bounds,
        *,
        entropy: Callable[[int], bytes],
        metrics: Metrics,
        lease_port: Callable[[LiveSession], LeasePort] | None = None,
    ) -> None:
        self.plugin = plugin
        self.metrics = metrics
        self.detection = DetectionService(plugin.detectors())
        self._bounds = bounds
        self._entropy = entropy
        self._lease_port = lease_port
        self._loop = asyncio.get_running_loop()
        self._live: dict[str, LiveSession] = {}
        #: Over, and their model side has not let go: the reaper tries again.
        self._unclean: dict[str, LiveSession] = {}
        self._ended = EndedSessions()
        capabilities = plugin.capabilities()
        most = [n for n in (bounds.limits.max_sessions, capabilities.max_sessions) if n]
        self.slots = Slots(min(most, default=0))
        self._budget = TotalBudget(bounds.journal.total_max_bytes)
        self._tasks = Tasks("manager")
        self._draining = False
        self._emptied: asyncio.Future[None] | None = None
        self._finishing: dict[asyncio.Task[None], None] = {}
        self.loop_lag = LoopLag(metrics.loop_lag.observe)
        self._tasks.spawn("reaper", self._reap())

    # ------------------------------------------------------------------ what is there

    @property
    def sessions(self) -> Collection[LiveSession]:
        return self._live.values()

    @property
    def admits(self) -> bool:
        return not self._draining

    @property
    def log_bytes(self) -> int:
        """Bytes that the event logs of all sessions hold."""
        return self._budget.used

    def count(self, holds: Callable[[LiveSession], bool]) -> int:
        """Sessions of which ``holds`` is true."""
        return sum(map(holds, self._live.values()))

    def find(self, session_id: str) -> LiveSession | None:
        return self._live.get(session_id)

    # ------------------------------------------------------------------ opening and resuming

    def open(self, request: OpenRequest, link: Link) -> Attachment:
        """Admit a session: its slot is taken and ``session.created`` queued when this returns.

        The model side opens behind it; input waits. Raises ``AdmissionRefused``.
        """
        if self._draining:
            raise AdmissionRefused("the server is draining", RETRY_AFTER_MS)
        session_id = f"sess_{self._entropy(16).hex()}"
        try:
            check_step_time(self.plugin.load(), self.plugin.capabilities())
            self.slots.take(session_id)
        except AdmissionRefused:
            self.metrics.sessions_refused.inc()
            raise
        try:
            live = self._build(session_id, request)
        except BaseException:
            self.slots.free(session_id)
            raise
        self._live[session_id] = live
        self._count_slots()
        self.metrics.sessions_opened.inc()
        attachment = live.open(link, request.dialect, request.client_event_seq)
        live.runner.open_model()
        return attachment

    def _build(self, session_id: str, request: OpenRequest) -> LiveSession:
        now = self._loop.time()
        limits = _limits_of(request, self._bounds.limits)
        machine = SessionMachine(
            session_id,
            self._validate(locked(request.config, request.locked), None),
            self.plugin.capabilities(),
            limits,
            IdSource(self._entropy(6).hex()),
            validate=self._validate,
            locked=request.locked,
            now=now,
            duplex=request.duplex,
            turn_model=self.detection.has_turn_model,
            resumable=bool(self._bounds.lease.disconnect_grace_s),
        )
        live = LiveSession(
            machine,
            self._budget,
            Lease(self._bounds.lease, now),
            principal=request.principal,
            key=request.key,
            bounds=self._bounds,
            metrics=self.metrics,
            new_token=self._new_token,
            ended=self._session_ended,
        )
        live.bind(
            Runner(
                machine,
                lambda: self.plugin.create_session(session_id),
                live,
                self.detection,
                max_pending_output_bytes=limits.max_pending_output_bytes,
                cleanup_timeout_s=limits.cleanup_timeout_s,
                ended=live.machine_ended,
            )
        )
        return live

    def _validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        """What the plugin makes of ``config``; raises ``ProtocolError`` for a detector that is not there."""
        detection = config.audio.input.turn_detection
        detector = detection.detector if detection is not None else None
        if detector is not None and detector not in self.detection.names:
            raise ProtocolError(
                ErrorCode.INVALID_EVENT,
                f"this server has no such detector; it has {', '.join(self.detection.names)}",
                param="session.audio.input.turn_detection.detector",
            )
        return self.plugin.validate(config, current)

    async def resume(
        self, request: ResumeSession, link: Link, dialect: Dialect, principal: str
    ) -> Attachment:
        """Attach ``link`` to the session that ``request`` names.

        Raises ``ResumeRefused``; nothing changed then.
        """
        try:
            attachment = await self._resume(request, link, dialect, principal)
        except ResumeRefused as refusal:
            self.metrics.resumes.labels(str(refusal.code)).inc()
            raise
        self.metrics.resumes.labels("resumed").inc()
        return attachment

    async def _resume(
        self, request: ResumeSession, link: Link, dialect: Dialect, principal: str
    ) -> Attachment:
        if not self._bounds.lease.disconnect_grace_s:
            raise ResumeRefused(ErrorCode.UNSUPPORTED_SESSION_RESUME, "this server does not keep sessions")
        live = self._live.get(request.session_id)
        if live is None:
            if self._ended.knows(request.session_id, request.resume_token, principal, self._loop.time()):
                raise ResumeRefused(ErrorCode.SESSION_RESUME_EXPIRED, "the session has ended")
            raise ResumeRefused(ErrorCode.INVALID_RESUME_TOKEN, "unknown session or wrong token")
        port = self._lease_port(live) if self._lease_port is not None else None
        return await live.resume(request, link, dialect, principal, port)

    def _new_token(self) -> str:
        return self._entropy(32).hex()

    # ------------------------------------------------------------------ ending

    def _session_ended(self, live: LiveSession) -> None:
        """Called by the session, after its terminal event; its slot is freed once its model side let go."""
        self._live.pop(live.id, None)
        self._ended.remember(live.id, live.credential, live.principal, self._loop.time())
        if live.runner.cleaned:
            self.slots.free(live.id)
        else:
            self.metrics.cleanups_failed.inc()
            self.slots.close(live.id)
            self._unclean[live.id] = live
        self._count_slots()
        finishing = self._tasks.spawn(f"finish:{live.id}", live.finish())
        self._finishing[finishing] = None
        finishing.add_done_callback(lambda done: self._finishing.pop(done, None))
        if not self._live and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def _reap(self) -> None:
        """Expire what nobody holds, and try again what did not clean up."""
        while True:
            await asyncio.sleep(self._bounds.lease.reaper_interval_s)
            self._look_at_all(self._loop.time())

    def _look_at_all(self, now: float) -> None:
        for live in list(self._live.values()):
            live.expire(now)
        for live in list(self._unclean.values()):
            if not live.retrying:
                self._tasks.spawn(f"cleanup:{live.id}", self._retry_cleanup(live))

    async def _retry_cleanup(self, live: LiveSession) -> None:
        live.retrying = True
        try:
            cleaned = await live.runner.try_cleanup()
        finally:
            live.retrying = False
        if cleaned:
            self._unclean.pop(live.id, None)
            self.slots.free(live.id)
            self._count_slots()
        else:
            self.metrics.cleanups_failed.inc()

    def _count_slots(self) -> None:
        self.metrics.slots_used.set(self.slots.used)
        self.metrics.slots_closing.set(self.slots.closing)

    # ------------------------------------------------------------------ the end of the server

    def stop_admitting(self) -> None:
        """From now on only sessions that live here are served."""
        self._draining = True

    def announce_drain(self, deadline_ms: int) -> None:
        """Tell every connection that understands it to go elsewhere before the deadline."""
        for live in self._live.values():
            live.go_away("drain", deadline_ms)

    def end_all(self, reason: str) -> None:
        for live in list(self._live.values()):
            live.close(reason)

    async def until_empty(self) -> None:
        """Return when no session is live any more and the last words of all were flushed."""
        while self._live:
            self._emptied = self._loop.create_future()
            await self._emptied
        while self._finishing:
            await asyncio.wait(list(self._finishing))

    async def close(self) -> None:
        """Drop what is left, without a word; the plugin is stopped by whoever started it."""
        for live in [*self._live.values(), *self._unclean.values()]:
            await live.runner.stop()
            await live.tasks.cancel(timeout=self._bounds.transport.close_timeout_s)
        self.loop_lag.stop()
        await self._tasks.cancel(timeout=self._bounds.transport.close_timeout_s)
        self.detection.close()


def _limits_of(request: OpenRequest, limits: Limits) -> Limits:
    asked = [most for most in (request.max_session_s, limits.max_session_s) if most]
    return msgspec.structs.replace(limits, max_session_s=min(asked, default=0.0))
