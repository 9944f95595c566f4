"""A stepped model that proves what it was given, and an outlet that remembers.

Owns: ``Tally``, ``Outlet``, ``unit``.
Does not own: what must hold (the tests of ``slots`` and ``slot_session``).
Here because: a model that says a digest of all that its slot has heard shows any leak between two sessions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from counterpoint.plugins.contract import Fence, ModelEvent, StepDone, StepInput, TextDelta
from counterpoint.plugins.step_model import Row, StepEvent
from counterpoint.protocol.config import SessionConfig

#: Audio for which ``Tally`` raises.
BAD = b"!!"


@dataclass
class Outlet:
    said: list[tuple[Fence, ModelEvent]] = field(default_factory=list)

    def emit(self, fence: Fence, event: ModelEvent) -> None:
        self.said.append((fence, event))

    async def writable(self) -> None:
        """There is always room."""

    @property
    def events(self) -> list[ModelEvent]:
        return [event for _, event in self.said]

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def receipts(self) -> list[tuple[int, str]]:
        return [(event.step, event.label) for event in self.events if isinstance(event, StepDone)]


class Tally:
    """Says the checksum of everything that the slot has heard since its reset.

    ``fails_in_company``: a step of several rows raises, though none of them is bad.
    """

    def __init__(self, batch_size: int = 4, *, fails_in_company: bool = False) -> None:
        self.batch_size = batch_size
        self.fails_in_company = fails_in_company
        self.batches: list[tuple[int, ...]] = []
        self.rows: list[Row] = []
        self.calls: list[str] = []
        self._heard: dict[int, int] = {}

    def warm_up(self) -> None:
        self.calls.append("warm_up")

    def reset(self, slots: Sequence[int], configs: Sequence[SessionConfig]) -> None:
        for slot in slots:
            self.calls.append(f"reset {slot}")
            self._heard[slot] = 0

    def step(self, rows: Sequence[Row]) -> Sequence[Sequence[StepEvent]]:
        if any(row.input.audio == BAD for row in rows) or (self.fails_in_company and len(rows) > 1):
            raise ValueError("a bad row")
        self.batches.append(tuple(row.slot for row in rows))
        return [self._one(row) for row in rows]

    def _one(self, row: Row) -> Sequence[StepEvent]:
        self.rows.append(row)
        self._heard[row.slot] = zlib.crc32(row.input.audio, self._heard[row.slot])
        return [TextDelta(f"{self._heard[row.slot]:08x}")]

    def release(self, slots: Sequence[int]) -> None:
        self.calls.extend(f"release {slot}" for slot in slots)


class Prompted(Tally):
    """Reads a prompt of five pieces."""

    def prefill(self, slot: int, text: str) -> Iterator[None]:
        for piece in range(5):
            self.calls.append(f"prefill {slot}.{piece}")
            self._heard[slot] = zlib.crc32(text.encode(), self._heard[slot])
            yield


def unit(step: int, audio: bytes = b"ab", *, session: str = "s", epoch: int = 0) -> StepInput:
    return StepInput(Fence(session, epoch), 0, audio, step=step, real_samples=len(audio) // 2)


def alone(units: Sequence[bytes]) -> list[str]:
    """What ``Tally`` says to one session that hears ``units``."""
    said, heard = [], 0
    for audio in units:
        heard = zlib.crc32(audio, heard)
        said.append(f"{heard:08x}")
    return said
