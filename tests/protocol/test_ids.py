"""Ids: distinct, recognisable, and the same again for the same entropy."""

import pytest

from counterpoint.protocol.ids import IdSource


def test_kinds_can_be_told_apart_and_share_the_entropy() -> None:
    ids = IdSource("0a1b2c")
    made = [ids.event(), ids.item(), ids.response(), ids.call(), ids.conversation()]
    assert made == ["event_0a1b2c-1", "item_0a1b2c-2", "resp_0a1b2c-3", "call_0a1b2c-4", "conv_0a1b2c-5"]


def test_no_two_ids_are_alike() -> None:
    ids, others = IdSource("aa"), IdSource("ab")
    made = [source.call() for source in (ids, others) for _ in range(5000)]
    assert len(set(made)) == len(made)


def test_the_same_entropy_names_everything_alike() -> None:
    first, second = IdSource("f00d"), IdSource("f00d")
    assert [first.item() for _ in range(100)] == [second.item() for _ in range(100)]


@pytest.mark.parametrize("entropy", ["", "xyz", "AB", "a-b", 'a"'])
def test_entropy_that_would_need_escaping_is_refused(entropy: str) -> None:
    with pytest.raises(ValueError, match="hex"):
        IdSource(entropy)
