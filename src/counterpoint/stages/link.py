"""The way to a place where a stage runs.

Owns: ``Link``, ``Peer``, ``Place``.
Does not own: any of them at work (``thread``, ``process``, ``ray_actor``).
Here because: what is above it is written once, and tested on all of them.
"""

from __future__ import annotations

from typing import Protocol

from .messages import FromStage, ToStage
from .stage import StageSpec


class Peer(Protocol):
    """Who uses the stage; called on its own loop."""

    def received(self, message: FromStage) -> None: ...

    def lost(self) -> None:
        """Nothing more comes. Called once, also after ``Link.close``."""
        ...


class Link(Protocol):
    def send(self, message: ToStage) -> None:
        """In order; what is sent into a link that is lost is dropped."""
        ...

    async def close(self) -> None:
        """End the place, by force if it does not end itself. Idempotent."""
        ...


class Place(Protocol):
    async def launch(self, spec: StageSpec, peer: Peer) -> Link:
        """Make the stage in a place of its own. ``Started`` follows, or ``lost``."""
        ...
