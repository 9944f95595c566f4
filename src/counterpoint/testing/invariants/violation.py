"""An invariant that does not hold.

Owns: ``Violation``.
Does not own: any invariant.
Here because: every check raises it, and the simulator shrinks a run until only it is left.
"""

from __future__ import annotations


class Violation(Exception):
    """``invariant`` names the rule (``CASE-INV-1``, ``one owner``); ``reason`` says what was seen instead."""

    def __init__(self, invariant: str, reason: str) -> None:
        super().__init__(f"{invariant}: {reason}")
        self.invariant = invariant
        self.reason = reason
