"""Cutting an answer into what is spoken next, while it is still being written.

Owns: where the first clause and each sentence end, over text that arrives in pieces.
Does not own: saying it (``tts``), which words were heard (the playback ledger).
Here because: the first sound can start at the first clause; everything after it sounds better in whole sentences.
"""

from __future__ import annotations


class SentenceSplitter:
    """Feed pieces, get speakable chunks. One per answer."""

    def feed(self, piece: str) -> list[str]:
        """Chunks that ``piece`` completed, in order, without the space around them."""
        raise NotImplementedError

    def finish(self) -> list[str]:
        """What is left at the end of the answer."""
        raise NotImplementedError


def count_words(text: str) -> int:
    """Words as spoken: runs of characters with at least one letter or digit."""
    raise NotImplementedError
