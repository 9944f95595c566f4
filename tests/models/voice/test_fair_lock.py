"""The lock: one holder, first come first served."""

import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from counterpoint.models.voice.fair_lock import FairLock

ROUNDS = 200


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads change places as often as the interpreter can, so that races show."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def wait_for_waiters(lock: FairLock, count: int) -> None:
    """Until ``count`` threads wait for the lock; the test's time limit ends a wait in vain."""
    while lock.waiting < count:
        pass


def test_who_asks_again_at_once_comes_after_who_waited() -> None:
    lock, order = FairLock(), list[str]()

    def ask() -> None:
        for _ in range(ROUNDS):
            with lock:
                order.append("other")
                wait_for_waiters(lock, 1)

    other = Thread(target=ask)
    with lock:
        other.start()
        wait_for_waiters(lock, 1)
    for _ in range(ROUNDS):
        with lock:
            order.append("me")
            if len(order) < 2 * ROUNDS:
                wait_for_waiters(lock, 1)
    other.join(10)
    assert order == ["other", "me"] * ROUNDS


def test_waiting_threads_are_served_in_the_order_of_asking() -> None:
    lock, served = FairLock(), list[int]()

    def ask(number: int) -> None:
        with lock:
            served.append(number)

    threads = [Thread(target=ask, args=(number,)) for number in range(5)]
    with lock:
        for number, thread in enumerate(threads, start=1):
            thread.start()
            wait_for_waiters(lock, number)
        assert served == []
    for thread in threads:
        thread.join(10)
    assert served == [0, 1, 2, 3, 4]


def test_one_holder_at_a_time(eager_switching: None) -> None:
    lock, inside, most = FairLock(), list[int](), list[int]()

    def ask() -> None:
        for number in range(ROUNDS):
            with lock:
                inside.append(number)
                most.append(len(inside))
                inside.pop()

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(most) == 4 * ROUNDS
    assert max(most) == 1


def test_an_error_inside_gives_the_lock_back() -> None:
    lock = FairLock()
    with pytest.raises(KeyError), lock:
        raise KeyError
    with lock:
        pass
