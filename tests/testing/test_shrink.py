"""Leaving operations out until nothing more can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from counterpoint.testing.operations import Kind, Operation
from counterpoint.testing.shrink import shrink


def always() -> bool:
    return True


def test_only_what_is_needed_is_left() -> None:
    noise = [Operation(Kind.READ, client, 0, n) for n in range(50) for client in range(3)]
    needed = [Operation(Kind.OPEN, 1), Operation(Kind.RESUME, 1), Operation(Kind.END, 1)]
    operations = [needed[0], *noise[:70], needed[1], *noise[70:], needed[2]]

    def fails(part: Sequence[Operation]) -> bool:
        return [operation for operation in part if operation in needed] == needed

    assert shrink(operations, fails, always) == needed


def test_stretches_of_time_are_joined() -> None:
    waits = [Operation(Kind.WAIT, amount=10) for _ in range(20)]

    def fails(part: Sequence[Operation]) -> bool:
        return sum(operation.amount for operation in part) >= 100

    (left,) = shrink(waits, fails, always)
    assert left.amount == 100


def test_it_stops_when_time_is_up() -> None:
    operations = [Operation(Kind.READ, amount=n) for n in range(100)]
    tried: list[int] = []

    def fails(part: Sequence[Operation]) -> bool:
        tried.append(len(part))
        return True

    assert shrink(operations, fails, lambda: not tried) == []
    assert len(tried) == 1
