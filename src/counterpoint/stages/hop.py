"""What it costs that a stage runs elsewhere.

Owns: ``Echo``, a stage that only gives back; ``measure_hops``.
Does not own: what is thought of the numbers (``cli``).
Here because: the cost of a hop is a promise, and who makes it should be able to measure it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from counterpoint.plugins.contract import PluginLoad

from .executor import Executor
from .link import Place
from .messages import Method
from .stage import StageOutlet, StageSpec


class Echo:
    """A stage whose output is its input."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._outlet: StageOutlet | None = None
        self._open: set[str] = set()

    async def start(self, outlet: StageOutlet) -> None:
        self._outlet = outlet

    async def open(self, request: str, setup: Any) -> None:
        self._open.add(request)

    async def process(self, request: str, unit: Any) -> None:
        if self._outlet is not None:
            self._outlet.emit(request, unit)

    async def control(self, request: str, command: Any) -> None:
        """There is nothing to control."""

    async def abort(self, request: str) -> None:
        """Nothing is under way for longer than its call."""

    async def close(self, request: str) -> None:
        self._open.discard(request)

    def load(self) -> PluginLoad:
        return PluginLoad(len(self._open))

    async def stop(self) -> None:
        """There is nothing to give back."""


async def measure_hops(place: Place, *, unit: bytes, hops: int) -> list[float]:
    """Seconds that one way took: half of the time until ``unit`` came back from a stage in ``place``."""
    executor = Executor(place, StageSpec(f"{__name__}:Echo", {}))
    await executor.start()
    try:
        stage = await executor.choose()
        back = _Back()
        await stage.open("hops", None, back)
        return [await _hop(back, stage.call(Method.PROCESS, "hops", unit)) for _ in range(hops)]
    finally:
        await executor.stop()


async def _hop(back: _Back, call: Any) -> float:
    back.came = asyncio.Event()
    began = time.perf_counter()
    call = asyncio.ensure_future(call)
    await back.came.wait()
    took = time.perf_counter() - began
    await call
    return took / 2


class _Back:
    """``Requester``."""

    def __init__(self) -> None:
        self.came = asyncio.Event()

    def said(self, output: Any) -> None:
        self.came.set()

    async def writable(self) -> None:
        """There is always room."""

    def lost(self) -> None:
        """The call raises."""
