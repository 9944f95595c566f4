"""Which characters of a transcript a position in its audio stands for.

Owns: the marks of one spoken part, the interpolation between them, the rounding to whole words.
Does not own: how far the part was played (``playback``), the transcript itself (``conversation``).
Here because: every place that cuts text to what was heard must cut it alike, and never behind a word
that was not heard to its end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

#: Scripts that put no space between words: there, each character counts as a word.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x3000, 0x30FF),  # CJK punctuation, Hiragana, Katakana
    (0x3400, 0x9FFF),  # CJK ideographs
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),  # full-width forms
    (0x20000, 0x3FFFF),
)


class Alignment:
    """Audio and text of one part as they are generated. Positions are samples of one rate, and characters.

    ``aligned`` is False where the model says nothing of which text belongs to which audio: then the text
    counts as spoken when all of the audio was (invariant 113).
    """

    __slots__ = ("_aligned", "_chars", "_samples", "chars", "complete", "samples")

    def __init__(self, aligned: bool) -> None:
        self._aligned = aligned
        self._samples: list[int] = []  # marks as two columns, both rising
        self._chars: list[int] = []
        self.samples = 0  #: audio generated so far
        self.chars = 0  #: text generated so far
        self.complete = False  #: neither grows any more

    def append(self, samples: int, chars: int) -> None:
        """More audio and text."""
        self.samples += samples
        self.chars += chars

    def mark(self, samples: int, chars: int) -> None:
        """By ``samples`` of the part, ``chars`` of its text are spoken. Marks may come in any order.

        Where two marks contradict each other, the one that claims less holds.
        """
        if samples <= 0:
            return
        at = bisect_left(self._samples, samples)
        if at < len(self._samples):
            chars = min(chars, self._chars[at])
        start = at
        while start > 0 and self._chars[start - 1] > chars:
            start -= 1
        end = at + 1 if at < len(self._samples) and self._samples[at] == samples else at
        self._samples[start:end] = [samples]
        self._chars[start:end] = [chars]

    def chars_at(self, samples: int) -> int:
        """Characters spoken by ``samples``: 0 at 0, never falling, all of them at the end of a complete part.

        Between marks in proportion, without marks in proportion to all there is; behind the last mark of a
        part that still grows, no more than that mark says.
        """
        if self.complete and samples >= self.samples:
            return self.chars
        if samples <= 0 or not self._aligned:
            return 0
        if not self._samples:
            return self.chars * min(samples, self.samples) // self.samples if self.samples else 0
        at = bisect_right(self._samples, samples)
        from_samples, from_chars = (self._samples[at - 1], self._chars[at - 1]) if at else (0, 0)
        if at < len(self._samples):
            to_samples, to_chars = self._samples[at], self._chars[at]
        elif self.complete:
            to_samples, to_chars = self.samples, self.chars
        else:
            return max(0, min(from_chars, self.chars))
        from_chars, to_chars = max(0, min(from_chars, self.chars)), max(0, min(to_chars, self.chars))
        return from_chars + (to_chars - from_chars) * (samples - from_samples) // (to_samples - from_samples)


def whole_words(text: str, chars: int) -> int:
    """The largest position up to ``chars`` at which no word of ``text`` is cut in two."""
    if chars >= len(text):
        return len(text)
    while chars > 0 and not _divides(text[chars - 1], text[chars]):
        chars -= 1
    return max(chars, 0)


def _divides(before: str, after: str) -> bool:
    return before.isspace() or after.isspace() or _stands_alone(before) or _stands_alone(after)


def _stands_alone(character: str) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in _UNSPACED)
