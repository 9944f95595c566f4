"""Audio as the wire names it: an encoding and a rate, and the arithmetic between samples and time.

Owns: ``AudioFormat``, the names that clients use for it, samples <-> milliseconds.
Does not own: converting audio (``counterpoint.audio``).
Here because: client, session, plugins and audio all name formats, and must name them alike.
"""

from __future__ import annotations

import enum

import msgspec


class Encoding(enum.Enum):
    """How one sample is written. Always mono."""

    PCM16 = "audio/pcm"
    FLOAT32 = "pcm_f32le"
    ULAW = "audio/pcmu"
    ALAW = "audio/pcma"

    @property
    def sample_bytes(self) -> int:
        match self:
            case Encoding.PCM16:
                return 2
            case Encoding.FLOAT32:
                return 4
            case Encoding.ULAW | Encoding.ALAW:
                return 1


class AudioFormat(msgspec.Struct, frozen=True):
    """Mono audio: ``encoding`` and ``rate`` in samples a second."""

    encoding: Encoding
    rate: int

    @property
    def bytes_per_second(self) -> int:
        return self.encoding.sample_bytes * self.rate


#: The rate at which a session keeps time, stores input and runs detection: samples of the
#: session's input clock are samples at this rate, whatever the client's or the model's rate is.
SESSION_RATE = 24_000

PCM16_24K = AudioFormat(Encoding.PCM16, SESSION_RATE)
ULAW_8K = AudioFormat(Encoding.ULAW, 8_000)
ALAW_8K = AudioFormat(Encoding.ALAW, 8_000)

#: Input rates of ``audio/pcm`` and ``pcm_f32le`` on extended connections (wire contract, section 4).
PCM_RATES = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


def samples_to_ms(samples: int, rate: int) -> int:
    """Whole milliseconds in ``samples``, rounded down, as every duration on the wire is."""
    return samples * 1000 // rate


def ms_to_samples(ms: int, rate: int) -> int:
    """Samples in ``ms`` milliseconds, rounded down."""
    return ms * rate // 1000
