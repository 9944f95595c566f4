"""Bounded audio (``limits.max_history_audio_bytes``)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from counterpoint.session.audio_shelf import AudioShelf

A, B, C = ("a", 0), ("b", 0), ("c", 0)


def shelf_with(max_bytes: int, *sizes: int) -> AudioShelf:
    shelf = AudioShelf(max_bytes)
    for key, size in zip((A, B, C), sizes, strict=False):
        shelf.open(key)
        shelf.append(key, bytes(size))
    return shelf


def test_audio_is_what_was_put_there() -> None:
    shelf = shelf_with(100, 0)
    assert shelf.get(A) == b""
    for piece in (b"one", b"two", b"three"):
        shelf.append(A, piece)
        shelf.get(A)
    assert shelf.get(A) == b"onetwothree"
    assert shelf.get(B) is None


def test_the_oldest_audio_leaves_whole() -> None:
    shelf = shelf_with(100, 60, 30, 40)
    assert (shelf.get(A), shelf.get(B), shelf.get(C)) == (None, bytes(30), bytes(40))
    assert shelf.size == 70


def test_audio_that_left_does_not_come_back_in_part() -> None:
    shelf = shelf_with(100, 60, 60)
    shelf.append(A, bytes(1))
    assert shelf.get(A) is None


def test_audio_larger_than_all_room_leaves_too() -> None:
    shelf = shelf_with(100, 101)
    assert (shelf.get(A), shelf.size) == (None, 0)


def test_cutting_gives_room_back() -> None:
    shelf = shelf_with(100, 60, 40)
    shelf.cut(A, 10)
    shelf.cut(B, 99)
    shelf.cut(C, 1)
    assert (shelf.get(A), shelf.get(B), shelf.size) == (bytes(10), bytes(40), 50)


KEYS = st.sampled_from([A, B, C])


class ShelfIsBounded(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shelf = AudioShelf(50)

    @rule(key=KEYS)
    def replace(self, key: tuple[str, int]) -> None:
        self.shelf.drop(key)
        self.shelf.open(key)

    @rule(key=KEYS, size=st.integers(0, 30))
    def append(self, key: tuple[str, int], size: int) -> None:
        self.shelf.append(key, bytes(size))

    @rule(key=KEYS, size=st.integers(0, 30))
    def cut(self, key: tuple[str, int], size: int) -> None:
        self.shelf.cut(key, size)

    @rule(key=KEYS)
    def drop(self, key: tuple[str, int]) -> None:
        self.shelf.drop(key)

    @invariant()
    def counts_what_it_holds(self) -> None:
        assert self.shelf.size == sum(len(self.shelf.get(key) or b"") for key in (A, B, C)) <= 50


TestShelf = ShelfIsBounded.TestCase
