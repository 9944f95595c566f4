"""A connection that plays the audio itself.

Owns: ``Player``, what delivery and the runtime ask of one.
Does not own: the playing (``serving.webrtc``), what follows from its position (``session``).
Here because: where media has a path of its own, audio goes there, and not into frames.
"""

from __future__ import annotations

from typing import Protocol

from counterpoint.protocol.audio import AudioFormat
from counterpoint.session.effects import Tag


class Player(Protocol):
    """Gets the audio of one connection, in order, and plays it one piece after the other in real time."""

    @property
    def max_lead_ms(self) -> int:
        """Audio is handed over at most so much ahead of playback: a lost connection loses no more."""
        ...

    def play(self, tag: Tag, audio: bytes, audio_format: AudioFormat) -> None:
        """An entry's audio, which ends at ``tag.samples`` of its item. Never blocks."""
        ...

    def clear(self, response_id: str) -> None:
        """Throw away, now, what is not played yet of a response."""
        ...
