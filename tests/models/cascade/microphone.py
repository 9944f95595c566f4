"""The recordings as a microphone would send them.

Owns: their rate on the line.
Does not own: the recordings (``tests.models.voice.speech``), pace and silence (``cli.conversation``).
Here because: several tests speak the same recordings to a server.
"""

from __future__ import annotations

from tests.models.voice.speech import Audio, recording

from counterpoint.audio.resample import StreamingResampler
from counterpoint.protocol.audio import SESSION_RATE


def on_the_line(audio: Audio) -> bytes:
    """Sound at 16 kHz as int16 at the rate of the line."""
    resampler = StreamingResampler(16_000, SESSION_RATE)
    return resampler.process((audio * 32767).astype("<i2").tobytes()) + resampler.flush()


def said(name: str) -> bytes:
    """A recording."""
    return on_the_line(recording(name))
