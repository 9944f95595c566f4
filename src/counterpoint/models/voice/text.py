"""Cutting an answer into what is spoken next, while it is still being written.

Owns: where the first clause and each sentence end, over text that arrives in pieces.
Does not own: saying it (``tts``), which words were heard (the playback ledger).
Here because: the first sound can start at the first clause; all after it sounds better in whole sentences.
"""

from __future__ import annotations

import re
from typing import Final

#: The first clause: this many words up to a mark, or the larger number without one.
FIRST_CLAUSE_WORDS: Final = 3
FIRST_CLAUSE_MOST_WORDS: Final = 9

#: A mark counts once something follows it: the dot of "3.14" or "e.g" has no space behind it.
_SENTENCE_END: Final = re.compile(r"[.!?…]+[\"”’')\]]*(?=\s)|\n")
_CLAUSE_END: Final = re.compile(r"[,;:.!?…—]+[\"”’')\]]*(?=\s)|\n")
_WORD: Final = re.compile(r"\S*\w\S*")
#: Dots that end no sentence: of a title, an initial, or the number of a list's entry.
_OTHER_DOT: Final = re.compile(
    r"(?:^|[\s(\"“‘'])(?:Mr|Mrs|Ms|Dr|St|Prof|vs|e\.g|i\.e|[A-Z])\.$|^\s*\d{1,2}\.$"
)


class SentenceSplitter:
    """Feed pieces, get speakable chunks: the first clause, then whole sentences. One per answer."""

    def __init__(self) -> None:
        self._rest = ""
        self._started = False

    def feed(self, piece: str) -> list[str]:
        """Chunks that ``piece`` completed, in order, without the space around them."""
        self._rest += piece
        chunks: list[str] = []
        while (end := self._next_end()) is not None:
            chunk, self._rest = self._rest[:end].strip(), self._rest[end:]
            if count_words(chunk):
                chunks.append(chunk)
                self._started = True
        return chunks

    def finish(self) -> list[str]:
        """What is left at the end of the answer: one chunk or none."""
        chunk, self._rest = self._rest.strip(), ""
        return [chunk] if count_words(chunk) else []

    def _next_end(self) -> int | None:
        if self._started:
            return _end_of(_SENTENCE_END, self._rest)
        clause = _end_of(_CLAUSE_END, self._rest, FIRST_CLAUSE_WORDS)
        words = list(_WORD.finditer(self._rest))
        # The last of them may still grow: one more shows that it has ended.
        full = words[FIRST_CLAUSE_MOST_WORDS - 1].end() if len(words) > FIRST_CLAUSE_MOST_WORDS else None
        ends = [end for end in (clause, full) if end is not None]
        return min(ends, default=None)


def count_words(text: str) -> int:
    """Words as spoken: runs of characters with at least one letter or digit."""
    return len(_WORD.findall(text))


def _end_of(mark: re.Pattern[str], text: str, least_words: int = 1) -> int | None:
    """Where the first chunk of ``text`` that ends in ``mark`` and has enough words ends."""
    for match in mark.finditer(text):
        chunk = text[: match.end()]
        if count_words(chunk) >= least_words and not _OTHER_DOT.search(chunk):
            return match.end()
    return None
