"""A model that lives in steps, as its author writes it: one batched step and what goes with it.

Owns: ``StepModel``, what it may do besides (``Prefilling``, ``Updating``), ``Row``, ``StepEvent``.
Does not own: which slot belongs to whom, when a step is due, receipts (``slots``); the session that is built
over it (``slot_session``).
Here because: an author of a native model writes five methods against this page, and no line of asyncio.

Everything is called from one thread, one call at a time. What a model says of a row must not depend on the
other rows, and after ``reset`` nothing may be left of the slot's previous owner (invariant 153).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from counterpoint.protocol.config import SessionConfig

from .contract import (
    AudioDelta,
    Failure,
    ItemEnd,
    Listen,
    SpeechBoundary,
    StageMetrics,
    StepInput,
    TextDelta,
    ToolCall,
    TurnEnd,
    UserTranscript,
)

#: What a step may say: every ``ModelEvent`` but the receipt, which the scheduler writes.
StepEvent = (
    AudioDelta
    | TextDelta
    | ItemEnd
    | ToolCall
    | TurnEnd
    | Listen
    | UserTranscript
    | SpeechBoundary
    | Failure
    | StageMetrics
)


@dataclass(frozen=True, slots=True)
class Row:
    """One unit of model time of one slot. ``input.audio`` is one unit of int16 at the model's input rate.

    ``input.force_listen``: the answer was interrupted; from this step on the model is to listen.
    ``input.text``: the client asked for an answer to this (``response.create``), audio or not.
    """

    slot: int
    input: StepInput


class StepModel(Protocol):
    """A loaded model with ``batch_size`` slots, numbered from 0."""

    @property
    def batch_size(self) -> int: ...

    def warm_up(self) -> None:
        """Called once, before all else: the first step of most models takes seconds."""
        ...

    def reset(self, slots: Sequence[int], configs: Sequence[SessionConfig]) -> None:
        """These slots begin new sessions."""
        ...

    def step(self, rows: Sequence[Row]) -> Sequence[Sequence[StepEvent]]:
        """One unit of time for the slots in ``rows``, each there once; what each says, in their order.

        A slot that is not among them stands still. A step that raises must not have moved any slot: it is
        repeated row by row, and only the slot that raises again loses its session.
        """
        ...

    def release(self, slots: Sequence[int]) -> None:
        """The sessions of these slots are over. Idempotent."""
        ...


@runtime_checkable
class Prefilling(Protocol):
    """A ``StepModel`` that reads text before a session starts: the instructions, and after a loss of the
    model side what was said until then, as lines of ``user: ...`` and ``assistant: ...``."""

    def prefill(self, slot: int, text: str) -> Iterator[None]:
        """Read it in pieces: one piece each time the iterator is advanced, shorter than a step.

        Steps of other slots go in between, and the slot is stepped when the iterator has ended.
        """
        ...


@runtime_checkable
class Updating(Protocol):
    """A ``StepModel`` whose sessions may change their configuration; others keep what they began with."""

    def update(self, slot: int, config: SessionConfig) -> None:
        """It holds from the slot's next step on."""
        ...
