"""An order that things can be put into anywhere."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from counterpoint.session.ordering import Ordering


class OrderingAgainstAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ordering: Ordering[int] = Ordering()
        self.model: list[int] = []
        self.fresh = iter(range(10_000))

    @rule()
    def append(self) -> None:
        key = next(self.fresh)
        self.ordering.append(key)
        self.model.append(key)

    @rule(where=st.integers(0, 100))
    def insert(self, where: int) -> None:
        key, at = next(self.fresh), where % (len(self.model) + 1)
        self.ordering.insert(key, self.model[at - 1] if at else None)
        self.model.insert(at, key)

    @rule(where=st.integers(0, 100))
    def remove(self, where: int) -> None:
        if self.model:
            self.ordering.remove(self.model.pop(where % len(self.model)))

    @invariant()
    def is_the_list(self) -> None:
        assert list(self.ordering) == self.model
        for before, key in zip([None, *self.model], self.model, strict=False):
            assert self.ordering.before(key) == before


TestOrdering = OrderingAgainstAList.TestCase


def test_what_is_not_there_cannot_be_removed() -> None:
    ordering: Ordering[str] = Ordering()
    ordering.append("a")
    assert "a" in ordering
    assert None not in ordering
    ordering.remove("a")
    assert "a" not in ordering
    with pytest.raises(KeyError):
        ordering.remove("a")
