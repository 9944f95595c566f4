"""From a run that fails to the shortest list of operations found that still fails the same way.

Owns: leaving operations out, by halves down to single ones, within a budget of time.
Does not own: carrying a list out (the caller gives it).
Here because: a failure after thousands of operations is read only if a dozen are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .operations import Operation

#: Carries a list out and tells the kind of its violation, None if there is none.
Fails = Callable[[Sequence[Operation]], str | None]


def shrink(
    operations: Sequence[Operation], kind: str, fails: Fails, in_time: Callable[[], bool]
) -> list[Operation]:
    """``operations`` end in a violation of ``kind``; so does the result. Stops when ``in_time`` says no."""
    left = list(operations)
    for client in sorted({operation.client for operation in left}):
        left = _without(left, lambda operation, client=client: operation.client == client, kind, fails)  # type: ignore[misc]
    size = len(left) // 2
    while size and in_time():
        at = len(left)
        while at > 0 and in_time():
            shorter = left[: max(0, at - size)] + left[at:]
            at -= size
            if fails(shorter) == kind:
                left = shorter
        size //= 2
    return left


def _without(
    operations: list[Operation], leave_out: Callable[[Operation], bool], kind: str, fails: Fails
) -> list[Operation]:
    shorter = [operation for operation in operations if not leave_out(operation)]
    return shorter if fails(shorter) == kind else operations
