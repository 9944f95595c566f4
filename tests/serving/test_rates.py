"""A minute that slides: never more within any sixty seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from counterpoint.serving.rates import Rates


def test_what_finds_no_room_is_told_when_there_is_some() -> None:
    rates = Rates(2)
    assert [rates.take("a", at) for at in (0.0, 10.0)] == [0.0, 0.0]
    assert rates.take("a", 30.0) == 30.0
    assert rates.take("b", 30.0) == 0.0, "everybody has a count of their own"
    assert rates.take("a", 60.0) == 0.0
    assert rates.take("a", 60.0) == 10.0


def test_without_a_limit_nothing_is_counted() -> None:
    rates = Rates(0)
    assert all(rates.take("a", 0.0) == 0.0 for _ in range(1000))


@given(st.lists(st.floats(0, 40), max_size=60), st.integers(1, 5))
def test_no_minute_has_more(gaps: list[float], most: int) -> None:
    rates, now = Rates(most), 0.0
    taken: list[float] = []
    for gap in gaps:
        now += gap
        if not rates.take("a", now):
            taken.append(now)
    for at in taken:
        assert sum(at <= other < at + 60 for other in taken) <= most
