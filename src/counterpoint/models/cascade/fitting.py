"""Making a conversation fit a small context.

Owns: what is left out, and in which order.
Does not own: how tokens are counted (the language model), which turns are worth keeping (``prompt``).
Here because: instructions and speech may have any length, and both must still be answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .stages import Message

#: Number of tokens in a prompt.
Count = Callable[[Sequence[Message]], int]


def fit(messages: Sequence[Message], count: Count, limit: int) -> list[Message]:
    """``messages`` (the system's first) in at most ``limit`` tokens.

    The system keeps the beginning of what it says, at most half of the room; then the oldest turns go; at
    last the newest message loses its beginning. The same beginning always gives the same beginning.
    """
    system = _shortened(messages[0], count, limit // 2, keep_end=False)
    rest = list(messages[1:])
    while len(rest) > 1 and count([system, *rest]) > limit:
        del rest[0]
    if not rest:
        return [system]
    return [system, _shortened(rest[0], lambda last: count([system, *last]), limit, keep_end=True), *rest[1:]]


def _shortened(message: Message, count: Count, limit: int, *, keep_end: bool) -> Message:
    """``message`` with as many of its characters as fit, by bisection."""
    if count([message]) <= limit:
        return message
    fits, too_many = 0, len(message.text)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if count([_cut(message, middle, keep_end)]) <= limit:
            fits = middle
        else:
            too_many = middle
    return _cut(message, fits, keep_end)


def _cut(message: Message, characters: int, keep_end: bool) -> Message:
    text = message.text[len(message.text) - characters :] if keep_end else message.text[:characters]
    return replace(message, text=text)
