"""All rules over recordings.

Owns: the list, and finding a rule by its name.
Does not own: any rule.
Here because: whoever checks a recording should check it against everything.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import errors, form, items, numbers, parts, responses
from .stream import Rule, Scope, Stream, Violation, joined, violations

RULES: tuple[Rule, ...] = (
    *form.RULES,
    *numbers.RULES,
    *responses.RULES,
    *parts.RULES,
    *items.RULES,
    *errors.RULES,
)

_OF_CONNECTION = tuple(rule for rule in RULES if rule.scope is Scope.CONNECTION)
_OF_SESSION = tuple(rule for rule in RULES if rule.scope is not Scope.CONNECTION)


def check_session(connections: Sequence[Stream]) -> list[Violation]:
    """What is wrong with what went over the connections of one session, in their order."""
    found = [violation for stream in connections for violation in violations(_OF_CONNECTION, stream)]
    return found + violations(_OF_SESSION, joined(connections))
