"""Exactly-once input: every number has one outcome (wire contract, section 2; case A-13)."""

from hypothesis import given
from hypothesis import strategies as st

from counterpoint.runtime.inbox import Inbox, Verdict


def test_numbers_are_used_in_order_and_once() -> None:
    inbox = Inbox()
    for number in (1, 2, 3):
        assert inbox.judge(number) is Verdict.ACCEPT
        inbox.use()
    assert inbox.judge(2) is Verdict.DUPLICATE
    assert inbox.last == 3


def test_a_gap_is_told_once_until_the_expected_number_comes() -> None:
    inbox = Inbox()
    assert inbox.judge(2) is Verdict.GAP
    assert [inbox.judge(n) for n in (3, 4, 2)] == [Verdict.AFTER_GAP] * 3
    assert inbox.judge(1) is Verdict.ACCEPT
    inbox.use()
    assert inbox.judge(3) is Verdict.GAP


def test_a_refusal_for_lack_of_room_does_not_use_the_number() -> None:
    inbox = Inbox()
    assert inbox.judge(1) is Verdict.ACCEPT  # and refused: not used
    assert inbox.judge(2) is Verdict.GAP
    assert inbox.judge(1) is Verdict.ACCEPT


def test_a_new_connection_may_be_told_of_the_gap_again() -> None:
    inbox = Inbox(last=5)
    assert inbox.judge(9) is Verdict.GAP
    inbox.reopen()
    assert inbox.judge(9) is Verdict.GAP


@given(st.lists(st.integers(min_value=1, max_value=20), max_size=200))
def test_whatever_arrives_each_number_is_accepted_at_most_once_and_in_order(numbers: list[int]) -> None:
    inbox = Inbox()
    used = []
    for number in numbers:
        if inbox.judge(number) is Verdict.ACCEPT:
            inbox.use()
            used.append(number)
    assert used == list(range(1, len(used) + 1))
