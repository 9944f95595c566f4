"""What tests of model plugins share: an outlet that remembers, requests, input.

Owns: these helpers.
Does not own: what any model does, virtual time (``counterpoint.testing``).
Here because: every model is driven in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from counterpoint.plugins.contract import (
    AudioDelta,
    Fence,
    HistoryItem,
    ModelEvent,
    ResponseRequest,
    StepInput,
    TextDelta,
    TurnEnd,
)

SESSION = "sess_test"

T = TypeVar("T")


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Outlet:
    """Remembers every event with its time; ``room`` can be cleared to hold the model back."""

    said: list[tuple[float, Fence, ModelEvent]] = field(default_factory=list)
    room: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.room.set()
        self._more = asyncio.Event()

    def emit(self, fence: Fence, event: ModelEvent) -> None:
        self.said.append((now(), fence, event))
        self._more.set()

    async def writable(self) -> None:
        await self.room.wait()

    def events(self, turn: int | None = None) -> list[ModelEvent]:
        return [event for _, fence, event in self.said if turn is None or fence.turn == turn]

    def of(self, kind: type[T], turn: int | None = None) -> list[T]:
        return [event for event in self.events(turn) if isinstance(event, kind)]

    def pcm(self, turn: int | None = None) -> bytes:
        return b"".join(delta.pcm for delta in self.of(AudioDelta, turn))

    def text(self, turn: int | None = None) -> str:
        """Transcript of a spoken answer, or the text of a written one."""
        deltas = [event for event in self.events(turn) if isinstance(event, AudioDelta | TextDelta)]
        return "".join(delta.text for delta in deltas)

    async def until(self, arrived: Callable[[], bool]) -> None:
        """Wait for the event after which ``arrived`` holds."""
        while not arrived():
            self._more.clear()
            await self._more.wait()

    async def ended(self, turn: int) -> TurnEnd:
        await self.until(lambda: bool(self.of(TurnEnd, turn)))
        return self.of(TurnEnd, turn)[0]


def request(turn: int = 1, *history: HistoryItem, epoch: int = 0, **changes: Any) -> ResponseRequest:
    values: dict[str, Any] = {
        "fence": Fence(SESSION, epoch, turn),
        "number": turn,
        "history": history,
        "instructions": "",
        "modalities": ("audio",),
        "voice": "default",
    }
    return ResponseRequest(**(values | changes))


def step(utterance: int, audio: bytes = b"", **changes: Any) -> StepInput:
    return StepInput(Fence(SESSION, 0), utterance, audio, real_samples=len(audio) // 2, **changes)


def user(item_id: str, text: str | None = None, **changes: Any) -> HistoryItem:
    return HistoryItem(item_id, "message", "user", text, **changes)


def assistant(item_id: str, text: str) -> HistoryItem:
    return HistoryItem(item_id, "message", "assistant", text)
