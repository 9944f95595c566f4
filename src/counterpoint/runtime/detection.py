"""Finding speech for many sessions with one copy of each model.

Owns: which detector a session uses, the order of its chunks, batching over sessions, the threads.
Does not own: the detectors (``audio.detectors``, plugins), what speech means (``session``).
Here because: detection is the dearest thing in the server; it must run neither on the loop nor once for
each session.

A cheap detector answers in the same step. A shared one answers from its thread: whatever waits when the
thread is free goes in one batch, at most one slice per session, so results keep the order of the chunks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import structlog

from counterpoint.audio.detectors import AmpDetector, Detector, EnergyDetector
from counterpoint.plugins.detection import SpeechDetector, TurnModel
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.session.inputs import Detected, Input, TurnChecked

log = structlog.get_logger(__name__)

#: Longest piece of one session's audio in a batch: a flood from one client delays the others by no more.
SLICE_BYTES = SESSION_RATE * 2 // 2

_INLINE: Mapping[str, Callable[[], Detector]] = {"amp": AmpDetector, "energy": EnergyDetector}


@dataclass(slots=True)
class _Chunk:
    number: int
    pcm: bytes
    at: int = 0
    found: list[float] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.at >= len(self.pcm)


class DetectionService:
    """The detectors of one server. ``models`` are the plugin's; without any the energy detector serves."""

    def __init__(self, models: Iterable[object] = ()) -> None:
        self._shared: dict[str, SpeechDetector] = {}
        self._turn_model: TurnModel | None = None
        for model in models:
            if isinstance(model, TurnModel):
                self._turn_model = model
            elif isinstance(model, SpeechDetector):
                self._shared[model.name] = model
        self._waiting: dict[SessionDetection, None] = {}
        self._busy = False
        self._speech_thread = ThreadPoolExecutor(1, thread_name_prefix="speech")
        self._turn_thread = ThreadPoolExecutor(1, thread_name_prefix="turn-end")

    @property
    def default(self) -> str:
        return next(iter(self._shared), "energy")

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._shared, *_INLINE)

    @property
    def has_turn_model(self) -> bool:
        return self._turn_model is not None

    def session(self, deliver: Callable[[Input], None]) -> SessionDetection:
        """Detection for one session; ``deliver`` takes the results, on the loop."""
        return SessionDetection(self, deliver)

    def close(self) -> None:
        self._speech_thread.shutdown(wait=True, cancel_futures=True)
        self._turn_thread.shutdown(wait=True, cancel_futures=True)

    def _enqueue(self, session: SessionDetection) -> None:
        self._waiting[session] = None
        self._start_batch()

    def _start_batch(self) -> None:
        if self._busy or not self._waiting:
            return
        first = next(iter(self._waiting))
        detector = first.shared
        batch = [session for session in self._waiting if session.shared is detector]
        for session in batch:
            del self._waiting[session]
        work = [(session.state, session.next_slice()) for session in batch]
        self._busy = True
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._speech_thread, detector.probabilities, work)
        future.add_done_callback(lambda done: self._batch_done(batch, done))

    def _batch_done(self, batch: list[SessionDetection], done: asyncio.Future[list[list[float]]]) -> None:
        self._busy = False
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            log.error("speech detection failed", exc_info=error)
        found = done.result() if error is None else [[] for _ in batch]
        for session, probabilities in zip(batch, found, strict=True):
            session.slice_done(probabilities)
        self._start_batch()

    def _check_turn(self, session: SessionDetection, check: int, pcm: bytes) -> None:
        if self._turn_model is None:
            session.turn_checked(check, 1.0)
            return
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._turn_thread, self._turn_model.probability, pcm)
        future.add_done_callback(lambda done: _turn_done(session, check, done))


def _turn_done(session: SessionDetection, check: int, done: asyncio.Future[float]) -> None:
    if done.cancelled():
        return
    error = done.exception()
    if error is not None:
        # The turn then ends by its longest silence, as if the model had said no.
        log.error("turn-end model failed", exc_info=error)
    session.turn_checked(check, 0.0 if error is not None else done.result())


class SessionDetection:
    """One session's place in the detection service."""

    def __init__(self, service: DetectionService, deliver: Callable[[Input], None]) -> None:
        self._service = service
        self._deliver: Callable[[Input], None] | None = deliver
        self._inline: Detector | None = None
        self._shared: SpeechDetector | None = None
        self.state: Any = None
        self._chunks: deque[_Chunk] = deque()
        self.use(None)

    @property
    def shared(self) -> SpeechDetector:
        assert self._shared is not None, "only sessions with a shared detector wait for a batch"
        return self._shared

    def use(self, name: str | None) -> None:
        """Detect with ``name`` (None: the server's default) from the next chunk on, with fresh state."""
        name = name or self._service.default
        self._shared = self._service._shared.get(name)
        self._inline = None if self._shared is not None else _INLINE[name]()
        self.state = self._shared.new_state() if self._shared is not None else None

    def detect(self, chunk: int, pcm: bytes) -> None:
        if self._inline is not None:
            self._hand(Detected(chunk, tuple(self._inline.feed(pcm))))
            return
        self._chunks.append(_Chunk(chunk, pcm))
        if len(self._chunks) == 1:
            self._service._enqueue(self)

    def check_turn(self, check: int, pcm: bytes) -> None:
        self._service._check_turn(self, check, pcm)

    def close(self) -> None:
        """Results that are still under way go nowhere."""
        self._deliver = None
        self._chunks.clear()
        self._service._waiting.pop(self, None)

    def next_slice(self) -> bytes:
        chunk = self._chunks[0]
        piece = chunk.pcm[chunk.at : chunk.at + SLICE_BYTES]
        chunk.at += len(piece)
        return piece

    def slice_done(self, probabilities: list[float]) -> None:
        if not self._chunks:
            return
        chunk = self._chunks[0]
        chunk.found.extend(probabilities)
        if chunk.done:
            self._chunks.popleft()
            self._hand(Detected(chunk.number, tuple(chunk.found)))
        if self._chunks:
            self._service._enqueue(self)

    def turn_checked(self, check: int, probability: float) -> None:
        self._hand(TurnChecked(check, probability))

    def _hand(self, result: Input) -> None:
        if self._deliver is not None:
            self._deliver(result)
