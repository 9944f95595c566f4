"""First clause and sentences, over text that arrives in pieces of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.models.voice.text import SentenceSplitter, count_words

CUTS = {
    "first clause ends at a mark after three words": (
        "Well, yes, I can do that, of course. It is easy.",
        ["Well, yes, I can do that,", "of course.", "It is easy."],
    ),
    "two words are not a clause": ("Of course, I can.", ["Of course, I can."]),
    "first clause ends after nine words without a mark": (
        "one two three four five six seven eight nine ten eleven. Twelve.",
        ["one two three four five six seven eight nine", "ten eleven.", "Twelve."],
    ),
    "a comma cuts only the first clause": (
        "I see it now. Then, after lunch, we go.",
        ["I see it now.", "Then, after lunch, we go."],
    ),
    "marks, quotes and brackets stay with their sentence": (
        'He asked me: "Really?" (Yes!) She left...',
        ["He asked me:", '"Really?"', "(Yes!)", "She left..."],
    ),
    "decimals, titles, initials and list numbers end nothing": (
        "It is so. Dr. J. Smith paid 3.14 dollars. 1. Buy milk.\n2. Go.",
        ["It is so.", "Dr. J. Smith paid 3.14 dollars.", "1. Buy milk.", "2. Go."],
    ),
    "a line is a sentence": ("I have three\nOne\n\nTwo", ["I have three", "One", "Two"]),
    "what cannot be said is no chunk": ("... - !\n?!", []),
}


def chunks(pieces: list[str]) -> list[str]:
    splitter = SentenceSplitter()
    return [chunk for piece in pieces for chunk in splitter.feed(piece)] + splitter.finish()


@pytest.mark.parametrize(("text", "expected"), CUTS.values(), ids=CUTS.keys())
def test_cut(text: str, expected: list[str]) -> None:
    assert chunks([text]) == expected
    assert chunks(list(text)) == expected


@given(st.lists(st.text(alphabet="ab .,?!\n1\"'", max_size=8)))
def test_cutting_does_not_depend_on_the_pieces(pieces: list[str]) -> None:
    assert chunks(pieces) == chunks(["".join(pieces)])


@given(st.text(alphabet="abc .,?!\n1\"'", max_size=80))
def test_no_word_is_lost_or_changed(text: str) -> None:
    assert count_words(" ".join(chunks(list(text)))) == count_words(text)
    assert all(chunk in text for chunk in chunks(list(text)))


def test_the_first_clause_is_out_before_the_answer_has_ended() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("I think that") == []
    assert splitter.feed(" it works,") == []
    assert splitter.feed(" mostly") == ["I think that it works,"]


def test_a_finished_splitter_has_nothing_left() -> None:
    splitter = SentenceSplitter()
    splitter.feed("A few words")
    assert splitter.finish() == ["A few words"]
    assert splitter.finish() == []


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), (" - ... ", 0), ("it's 3.5 well-known things", 4), ("你好 there", 2)]
)
def test_count_words(text: str, count: int) -> None:
    assert count_words(text) == count
