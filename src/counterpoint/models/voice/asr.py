"""Recognition: what was said in this clip?

Owns: one shared Moonshine model (encoder, decoder, vocabulary) and the decoding loop.
Does not own: cutting the clip out of the stream, pre-roll, partial transcripts (the cascade).
Here because: the model's own package brings a second runtime and audio devices; its weights need neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .cancellation import Cancelled, never, stop_if
from .runtime import OnnxSession, load_onnx

SAMPLE_RATE: Final = 16_000
#: Shorter clips hold no word, and the model fails on them: 0.3 s.
MIN_SAMPLES: Final = 3 * SAMPLE_RATE // 10
#: Nobody speaks faster. Without a cap the model repeats itself on noise until its context is full.
_TOKENS_PER_SECOND: Final = 6.5
_SPARE_TOKENS: Final = 2

_LAYERS: Final = 6
_HEADS: Final = 8
_HEAD_SIZE: Final = 36
_START: Final = 1
_END: Final = 2
#: What the model hears in silence and breath.
_PHANTOMS: Final = frozenset({"you", "thank you"})

Cache = dict[str, NDArray[np.float32]]


class MoonshineAsr:
    """The shared model. It has no state between calls; any thread may call it."""

    def __init__(self, directory: Path) -> None:
        self._encoder = load_onnx(directory / "encoder_model.ort")
        self._decoder = load_onnx(directory / "decoder_model_merged.ort")
        self._vocabulary = read_vocabulary((directory / "tokenizer.bin").read_bytes())

    def transcribe(
        self, audio: NDArray[np.float32], cancelled: Cancelled = never
    ) -> str:
        """The English words in ``audio`` (16 kHz, -1..1, the speech of one turn with its pre-roll); "" for none.

        Raises `StaleFence` when cancelled, which is asked before every token.
        """
        raise NotImplementedError


def read_vocabulary(data: bytes) -> list[bytes]:
    """Token pieces by number, from length-prefixed records (two bytes of length from 128 up)."""
    raise NotImplementedError
