"""One budget over all logs: who gives way, and that nobody pays for it twice."""

from __future__ import annotations

import pytest

from counterpoint.delivery.budget import TotalBudget
from counterpoint.errors import ConfigurationError

from .support import fill, hand_over, new_log


@pytest.mark.parametrize("max_bytes", [0, -1])
def test_a_budget_of_nothing_is_refused(max_bytes: int) -> None:
    with pytest.raises(ConfigurationError) as refused:
        TotalBudget(max_bytes)
    assert refused.value.key == "journal.total_max_bytes"


def test_the_largest_log_gives_way_whoever_records() -> None:
    total = TotalBudget(100)
    small, large = new_log(total=total), new_log(total=total)
    fill(large, 8, size=10)
    fill(small, 2, size=10)
    fill(small, 1, size=10)
    assert (small.bytes_held, large.bytes_held) == (30, 60)


def test_the_largest_is_looked_for_again_after_every_entry() -> None:
    total = TotalBudget(100)
    logs = [new_log(total=total) for _ in range(4)]
    for log, count in zip(logs, (4, 3, 2, 1), strict=True):
        fill(log, count, size=10)
    fill(logs[3], 3, size=10)
    assert [log.bytes_held for log in logs] == [20, 20, 20, 30]


def test_logs_of_equal_size_give_way_in_the_order_of_joining() -> None:
    total = TotalBudget(60)
    logs = [new_log(total=total) for _ in range(4)]
    for log in logs[:3]:
        fill(log, 2, size=10)
    fill(logs[3], 1, size=10)
    assert [log.bytes_held for log in logs] == [10, 20, 20, 10]


def test_what_leaves_a_log_leaves_the_budget() -> None:
    total = TotalBudget(1000)
    log, other = new_log(total=total, ttl_s=60.0), new_log(total=total)
    fill(log, 5, size=10)
    fill(other, 1, size=10)
    assert total.used == 60
    hand_over(log)
    log.acknowledge(2)
    assert total.used == 40
    log.prune(60.0)
    assert total.used == 10
    fill(log, 2, size=10)
    log.close()
    other.number_and_drop_all()
    assert total.used == 0


def test_a_log_that_left_is_not_asked_to_give_way() -> None:
    total = TotalBudget(50)
    gone, log = new_log(total=total), new_log(total=total)
    fill(gone, 4, size=10)
    gone.close()
    fill(log, 6, size=10)
    assert (gone.head, log.bytes_held, total.used) == (0, 50, 50)


def test_a_full_budget_does_not_look_at_every_log_for_every_event() -> None:
    """Room is made for a part of the budget at once."""
    total = TotalBudget(6400)
    log = new_log(total=total)
    fill(log, 641, size=10)
    assert total.used == 6300
