"""When to dial again: soon, then ever more slowly, and not for ever (case M-06)."""

from __future__ import annotations

import itertools
import random

from counterpoint.client.backoff import Retries
from counterpoint.client.options import Backoff


def waits(retries: Retries, now: float) -> list[float]:
    """All waits of one outage that began at ``now``, if every attempt fails at once."""
    found = []
    while (wait := retries.next_wait(now)) is not None:
        found.append(wait)
        now += wait
    return found


def test_the_ceiling_doubles_up_to_its_most() -> None:
    retries = Retries(Backoff(first_s=1, factor=2, most_s=8, give_up_s=40), lambda: 1.0)
    retries.lost(0.0)
    assert waits(retries, 0.0) == [1, 2, 4, 8, 8, 8, 8]


def test_it_gives_up_when_the_trouble_has_lasted_too_long() -> None:
    retries = Retries(Backoff(give_up_s=60), random.Random(1).random)
    retries.lost(100.0)
    assert sum(waits(retries, 100.0)) <= 60
    assert retries.next_wait(160.1) is None


def test_a_connection_that_holds_starts_anew() -> None:
    retries = Retries(Backoff(first_s=1, stable_s=5, give_up_s=10), lambda: 1.0)
    retries.lost(0.0)
    first = waits(retries, 0.0)
    retries.connected(10.0)
    retries.lost(15.0)
    assert waits(retries, 15.0) == first


def test_a_connection_that_does_not_hold_changes_nothing() -> None:
    retries = Retries(Backoff(first_s=1, stable_s=5, most_s=8, give_up_s=20), lambda: 1.0)
    retries.lost(0.0)
    assert [retries.next_wait(0.0), retries.next_wait(1.0)] == [1, 2]
    retries.connected(3.0)
    retries.lost(7.9)
    assert retries.next_wait(7.9) == 4
    assert retries.next_wait(12.1) is None


def test_the_first_connection_counts_too() -> None:
    retries = Retries(Backoff(first_s=1, stable_s=5), lambda: 0.5)
    retries.connected(0.0)
    retries.lost(1.0)
    assert retries.next_wait(1.0) == 0.5


def test_a_hundred_clients_that_are_dropped_at_once_do_not_storm() -> None:
    """Case M-06: each is accepted and dropped at once, for a minute."""
    dice = random.Random(7)
    attempts: list[float] = []
    for _ in range(100):
        retries = Retries(Backoff(), dice.random)
        now = 0.0
        retries.lost(now)
        while (wait := retries.next_wait(now)) is not None:
            now += wait
            attempts.append(now)
            retries.connected(now)
            retries.lost(now)
    by_second = [sum(second <= at < second + 1 for at in attempts) for second in range(61)]
    assert by_second[0] < 500  # all begin together, and are told to be quick
    assert max(by_second[10:]) < 60
    assert len(attempts) < 3000
    in_the_first_quarter = sorted(at for at in attempts if at < 0.25)
    assert max(b - a for a, b in itertools.pairwise(in_the_first_quarter)) < 0.05
