"""The audio that the scripted model has heard, kept until a later turn is answered.

Owns: audio by utterance, and its bound.
Does not own: what an utterance is (``session`` numbers them).
Here because: ``echo_input`` gives back the very bytes that arrived, and a long session must not grow.
"""

from __future__ import annotations

from typing import Final

#: Utterances kept: twice as many as may wait for an answer (wire contract, section 11).
CAPACITY: Final = 8


class HeardAudio:
    """PCM by utterance, 24 kHz."""

    def __init__(self) -> None:
        self._pieces: dict[int, list[bytes]] = {}

    def add(self, utterance: int, pcm: bytes) -> None:
        self._pieces.setdefault(utterance, []).append(pcm)
        if len(self._pieces) > CAPACITY:
            self.forget(min(self._pieces))

    def forget(self, utterance: int) -> None:
        self._pieces.pop(utterance, None)

    def forget_before(self, utterance: int) -> None:
        for older in [number for number in self._pieces if number < utterance]:
            self.forget(older)

    def all_of(self, utterance: int) -> bytes:
        """Everything heard of ``utterance``; no bytes for one that is not kept."""
        return b"".join(self._pieces.get(utterance, ()))
