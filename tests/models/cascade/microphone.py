"""The recordings as a microphone would send them.

Owns: their rate on the line.
Does not own: the recordings (``tests.models.voice.speech``), pace and silence (``cli.conversation``).
Here because: several tests speak the same recordings to a server.
"""

from __future__ import annotations

from tests.models.voice.speech import recording

from counterpoint.audio.resample import StreamingResampler
from counterpoint.protocol.audio import SESSION_RATE


def said(name: str) -> bytes:
    """A recording at the rate of the line."""
    resampler = StreamingResampler(16_000, SESSION_RATE)
    pcm = (recording(name) * 32767).astype("<i2").tobytes()
    return resampler.process(pcm) + resampler.flush()
