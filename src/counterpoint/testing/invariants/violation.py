"""An invariant that does not hold.

Owns: ``Violation``.
Does not own: any invariant.
Here because: every check raises it, and the simulator shrinks a run until only it is left.
"""

from __future__ import annotations

import re

#: What differs between two sightings of one fault: ids, numbers, lists of them.
_PARTICULARS = re.compile(r"\[.*\]|[\w.-]*\d[\w.-]*")


class Violation(Exception):
    """``invariant`` names the rule (``CASE-INV-1``, ``one owner``); ``reason`` says what was seen instead."""

    def __init__(self, invariant: str, reason: str) -> None:
        super().__init__(f"{invariant}: {reason}")
        self.invariant = invariant
        self.reason = reason

    @property
    def kind(self) -> str:
        """The same for every sighting of one fault."""
        return f"{self.invariant}: {_PARTICULARS.sub('#', self.reason)}"
