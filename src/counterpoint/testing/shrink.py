"""From a run that fails to the shortest list of operations found that still fails the same way.

Owns: leaving operations out, by clients, then by halves down to single ones, within a budget of time.
Does not own: carrying a list out (the caller gives it).
Here because: a failure after thousands of operations is read only if a dozen are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .operations import Kind, Operation

#: Carries a list out; whether it fails in the same way.
Fails = Callable[[Sequence[Operation]], bool]


def shrink(operations: Sequence[Operation], fails: Fails, in_time: Callable[[], bool]) -> list[Operation]:
    """``operations`` fail; so does what is returned. Stops when ``in_time`` says no."""
    left = _without_clients(list(operations), fails, in_time)
    size = len(left) // 2
    while size and in_time():
        left = _without_pieces(left, size, fails, in_time)
        size //= 2
    return _with_merged_waits(left, fails, in_time)


def _without_clients(left: list[Operation], fails: Fails, in_time: Callable[[], bool]) -> list[Operation]:
    """A failure rarely needs more than one client."""
    for client in sorted({operation.client for operation in left}):
        shorter = [operation for operation in left if operation.client != client]
        if in_time() and fails(shorter):
            left = shorter
    return left


def _without_pieces(
    left: list[Operation], size: int, fails: Fails, in_time: Callable[[], bool]
) -> list[Operation]:
    """From the end to the beginning: what comes late depends on what comes early."""
    at = len(left)
    while at > 0 and in_time():
        shorter = left[: max(0, at - size)] + left[at:]
        at -= size
        if fails(shorter):
            left = shorter
    return left


def _with_merged_waits(left: list[Operation], fails: Fails, in_time: Callable[[], bool]) -> list[Operation]:
    """Two stretches of time in a row are one."""
    at = len(left) - 1
    while at > 0 and in_time():
        first, second = left[at - 1], left[at]
        if first.kind is Kind.WAIT and second.kind is Kind.WAIT:
            merged = second._replace(amount=first.amount + second.amount)
            shorter = [*left[: at - 1], merged, *left[at + 1 :]]
            if fails(shorter):
                left = shorter
        at -= 1
    return left
