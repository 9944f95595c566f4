"""The stage port: what can run on an executor, whichever it is.

Owns: ``Stage``, ``StageOutlet``, ``StageSpec``, ``StageLost``.
Does not own: where a stage runs (``thread``, ``process``, ``ray_actor``), what a
model is to it (``plugin_stage``).
Here because: thread, process and actor differ in how a message gets there, and in nothing else.

A stage serves many requests at once, each under an id that is used once. All calls are made on one event
loop, calls of one request in the order in which they were made. Everything that goes in or comes out can be
pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from counterpoint.errors import PluginError
from counterpoint.plugins.contract import PluginLoad


class StageLost(PluginError):
    """The place where the stage ran is gone, and with it everything that it knew."""


class StageOutlet(Protocol):
    """Where the output of a stage goes; to be called on the stage's loop."""

    def emit(self, request: str, output: Any) -> None:
        """Never blocks and never raises; output of a request that is closed is dropped."""
        ...

    async def writable(self, request: str) -> None:
        """Returns when whoever made the request has room for more."""
        ...


class Stage(Protocol):
    async def start(self, outlet: StageOutlet) -> None:
        """Load and warm up."""
        ...

    async def open(self, request: str, setup: Any) -> None: ...

    async def process(self, request: str, unit: Any) -> None:
        """Accept one unit of input; return when it is accepted."""
        ...

    async def control(self, request: str, command: Any) -> None:
        """What is no input; it may come while a unit is being accepted."""
        ...

    async def abort(self, request: str) -> None:
        """Stop working on the request; it stays open. Idempotent."""
        ...

    async def close(self, request: str) -> None:
        """Give everything of the request back. Idempotent."""
        ...

    def load(self) -> PluginLoad: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage that is still to be made: ``module:attribute``, called with ``options``."""

    target: str
    options: Mapping[str, Any]

    def make(self) -> Stage:
        module, _, attribute = self.target.partition(":")
        stage: Stage = getattr(import_module(module), attribute)(self.options)
        return stage
