"""A model that says anything at any time, of any answer, whether it is over, older or never was asked for.

Owns: what it says and under which fence. Its audio is the scripted model's ramp: each sample tells which
answer it is of, and where it belongs there.
Does not own: what becomes of it (the machine), what may reach a client (``testing.witness``).
Here because: a model is the work of others, and whatever it does, its client gets a conversation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from counterpoint.models.scripted.content import ramp
from counterpoint.plugins.contract import (
    AudioDelta,
    Failure,
    Fence,
    ItemEnd,
    Listen,
    Mark,
    ModelEvent,
    ResponseRequest,
    Scope,
    SpeechBoundary,
    StageMetrics,
    StepDone,
    TextDelta,
    ToolCall,
    TurnEnd,
    TurnStatus,
    Usage,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.session.effects import AbortResponse, Effect, Push, ReopenModel, Respond
from counterpoint.session.inputs import (
    Input,
    ModelHeld,
    ModelOpened,
    ModelOpenFailed,
    ModelRaised,
    StageOutput,
)

_WORDS = ("one ", "two and ", "a third, ", "", "fünf ")
_OPERATIONS = ("push", "prepare", "respond", "forget", "update", "truncate", "cancel", "abort")


@dataclass(slots=True)
class _Answer:
    fence: Fence
    number: int
    samples: int = 0


class RandomModel:
    """``native``: it is not asked, and lives in steps."""

    def __init__(self, rng: random.Random, *, native: bool) -> None:
        self._rng = rng
        self._native = native
        self._answers: list[_Answer] = []
        #: The numbers of a native model's answers; others are numbered by who asks.
        self.turns: dict[int, None] | None = {} if native else None
        self._steps: list[int] = []
        self._opening = True
        self._epoch = 0
        self._own = self._new(Fence("sess_test", 0))
        #: It was told to stop its own turn, and has said something since the last step.
        self._stopped = self._spoke = False

    def _new(self, fence: Fence, request: ResponseRequest | None = None) -> _Answer:
        number = 0 if request is None else request.number
        if self.turns is not None:
            number = len(self.turns) + 1
            self.turns[number] = None
        return _Answer(fence, number)

    def hears(self, effect: Effect) -> None:
        """What the session asks of it."""
        match effect:
            case Respond(request):
                self._answers.append(self._new(request.fence, request))
            case Push(step) if self._native:
                self._steps.append(step.step)
            case ReopenModel():
                self._opening = True
            case AbortResponse(fence):
                self._stopped |= all(answer.fence.turn != fence.turn for answer in self._answers)
            case _:
                pass

    # ------------------------------------------------------------------ what comes of it

    def next(self, epoch: int) -> Input | None:
        """The next thing that the session is told of it; the session is in ``epoch``."""
        rng = self._rng
        if self._opening:
            if rng.random() < 0.7:
                return None  # it takes its time
            self._opening = False
            return ModelOpenFailed("no room") if rng.random() < 0.02 else ModelOpened()
        match rng.randrange(40):
            case 0:
                return ModelHeld(held=rng.random() < 0.5)
            case 1:
                work = ("respond", "prepare") if rng.random() < 0.9 else _OPERATIONS
                return ModelRaised(self._answer(epoch).fence, rng.choice(work))
            case 2:
                return StageOutput(self._answer(epoch).fence, rng.choice(self._about_the_session())())
            case 3 | 4 | 5 | 6 | 7 | 8 if self._native:
                return StageOutput(Fence("sess_test", epoch), self._step_done())
            case _:
                answer = self._answer(epoch)
                return StageOutput(answer.fence, self._say(answer))

    def _answer(self, epoch: int) -> _Answer:
        """Mostly the one that is due, else an older one or one that never was."""
        rng = self._rng
        if self._native and epoch != self._own.fence.epoch:
            self._own, self._stopped = self._new(Fence("sess_test", epoch)), False
        if rng.random() < 0.03:
            return _Answer(Fence("sess_test", epoch + rng.randrange(-1, 3), 9999), 4321)
        if self._answers and rng.random() < (0.3 if self._native else 1.0):
            return self._answers[-1] if rng.random() < 0.8 else rng.choice(self._answers[-5:])
        if self._native:
            return self._own
        return _Answer(Fence("sess_test", epoch), 4321)

    # ------------------------------------------------------------------ what it says

    def _say(self, answer: _Answer) -> ModelEvent:
        rng = self._rng
        ends: list[Callable[[], ModelEvent]] = [
            TurnEnd,
            lambda: TurnEnd(rng.choice(list(TurnStatus)), Usage(3, 2)),
            Listen,
            lambda: Listen("buffering"),
            Failure,
        ]
        goes_on: list[Callable[[], ModelEvent]] = [
            *([lambda: self._audio(answer)] * 8),
            lambda: TextDelta(rng.choice(("text", ""))),
            ItemEnd,
            lambda: ToolCall(rng.randrange(3), "f", '{"a"', final=rng.random() < 0.6),
            lambda: Listen(end_of_turn=False),
        ]
        if rng.random() < 0.2:
            if answer is self._own:
                self._own, self._stopped = self._new(answer.fence), False
            return rng.choice(ends)()
        said = rng.choice(goes_on)()
        if answer is self._own and (isinstance(said, ToolCall | AudioDelta) or said == TextDelta("text")):
            self._spoke = True
        return said

    def _audio(self, answer: _Answer) -> AudioDelta:
        """With its words, some of which may be spoken only by what follows; or without."""
        samples = self._rng.choice((20, 80, 200)) * SESSION_RATE // 1000
        pcm = ramp(answer.number, answer.samples, samples)
        answer.samples += samples
        text = self._rng.choice(_WORDS)
        half = Mark(samples // 2, len(text) // 2)
        end = Mark(samples * self._rng.choice((1, 1, 3)), len(text))
        return AudioDelta(pcm, text, self._rng.choice(((end,), (half, end), (end, half))))

    def _about_the_session(self) -> list[Callable[[], ModelEvent]]:
        rng = self._rng
        utterance = rng.randrange(9)
        return [
            *([lambda: UserTranscript(utterance, rng.choice(_WORDS), final=rng.random() < 0.5)] * 4),
            lambda: UserTranscriptFailed(utterance, "not understood"),
            lambda: SpeechBoundary(rng.random() < 0.5, 480),
            lambda: StageMetrics({"asr": 2.0}),
            lambda: StepDone(rng.randrange(99)),
            lambda: Failure(scope=Scope.SESSION, retryable=rng.random() < 0.8),
        ]

    def _step_done(self) -> StepDone:
        """The receipt that is due; without one, of a step that never was."""
        if self._stopped and not self._spoke:  # silent for a step after it was stopped: its turn is over
            self._own, self._stopped = self._new(self._own.fence), False
        self._spoke = False
        return StepDone(self._steps.pop(0) if self._steps else 9999)
