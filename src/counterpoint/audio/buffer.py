"""The recent input of a session, addressed by the session's input clock.

Owns: the samples between two positions of the clock, while somebody may still need them.
Does not own: what is needed (``TurnSegmenter.keep_from``), the longest turn allowed (``session``).
Here because: a turn is known to have begun only after it has, and its padding lies before it. Keeping
just that much keeps memory bounded however long a session lasts (case C-15).
"""

from __future__ import annotations

_SAMPLE_BYTES = 2


class UtteranceBuffer:
    """The newest at most ``max_samples`` of canonical PCM, oldest dropped first.

    Positions are samples since the session began. Appending and dropping cost, on average, a time
    proportional to the bytes concerned, not to those held: a ``bytearray`` gives up its front by
    moving its start.
    """

    def __init__(self, max_samples: int) -> None:
        self._max_samples = max_samples
        self._pcm = bytearray()
        self._start = 0

    @property
    def start_sample(self) -> int:
        """The oldest sample held, or ``end_sample`` when empty."""
        return self._start

    @property
    def end_sample(self) -> int:
        """One past the newest sample: the session's input clock."""
        return self._start + len(self._pcm) // _SAMPLE_BYTES

    def append(self, pcm: bytes) -> None:
        """Adds whole samples at the end, else ValueError."""
        if len(pcm) % _SAMPLE_BYTES:
            raise ValueError("canonical audio ends inside a sample")
        self._pcm += pcm
        self.drop_before(self.end_sample - self._max_samples)

    def slice(self, start: int, end: int) -> bytes:
        """The samples [start, end). ValueError where they are not all held: cut audio is never passed on."""
        if not self._start <= start <= end <= self.end_sample:
            raise ValueError(f"[{start}, {end}) is not within [{self._start}, {self.end_sample})")
        origin = self._start * _SAMPLE_BYTES
        return bytes(memoryview(self._pcm)[start * _SAMPLE_BYTES - origin : end * _SAMPLE_BYTES - origin])

    def drop_before(self, sample: int) -> None:
        """Forgets what is older than ``sample``; a position outside the buffer is clamped."""
        count = min(max(sample, self._start), self.end_sample) - self._start
        del self._pcm[: count * _SAMPLE_BYTES]
        self._start += count
