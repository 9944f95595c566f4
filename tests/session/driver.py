"""Drives a session machine without a loop: a log that hands over on demand, a detector, a clock.

Owns: ``Driver``, and the reading of what its client got.
Does not own: what must hold of it (``checks``).
Here because: every rule of a session can be tested on the machine alone, at any point between two entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from counterpoint.audio.detectors import AmpDetector
from counterpoint.limits import Limits
from counterpoint.plugins.contract import (
    AudioDelta,
    Capabilities,
    Fence,
    Interaction,
    ModelEvent,
    ResponseRequest,
    TextDelta,
    TurnEnd,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.commands import AppendAudio, Command, CreateItem, CreateResponse, UpdateSession
from counterpoint.protocol.config import SessionConfig, merge
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import InputText, Message, Role
from counterpoint.protocol.response_options import ResponseOptions
from counterpoint.session.effects import (
    CheckTurn,
    CloseModel,
    Detect,
    Discard,
    Effect,
    Emit,
    EndSession,
    Prepare,
    Push,
    Reply,
    Respond,
    UseDetector,
)
from counterpoint.session.inputs import (
    CleanedUp,
    CommandReceived,
    DeadlineReached,
    Detected,
    Input,
    ModelOpened,
    ResponseDrained,
    StageOutput,
)
from counterpoint.session.machine import SessionMachine

_E = TypeVar("_E")

TURN_MODEL = Capabilities(
    interaction=Interaction.TURN, input_rate=SESSION_RATE, tools=True, images=True, voices=("default", "alto")
)


def config(**patch: Any) -> SessionConfig:
    return merge(SessionConfig(), patch, extended=True)


def vad(**settings: Any) -> dict[str, Any]:
    """A patch that turns the ``amp`` detector on."""
    return {"audio": {"input": {"turn_detection": {"type": "server_vad", "detector": "amp", **settings}}}}


MANUAL: dict[str, Any] = {"audio": {"input": {"turn_detection": None}}}


def tone(ms: int, level: float) -> bytes:
    """PCM at 24 kHz that the ``amp`` detector finds to be speech with probability ``level``."""
    samples = np.full(ms * SESSION_RATE // 1000, round(level * 32767), np.int16)
    samples[::2] *= -1
    return samples.astype("<i2").tobytes()


def ramp(ms: int, start: int = 0) -> bytes:
    """Output that says where it is from: sample i is i mod 32768."""
    count = ms * SESSION_RATE // 1000
    return (np.arange(start, start + count) % 32768).astype("<i2").tobytes()


def user_text(text: str, item_id: str = "") -> CreateItem:
    return CreateItem(item=Message(id=item_id, role=Role.USER, content=(InputText(text),)))


class Driver:
    """``sent`` is what the client got as session events, ``replies`` what it got apart from them.

    With ``eager`` every entry is handed over as soon as it is written; without, ``hand_over`` does that.
    With ``detects`` chunks are answered at once by the ``amp`` detector; without, ``detect`` does that.
    """

    def __init__(
        self,
        patch: dict[str, Any] | None = None,
        *,
        capabilities: Capabilities = TURN_MODEL,
        limits: Limits | None = None,
        duplex: bool = False,
        locked: dict[str, Any] | None = None,
        turn_model: bool = False,
        eager: bool = True,
        detects: bool = True,
        opened: bool = True,
    ) -> None:
        self.now = 100.0
        self.eager = eager
        self.detects = detects
        self.extended = True
        self.limits = limits or Limits()
        self.machine = SessionMachine(
            "sess_test",
            config(**(MANUAL if patch is None else patch)),
            capabilities,
            self.limits,
            IdSource("beef"),
            validate=lambda candidate, current: candidate,
            duplex=duplex,
            locked=locked,
            turn_model=turn_model,
            now=self.now,
        )
        self.effects: list[Effect] = []
        self.pending: deque[Emit] = deque()
        self.sent: list[Emit] = []
        self.replies: list[ev.Event] = []
        self.chunks: deque[Detect] = deque()
        self.checks: deque[CheckTurn] = deque()
        self._detector = AmpDetector()
        self._drained: deque[str] = deque()
        if opened:
            self.post(ModelOpened())

    # ------------------------------------------------------------------ in

    def post(self, news: Input) -> list[Effect]:
        """One step, and what follows from it at once; returns all effects."""
        first = len(self.effects)
        self._step(news)
        while self._drained:
            self._step(ResponseDrained(self._drained.popleft()))
        return self.effects[first:]

    def send(self, *commands: Command) -> list[Effect]:
        return [
            effect for command in commands for effect in self.post(CommandReceived(command, self.extended))
        ]

    def update(self, **patch: Any) -> list[Effect]:
        return self.send(UpdateSession(patch=patch))

    def say(self, ms: int, level: float, *, cut_ms: int = 20) -> list[Effect]:
        """The user is heard for ``ms``, in appends of ``cut_ms``; the clock goes on with it."""
        pcm, step = tone(ms, level), cut_ms * SESSION_RATE // 1000 * 2
        effects = []
        for at in range(0, len(pcm), step):
            piece = pcm[at : at + step]
            self.now += len(piece) / 2 / SESSION_RATE
            effects += self.send(AppendAudio(audio=piece))
        return effects

    def ask(self, **options: Any) -> ResponseRequest:
        """``response.create``; returns what the model was asked."""
        return self.only(Respond, self.send(CreateResponse(options=ResponseOptions(**options)))).request

    def model(self, *events: ModelEvent, fence: Fence | None = None) -> list[Effect]:
        """The model says something, in the newest response unless told otherwise."""
        fence = fence or self.requests[-1].fence
        return [effect for event in events for effect in self.post(StageOutput(fence, event))]

    def answer(self, text: str = "hello there", ms: int = 400) -> None:
        """A whole spoken answer."""
        self.model(AudioDelta(ramp(ms), text), TurnEnd())

    def wait(self, seconds: float) -> list[Effect]:
        """Time passes; deadlines are met in their order."""
        end, effects = self.now + seconds, []
        while (deadline := self.machine.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            effects += self.post(DeadlineReached())
        self.now = end
        return effects

    # ------------------------------------------------------------------ out

    def hand_over(self, entries: int | None = None) -> list[Emit]:
        """A transport takes so many pending entries, or all."""
        count = len(self.pending) if entries is None else min(entries, len(self.pending))
        taken = [self._take() for _ in range(count)]
        while self._drained:
            self.post(ResponseDrained(self._drained.popleft()))
        return taken

    def detect(self) -> None:
        """The detector is done with the oldest chunk."""
        chunk = self.chunks.popleft()
        self.post(Detected(chunk.chunk, tuple(self._detector.feed(chunk.pcm))))

    def _step(self, news: Input) -> None:
        for effect in self.machine.receive(news, self.now):
            self.effects.append(effect)
            self._perform(effect)
        if self.eager:
            while self.pending:
                self._take()
        while self.detects and self.chunks:
            chunk = self.chunks.popleft()
            self._step(Detected(chunk.chunk, tuple(self._detector.feed(chunk.pcm))))

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Emit():
                self.pending.append(effect)
            case Reply():
                self.replies.append(effect.event)
            case Discard():
                self.pending = deque(entry for entry in self.pending if not _discarded(entry, effect))
            case Detect():
                self.chunks.append(effect)
            case UseDetector():
                assert not self.chunks
                self._detector.reset()
            case CheckTurn():
                self.checks.append(effect)
            case CloseModel():
                pass
            case _:
                pass

    def _take(self) -> Emit:
        entry = self.pending.popleft()
        self.sent.append(entry)
        if entry.tag is not None:
            drained = self.machine.accepted(entry.tag, self.now)
            if drained is not None:
                self._drained.append(drained)
        return entry

    def clean_up(self) -> EndSession:
        return self.only(EndSession, self.post(CleanedUp(True)))

    # ------------------------------------------------------------------ reading

    @property
    def events(self) -> list[ev.Event]:
        return [entry.event for entry in self.sent]

    @property
    def types(self) -> list[str]:
        return [type_of(entry.event) for entry in self.sent]

    @property
    def errors(self) -> list[ev.ErrorDetail]:
        return [event.error for event in (*self.replies, *self.events) if isinstance(event, ev.Error)]

    @property
    def requests(self) -> list[ResponseRequest]:
        return [effect.request for effect in self.effects if isinstance(effect, Respond)]

    @property
    def prepared(self) -> list[ResponseRequest]:
        return [effect.request for effect in self.effects if isinstance(effect, Prepare)]

    @property
    def done(self) -> list[ev.Response]:
        return [event.response for event in self.of(ev.ResponseDone)]

    def of(self, kind: type[_E]) -> list[_E]:
        """What the client got of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[_E], among: Iterable[object] | None = None) -> _E:
        found = [each for each in (self.effects if among is None else among) if isinstance(each, kind)]
        assert len(found) == 1, f"{len(found)} of {kind.__name__}"
        return found[0]

    def audio_of(self, item_id: str) -> bytes:
        return b"".join(delta.pcm for delta in self.of(ev.OutputAudioDelta) if delta.item_id == item_id)

    def pushed(self, input: int) -> bytes:
        """The audio that the model got of one utterance."""
        steps = [effect.step for effect in self.effects if isinstance(effect, Push)]
        return b"".join(step.audio for step in steps if step.input == input)

    def history(self) -> list[tuple[str | None, str | None]]:
        """Role and text of what the newest request showed to the model."""
        return [(item.role, item.text) for item in self.requests[-1].history]


def type_of(event: ev.Event) -> str:
    return kind_of(event).type


def speak(text: str, ms: int = 0, start: int = 0) -> ModelEvent:
    return AudioDelta(ramp(ms, start), text) if ms else TextDelta(text)


def _discarded(entry: Emit, discard: Discard) -> bool:
    tag = entry.tag
    if tag is None:
        return False
    if tag.item_id in discard.items:
        return True
    return tag.response_id == discard.response_id and kind_of(entry.event).discarded
