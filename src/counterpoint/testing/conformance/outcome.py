"""How a check says that it failed, or that it cannot run.

Owns: the two exceptions.
Does not own: checks (``check``).
Here because: peers, targets and checks all raise them.
"""

from __future__ import annotations


class Failed(Exception):
    """The server did something else than it should."""


class NotOffered(Exception):
    """The server, or its model, does not offer what the check is about."""


def require(condition: object, otherwise: str) -> None:
    """Raise ``Failed`` with ``otherwise`` unless ``condition`` holds."""
    if not condition:
        raise Failed(otherwise)
