"""What a check is.

Owns: ``Check``, and the decorator that makes one of a coroutine function.
Does not own: any check, running them (``run``).
Here because: the modules with the checks should hold nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .target import Target


class Needs(enum.Enum):
    """What a server must offer for a check to make sense."""

    API = "the Realtime API"
    EXTENSIONS = "the session extensions"
    SCRIPT = "the scripted model"


Run = Callable[[Target], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """``run`` raises ``Failed`` or ``NotOffered``. ``section`` is that of the wire contract.

    ``alone``: others would suffer beside it.
    """

    name: str
    section: str
    says: str
    needs: Needs
    run: Run
    alone: bool = False


def check(
    name: str, section: str, says: str, needs: Needs = Needs.API, *, alone: bool = False
) -> Callable[[Run], Check]:
    return lambda run: Check(name, section, says, needs, run, alone)
