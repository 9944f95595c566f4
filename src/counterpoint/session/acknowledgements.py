"""Words by which a listener says no more than "I am listening".

Owns: those words by language, recognising an utterance that consists of them.
Does not own: what is done about it (``overlap``).
Here because: the list is data that speakers of other languages will want to extend.
"""

from __future__ import annotations

import re


def _phrases(text: str) -> frozenset[str]:
    return frozenset(phrase.strip() for phrase in text.split(","))


#: By primary language tag; in lower case and without punctuation, hyphens and apostrophes read as spaces.
PHRASES: dict[str, frozenset[str]] = {
    "en": _phrases(
        "ah, aha, alright, got it, hm, hmm, i see, mhm, mm, mm hm, mm hmm, mmm, oh, ok, okay, right, sure,"
        "uh huh, yeah, yep, yes, yup"
    ),
    "de": _phrases(
        "ach so, aha, ah, genau, gut, hm, hmm, ja, jo, klar, mhm, mm, mm hm, na klar, oh, ok, okay, richtig,"
        "stimmt, verstehe"
    ),
    "fr": _phrases(
        "ah, ah bon, ah oui, bien, bien sûr, c est ça, d accord, hein, hm, hmm, je vois, mhm, mm, mm hm, oh,"
        "ok, okay, ouais, oui, voilà"
    ),
    "es": _phrases(
        "ah, aha, ajá, bueno, claro, de acuerdo, entiendo, eso es, hm, hmm, mhm, mm, mm hm, oh, ok, okay, sí,"
        "vale, ya, ya veo"
    ),
}

#: "Yeah, yeah, okay" is an acknowledgement; a longer row of such words is likely to be more than that.
MAX_PHRASES = 3

_LONGEST_PHRASE = max(len(phrase.split()) for phrases in PHRASES.values() for phrase in phrases)

_SEPARATORS = re.compile(r"[^\w]+")


def is_acknowledgement(text: str, language: str) -> bool:
    """``text`` is one to three of the phrases known in ``language`` (a tag such as ``en`` or ``en-US``).

    No words, or a language without a list, are none.
    """
    known = PHRASES.get(language.partition("-")[0].lower())
    words = _SEPARATORS.sub(" ", text.casefold()).split()
    return bool(words) and known is not None and _consists_of(words, known, MAX_PHRASES)


def _consists_of(words: list[str], known: frozenset[str], phrases: int) -> bool:
    """``words`` can be read as at most so many of the ``known`` phrases, one after the other."""
    if not words:
        return True
    return phrases > 0 and any(
        " ".join(words[:length]) in known and _consists_of(words[length:], known, phrases - 1)
        for length in range(1, min(len(words), _LONGEST_PHRASE) + 1)
    )
