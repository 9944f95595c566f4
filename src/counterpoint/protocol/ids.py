"""Ids of events, items, responses and calls.

Owns: how an id looks and that no two are alike.
Does not own: entropy (an argument), session ids (``runtime``), ids that clients choose.
Here because: a session replayed with the same entropy must name everything alike.
"""

from __future__ import annotations

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


class IdSource:
    """Makes ids such as ``item_9f3c02d1a7b4-1k``: a prefix, the caller's entropy, one counter for all kinds.

    ``entropy`` is a short random hex string, fresh for every source: also when a session is restored,
    since the counter starts at 1. Call ids are unique over sessions by it (case G-08).
    """

    __slots__ = ("_entropy", "_last")

    def __init__(self, entropy: str) -> None:
        if not entropy or not all(c in "0123456789abcdef" for c in entropy):
            raise ValueError("entropy: a string of hex digits")
        self._entropy = entropy
        self._last = 0

    def _next(self, prefix: str) -> str:
        self._last += 1
        return f"{prefix}_{self._entropy}-{_base36(self._last)}"

    def event(self) -> str:
        return self._next("event")

    def item(self) -> str:
        return self._next("item")

    def response(self) -> str:
        return self._next("resp")

    def call(self) -> str:
        return self._next("call")

    def conversation(self) -> str:
        return self._next("conv")
