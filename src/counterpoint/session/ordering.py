"""An order that things can be put into anywhere.

Owns: which key stands before and behind which.
Does not own: what the keys stand for (``conversation``).
Here because: an item can be inserted behind any other, at the same cost however long the conversation is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)


class Ordering(Generic[_K]):
    """Distinct keys in a row. None stands for what is before the first and behind the last."""

    def __init__(self) -> None:
        self._next: dict[_K | None, _K | None] = {None: None}
        self._previous: dict[_K | None, _K | None] = {None: None}

    def __contains__(self, key: object) -> bool:
        return key is not None and key in self._next

    def __iter__(self) -> Iterator[_K]:
        key = self._next[None]
        while key is not None:
            yield key
            key = self._next[key]

    def insert(self, key: _K, behind: _K | None) -> None:
        """Put ``key`` directly behind another; None makes it the first."""
        follower = self._next[behind]
        self._next[behind] = self._previous[follower] = key
        self._previous[key], self._next[key] = behind, follower

    def append(self, key: _K) -> None:
        """Make ``key`` the last."""
        self.insert(key, self._previous[None])

    def remove(self, key: _K) -> None:
        """Close the gap. Raises ``KeyError`` for a key that is not there."""
        previous, follower = self._previous.pop(key), self._next.pop(key)
        self._next[previous], self._previous[follower] = follower, previous

    def before(self, key: _K) -> _K | None:
        """The key before; None for the first."""
        return self._previous[key]
