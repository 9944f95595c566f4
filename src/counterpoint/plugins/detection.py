"""What a plugin may bring to find speech and the end of turns, besides its model.

Owns: the protocols ``SpeechDetector`` and ``TurnModel``.
Does not own: threads, batching and the order of a session's audio (``runtime.detection``), what speech means
(``audio.turns``, ``session``).
Here because: detection is the dearest work of a server, so one copy of a detector serves all sessions, and
whoever has loaded speech models anyway can lend them to it.

Audio is the session's: mono little-endian int16 at 24 kHz. Methods block; each object is called from one
thread at a time, and never from the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SpeechDetector(Protocol):
    """Is somebody speaking? One copy for all sessions, with a state for each."""

    @property
    def name(self) -> str:
        """What clients call it in ``turn_detection.detector``."""
        ...

    def new_state(self) -> Any:
        """What the detector must remember of one session, as it is before any audio."""
        ...

    def probabilities(self, chunks: Sequence[tuple[Any, bytes]]) -> list[list[float]]:
        """For each (state, audio that follows) the speech probabilities of the 32 ms frames it completed.

        A frame is 768 samples from the beginning of the state's stream, whatever the pieces were
        (invariant 105). A state appears once per call. No row depends on its neighbours (invariant 109).
        """
        ...


@runtime_checkable
class TurnModel(Protocol):
    """Has the speaker finished, or only paused?"""

    def probability(self, pcm: bytes) -> float:
        """How likely it is, 0 to 1, that the turn in ``pcm`` (from its onset to a pause) is over."""
        ...
