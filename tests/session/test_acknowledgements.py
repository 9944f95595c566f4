"""The words of a listener (invariant 85)."""

from __future__ import annotations

import pytest

from counterpoint.session.acknowledgements import PHRASES, is_acknowledgement


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Mm-hmm.", "en"),
        ("  OK  ", "en"),
        ("Yeah, yeah, okay!", "en-US"),
        ("I see.", "EN"),
        ("Okay, I see, got it.", "en"),
        ("Ach so, ja.", "de-AT"),
        ("D'accord.", "fr"),
        ("C’est ça !", "fr"),
        ("¡Ajá! De acuerdo.", "es"),
    ],
)
def test_acknowledgements_are_known_however_they_are_written(text: str, language: str) -> None:
    assert is_acknowledgement(text, language)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("...", "en"),
        ("Stop.", "en"),
        ("Yeah, but wait", "en"),
        ("I see a dog", "en"),
        ("yeah yeah yeah yeah", "en"),
        ("ok " * 1000, "en"),
        ("Genau", "en"),
        ("mm", "tlh"),
    ],
)
def test_anything_else_is_speech(text: str, language: str) -> None:
    assert not is_acknowledgement(text, language)


@pytest.mark.parametrize("language", PHRASES)
def test_every_listed_phrase_is_found(language: str) -> None:
    """A phrase with a capital letter, a hyphen or an empty entry in the list could never match."""
    for phrase in PHRASES[language]:
        assert is_acknowledgement(phrase, language), phrase
