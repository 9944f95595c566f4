"""What can happen in a simulation, and by what chance.

Owns: ``Operation``: one decision, complete in itself; ``Dice``, by which a number becomes choices; drawing
operations from a seed.
Does not own: carrying them out (``simulation``), what clients say (``vocabulary``).
Here because: a run is a list of operations and nothing else, so a part of the list is a run too, and a
failure can be shortened by leaving operations out.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterator
from typing import NamedTuple


class Kind(enum.StrEnum):
    """The values are how a trace begins to tell of them."""

    OPEN = "opens a session"
    SAY = "says"
    SAY_STALE = "says on an older connection"
    SAY_AGAIN = "says again what is not acknowledged"
    ARRIVE = "frames arrive at the server"
    READ = "reads frames"
    RESUME = "resumes"
    END = "loses a connection"
    CANCEL = "the server's task of a connection is cancelled"
    WAIT = "time passes"
    JUMP = "the clock jumps"
    CLOSE = "the server closes the session"


#: The loop runs until nothing is ready.
SETTLE = -1

#: Chances, in thousandths. What keeps a session going is frequent, what breaks it is rare.
_WEIGHTS = {
    Kind.READ: 330,
    Kind.ARRIVE: 230,
    Kind.SAY: 230,
    Kind.WAIT: 120,
    Kind.OPEN: 30,
    Kind.RESUME: 40,
    Kind.END: 16,
    Kind.SAY_AGAIN: 6,
    Kind.SAY_STALE: 6,
    Kind.CANCEL: 4,
    Kind.JUMP: 1,
    Kind.CLOSE: 1,
}

#: Older connections that operations reach, beside the newest.
_LINES = 3

#: Now and then a client reads nothing for so many operations.
_STUCK_OPERATIONS = 400
_STUCK_CHANCE = 600


class Operation(NamedTuple):
    """``line`` counts a client's connections from the newest, 0; ``amount`` is frames or milliseconds;
    ``choice`` is for ``Dice``; then the loop gets ``turns`` turns."""

    kind: Kind
    client: int = 0
    line: int = 0
    amount: int = 0
    choice: int = 0
    turns: int = SETTLE

    def __str__(self) -> str:
        match self.kind:
            case Kind.WAIT | Kind.JUMP:
                what = f"{self.kind}: {self.amount} ms"
            case Kind.READ | Kind.ARRIVE:
                what = f"client {self.client}: {self.kind}: up to {self.amount}{self._where}"
            case Kind.SAY_STALE | Kind.END | Kind.CANCEL:
                what = f"client {self.client}: {self.kind}{self._where}"
            case _:
                what = f"client {self.client}: {self.kind}"
        return what if self.turns == SETTLE else f"{what}; {self.turns} turns of the loop"

    @property
    def _where(self) -> str:
        return f" (its last connection but {self.line})" if self.line else ""


class Dice:
    """Choices out of one number: the same number makes the same choices, whatever happened before."""

    def __init__(self, choice: int) -> None:
        self._left = choice

    def roll(self, sides: int) -> int:
        """0 to ``sides`` - 1."""
        self._left, result = divmod(self._left, sides)
        return result


def draw(seed: int, clients: int) -> Iterator[Operation]:
    """Operations without end."""
    rng = random.Random(f"{seed}/operations")
    kinds = [kind for kind, weight in _WEIGHTS.items() for _ in range(weight)]
    stuck, stuck_for = 0, 0
    while True:
        dice = Dice(rng.getrandbits(160))
        kind = kinds[dice.roll(len(kinds))]
        timed = kind is Kind.WAIT or kind is Kind.JUMP
        client = dice.roll(clients)
        if not dice.roll(_STUCK_CHANCE):
            stuck, stuck_for = client, _STUCK_OPERATIONS
        stuck_for -= 1
        if kind is Kind.READ and client == stuck and stuck_for > 0:
            continue
        yield Operation(
            kind,
            client,
            0 if dice.roll(3) else dice.roll(_LINES),
            _milliseconds(dice) if timed else 1 << dice.roll(7),
            dice.roll(1 << 48),
            SETTLE if dice.roll(4) else dice.roll(4),
        )


def _milliseconds(dice: Dice) -> int:
    """Mostly less than an answer takes, sometimes longer than any timeout."""
    sort = dice.roll(100)
    most = 20 if sort < 50 else 100 if sort < 88 else 600 if sort < 99 else 6000
    return 1 + dice.roll(most)
