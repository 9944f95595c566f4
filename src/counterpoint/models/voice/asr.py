"""Recognition: what was said in this clip?

Owns: one shared Moonshine model (encoder, decoder, vocabulary) and the decoding loop.
Does not own: cutting the clip out of the stream, pre-roll, partial transcripts (the cascade).
Here because: the model's own package brings a second runtime and audio devices; its weights need neither.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .cancellation import Cancelled, never, stop_if
from .runtime import load_onnx

SAMPLE_RATE: Final = 16_000
#: Shorter clips hold no word, and the model fails on the shortest: 0.3 s.
MIN_SAMPLES: Final = 3 * SAMPLE_RATE // 10
#: Nobody speaks faster. Without a cap the model repeats itself on noise until its context is full.
_TOKENS_PER_SECOND: Final = 6.5
_SPARE_TOKENS: Final = 2

_LAYERS: Final = 6
_HEADS: Final = 8
_HEAD_SIZE: Final = 36
_START: Final = 1
_END: Final = 2
#: What the model hears in breath and silence.
_PHANTOM: Final = "you"

_BYTE_TOKEN: Final = re.compile(rb"<0x([0-9A-F]{2})>")
_WORD_START: Final = "\u2581"


class MoonshineAsr:
    """The shared model. It has no state between calls; any thread may call it."""

    def __init__(self, directory: Path) -> None:
        self._encoder = load_onnx(directory / "encoder_model.ort")
        self._decoder = load_onnx(directory / "decoder_model_merged.ort")
        self._vocabulary = read_vocabulary((directory / "tokenizer.bin").read_bytes())

    def transcribe(self, audio: NDArray[np.float32], cancelled: Cancelled = never) -> str:
        """The English words in ``audio`` (16 kHz, -1..1, speech of one turn with its pre-roll); "" for none.

        Raises `StaleFence` when cancelled, which is asked before every token.
        """
        if len(audio) < MIN_SAMPLES:
            return ""
        stop_if(cancelled)
        text = self._text(self._decode(audio[None], cancelled))
        return "" if text.strip(" .,!?").lower() == _PHANTOM else text

    def _decode(self, clip: NDArray[np.float32], cancelled: Cancelled) -> list[int]:
        """The likeliest tokens of ``clip`` (1, n samples), up to the model's end mark or the cap."""
        # Encoder and decoder both want the mask of the samples, not of the encoder's frames.
        mask = np.ones(clip.shape, np.int64)
        (hidden,) = self._encoder.run(None, {"input_values": clip, "attention_mask": mask})
        inputs = {"encoder_attention_mask": mask, "encoder_hidden_states": hidden, **_empty_cache()}
        tokens = [_START]
        for step in range(int(clip.shape[1] / SAMPLE_RATE * _TOKENS_PER_SECOND) + _SPARE_TOKENS):
            stop_if(cancelled)
            inputs["input_ids"] = np.array([tokens[-1:]], np.int64)
            inputs["use_cache_branch"] = np.array([step > 0])
            logits, *present = self._decoder.run(None, inputs)
            token = int(logits[0, -1].argmax())
            if token == _END:
                break
            tokens.append(token)
            # The first step computes the keys of the clip; later steps hand back empty ones.
            kept = _CACHE_NAMES if step == 0 else _GROWING_NAMES
            present_by_name = dict(zip(_CACHE_NAMES, present, strict=True))
            inputs.update({name: present_by_name[name] for name in kept})
        return tokens[1:]

    def _text(self, tokens: list[int]) -> str:
        pieces = b"".join(self._vocabulary[token] for token in tokens)
        return pieces.decode("utf-8", "ignore").replace(_WORD_START, " ").strip()


def read_vocabulary(data: bytes) -> list[bytes]:
    """Token pieces by number, from records that begin with their length (two bytes of it from 128 up)."""
    pieces: list[bytes] = []
    position = 0
    while position < len(data):
        length = data[position]
        position += 1
        if length >= 128:
            length += 128 * (data[position] - 1)
            position += 1
        piece = data[position : position + length]
        byte = _BYTE_TOKEN.fullmatch(piece)
        pieces.append(bytes([int(byte[1], 16)]) if byte else piece)
        position += length
    return pieces


#: In the order of the decoder's outputs.
_CACHE_NAMES: Final = tuple(
    f"past_key_values.{layer}.{side}.{kind}"
    for layer in range(_LAYERS)
    for side in ("decoder", "encoder")
    for kind in ("key", "value")
)
_GROWING_NAMES: Final = tuple(name for name in _CACHE_NAMES if ".decoder." in name)


def _empty_cache() -> dict[str, NDArray[np.float32]]:
    nothing = np.zeros((1, _HEADS, 0, _HEAD_SIZE), np.float32)
    return dict.fromkeys(_CACHE_NAMES, nothing)
