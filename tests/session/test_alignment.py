"""Text by position in the audio (invariants 112 and 113, CASE-INV-11)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from counterpoint.session.alignment import Alignment, whole_words

TEXT = "one two three four"


def aligned(samples: int, chars: int, *marks: tuple[int, int], complete: bool = True) -> Alignment:
    alignment = Alignment(aligned=True)
    for mark in marks:
        alignment.mark(*mark)
    alignment.append(samples, chars)
    alignment.complete = complete
    return alignment


@pytest.mark.parametrize(
    ("samples", "chars"),
    [(0, 0), (-5, 0), (50, 5), (100, 10), (150, 25), (200, 40), (250, 45), (300, 50), (999, 50)],
)
def test_between_marks_text_is_interpolated(samples: int, chars: int) -> None:
    assert aligned(300, 50, (100, 10), (200, 40)).chars_at(samples) == chars


def test_without_marks_text_goes_with_the_audio() -> None:
    alignment = aligned(300, 50)
    assert [alignment.chars_at(samples) for samples in (0, 75, 150, 300)] == [0, 12, 25, 50]


def test_unaligned_text_is_spoken_when_all_audio_was() -> None:
    """Invariant 113."""
    alignment = Alignment(aligned=False)
    alignment.append(300, 50)
    assert alignment.chars_at(300) == 0
    alignment.complete = True
    assert [alignment.chars_at(samples) for samples in (299, 300)] == [0, 50]


def test_behind_the_last_mark_a_growing_part_claims_nothing() -> None:
    """The text may run ahead of the audio by any length: only its end says where it ends."""
    alignment = aligned(200, 50, (100, 10), complete=False)
    assert alignment.chars_at(200) == 10
    alignment.append(100, 0)
    alignment.complete = True
    assert [alignment.chars_at(samples) for samples in (200, 300)] == [30, 50]


def test_a_mark_may_lie_ahead_of_its_audio() -> None:
    alignment = aligned(100, 40, (400, 40), complete=False)
    assert alignment.chars_at(100) == 10


def test_marks_beyond_the_text_are_clamped() -> None:
    alignment = aligned(200, 20, (100, 500))
    assert [alignment.chars_at(samples) for samples in (50, 100, 150)] == [10, 20, 20]
    assert aligned(200, 20, (100, -7)).chars_at(100) == 0


def test_marks_in_any_order_say_the_same() -> None:
    marks = [(100, 10), (200, 30), (300, 40)]
    forwards, backwards = aligned(400, 50, *marks), aligned(400, 50, *reversed(marks))
    assert [forwards.chars_at(at) for at in range(400)] == [backwards.chars_at(at) for at in range(400)]


@pytest.mark.parametrize("marks", [[(100, 40), (200, 20)], [(200, 20), (100, 40)]])
def test_of_contradicting_marks_the_smaller_claim_holds(marks: list[tuple[int, int]]) -> None:
    assert aligned(300, 50, *marks).chars_at(100) <= 20


@pytest.mark.parametrize("marks", [[(100, 40), (100, 20)], [(100, 20), (100, 40)]])
def test_of_two_marks_at_one_place_the_smaller_claim_holds(marks: list[tuple[int, int]]) -> None:
    assert aligned(200, 50, *marks).chars_at(100) == 20


@given(
    marks=st.lists(st.tuples(st.integers(-10, 400), st.integers(-10, 80)), max_size=12),
    samples=st.integers(1, 300),
    chars=st.integers(0, 60),
    complete=st.booleans(),
    aligned_text=st.booleans(),
)
@example(marks=[(1, -10)], samples=2, chars=1, complete=False, aligned_text=True)
def test_text_rises_with_the_audio_from_nothing_to_everything(
    marks: list[tuple[int, int]], samples: int, chars: int, complete: bool, aligned_text: bool
) -> None:
    """Invariant 112, whatever the marks."""
    alignment = Alignment(aligned_text)
    for mark in marks:
        alignment.mark(*mark)
    alignment.append(samples, chars)
    alignment.complete = complete
    spoken = [alignment.chars_at(at) for at in range(samples + 1)]
    assert spoken == sorted(spoken)
    assert spoken[0] == 0
    assert spoken[-1] <= chars
    if complete:
        assert spoken[-1] == chars


@given(marks=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 60)), max_size=12))
def test_no_mark_is_overstepped(marks: list[tuple[int, int]]) -> None:
    """At a mark, no more text is claimed than it says (CASE-INV-11)."""
    alignment = aligned(300, 60, *marks, complete=False)
    for samples, chars in marks:
        assert alignment.chars_at(samples) <= chars


@pytest.mark.parametrize(
    ("chars", "kept"),
    [
        (-3, ""),
        (0, ""),
        (2, ""),
        (3, "one"),
        (4, "one "),
        (6, "one "),
        (7, "one two"),
        (17, "one two three "),
        (18, TEXT),
        (99, TEXT),
    ],
)
def test_words_are_kept_whole(chars: int, kept: str) -> None:
    assert TEXT[: whole_words(TEXT, chars)] == kept


@pytest.mark.parametrize(
    ("text", "chars", "kept"),
    [
        ("Don't stop", 3, ""),
        ("It is 3.14 now", 8, "It is "),
        ("今日は晴れです", 3, "今日は"),
        ("สวัสดี", 2, "สว"),
        ("你好 hello", 5, "你好 "),
        ("안녕하세요 여러분", 3, ""),
        ("a\nb", 1, "a"),
    ],
)
def test_a_word_is_what_its_script_calls_one(text: str, chars: int, kept: str) -> None:
    assert text[: whole_words(text, chars)] == kept


@given(text=st.text(alphabet="ab ñ今\n'", max_size=40), chars=st.integers(-2, 45))
def test_rounding_never_adds_and_is_stable(text: str, chars: int) -> None:
    kept = whole_words(text, chars)
    assert 0 <= kept <= max(0, min(chars, len(text)))
    assert whole_words(text, kept) == kept
