"""What passes between a stage and whoever uses it from elsewhere.

Owns: the messages of both directions.
Does not own: how they get there (``link``), what they cause (``host``, ``remote``).
Here because: both ends must agree, and a pipe carries values and no calls.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from counterpoint.plugins.contract import PluginLoad


class Method(enum.Enum):
    OPEN = "open"
    PROCESS = "process"
    CONTROL = "control"
    ABORT = "abort"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Call:
    """To the stage. ``number`` comes back with ``Returned``."""

    number: int
    method: Method
    request: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """To the stage: nobody waits for this call any more."""

    number: int


@dataclass(frozen=True, slots=True)
class Room:
    """To the stage, in answer to ``AskRoom``."""

    number: int


@dataclass(frozen=True, slots=True)
class Stop:
    """To the stage: the last message."""


@dataclass(frozen=True, slots=True)
class Started:
    """From the stage: it is warm, or it will not be (``failure``)."""

    failure: Exception | None


@dataclass(frozen=True, slots=True)
class Returned:
    """From the stage: a call is over."""

    number: int
    failure: Exception | None


@dataclass(frozen=True, slots=True)
class Said:
    """From the stage: output of a request."""

    request: str
    output: Any


@dataclass(frozen=True, slots=True)
class AskRoom:
    """From the stage: it would produce more for this request."""

    number: int
    request: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """From the stage, now and then: how busy it is."""

    load: PluginLoad


ToStage = Call | GiveUp | Room | Stop
FromStage = Started | Returned | Said | AskRoom | Loaded
