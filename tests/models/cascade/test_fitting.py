"""Any conversation fits, and loses what matters least."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from counterpoint.models.cascade.fitting import fit
from counterpoint.models.cascade.stages import Message


def count(messages: Sequence[Message]) -> int:
    """A token is a character here, and each message costs three more."""
    return sum(3 + len(message.text) for message in messages)


def test_what_fits_stays() -> None:
    messages = [Message("system", "be kind"), Message("user", "hi"), Message("assistant", "hello")]
    assert fit(messages, count, 100) == messages


def test_the_oldest_turns_go_first() -> None:
    messages = [Message("system", "s"), *(Message("user", f"{n} is my number") for n in range(9))]
    assert fit(messages, count, 60) == [messages[0], *messages[-3:]]


def test_long_instructions_keep_their_beginning_whatever_follows() -> None:
    """So that what a model has read of them stays good."""
    system = Message("system", "abcdefghij" * 100)
    first = fit([system, Message("user", "hi")], count, 100)
    later = fit([system, Message("user", "hi"), Message("assistant", "x" * 30)], count, 100)
    assert first[0] == later[0] == Message("system", system.text[:47])


def test_a_long_speech_keeps_its_end() -> None:
    cut = fit([Message("system", "s"), Message("user", "beginning" * 50 + "the end")], count, 40)
    assert cut[1].text.endswith("the end")
    assert count(cut) == 40


@given(
    st.text(max_size=300),
    st.lists(st.text(max_size=300), max_size=6),
    st.integers(min_value=20, max_value=400),
)
def test_it_always_fits(system: str, said: list[str], limit: int) -> None:
    messages = [Message("system", system), *(Message("user", text) for text in said)]
    fitting = fit(messages, count, limit)
    assert count(fitting) <= limit
    assert fitting[0].role == "system"
    assert len(fitting) > 1 or not said
