"""The language model's runtime, behind the few calls that we need.

Owns: every call into the ``ik_llama_cpp`` package, the memory that it hands out, and its batch limit.
Does not own: prompts, sessions, sampling (``llm``).
Here because: the package is small and young; another one can take its place by replacing this file.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import ConfigurationError

#: With 32 tokens or more in a batch this runtime computes wrong logits for small Q4_1 models; up to
#: 31 they equal those of one token at a time, bit for bit.
MAX_BATCH: Final = 31
#: One: with two threads, the runtime's barriers wait for whichever of them the machine has taken away.
_THREADS: Final = 1
#: The longest piece of text that one token stands for.
_PIECE_BYTES: Final = 256
_SEQUENCE: Final = 0


class GgufModel:
    """The weights and the vocabulary; shared by all contexts, only read after loading."""

    def __init__(self, path: Path) -> None:
        self.api = _complete(import_module("ik_llama_cpp._ctypes_api"))
        self.api.llama_backend_init()
        parameters = self.api.llama_model_default_params()
        parameters.n_gpu_layers = 0
        self.handle: int | None = self.api.llama_model_load_from_file(str(path).encode(), parameters)
        if not self.handle:
            raise ConfigurationError("voice.llm", f"{path} is not a GGUF model that this runtime can load")
        weakref.finalize(self, self.api.llama_free_model, self.handle).atexit = False
        self.vocabulary_size: int = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.handle))

    def tokenize(self, text: str, *, control: bool = False) -> list[int]:
        """Token numbers of ``text``. Names of control tokens in it are plain text unless ``control``."""
        data = text.encode()
        # A token stands for at least one byte; some vocabularies put one more in front.
        room = len(data) + 1
        tokens = (self.api.llama_token * room)()
        count = self.api.llama_tokenize(self.handle, data, len(data), tokens, room, False, control)
        return list(tokens[:count])

    def piece(self, token: int) -> bytes:
        """The bytes that ``token`` stands for: not always whole characters, none for a control token."""
        text = ctypes.create_string_buffer(_PIECE_BYTES)
        size = self.api.llama_token_to_piece(self.handle, token, text, _PIECE_BYTES, 0, False)
        return text.raw[: max(size, 0)]

    def ends_generation(self, token: int) -> bool:
        return bool(self.api.llama_token_is_eog(self.handle, token))


class GgufContext:
    """What the model has read: one sequence of tokens and its key/value cache. One call at a time."""

    def __init__(self, model: GgufModel, size: int) -> None:
        self._api = model.api
        self._model = model
        parameters = self._api.llama_context_default_params()
        parameters.n_ctx = size
        parameters.n_batch = parameters.n_ubatch = MAX_BATCH + 1
        parameters.n_seq_max = 1
        parameters.flash_attn = True
        parameters.n_threads = parameters.n_threads_batch = _THREADS
        self._handle = self._api.llama_init_from_model(model.handle, parameters)
        if not self._handle:
            raise MemoryError(f"no room for a context of {size} tokens")
        weakref.finalize(self, self._api.llama_free, self._handle).atexit = False
        #: The tokens in the cache, in order.
        self.tokens: list[int] = []

    def forget_from(self, position: int) -> None:
        """Drop every token from ``position`` on."""
        self._api._lib.llama_kv_cache_seq_rm(self._handle, _SEQUENCE, position, -1)
        del self.tokens[position:]

    def read(self, tokens: Sequence[int]) -> None:
        """Append 1 to `MAX_BATCH` tokens to the sequence, or raise `RuntimeError` and append none."""
        if not 1 <= len(tokens) <= MAX_BATCH:
            raise ValueError(f"a batch has 1 to {MAX_BATCH} tokens, not {len(tokens)}")
        batch = self._api.llama_batch_init(len(tokens), 0, 1)
        try:
            batch.n_tokens = len(tokens)
            for row, token in enumerate(tokens):
                batch.token[row] = token
                batch.pos[row] = len(self.tokens) + row
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = _SEQUENCE
                batch.logits[row] = row == len(tokens) - 1
            status = self._api.llama_decode(self._handle, batch)
        finally:
            self._api.llama_batch_free(batch)
        if status != 0:
            self.forget_from(len(self.tokens))
            raise RuntimeError(f"the language model's runtime failed with status {status}")
        self.tokens.extend(tokens)

    def logits(self) -> NDArray[np.float32]:
        """Scores of every token as the next one, after the last token read. A view until the next `read`."""
        scores = self._api.llama_get_logits_ith(self._handle, -1)
        return np.ctypeslib.as_array(scores, (self._model.vocabulary_size,))


_LOG_CALLBACK: Final = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
#: The runtime narrates on the error stream; what matters reaches us as a status.
_DISCARD: Final = _LOG_CALLBACK(lambda level, text, data: None)


def _complete(api: Any) -> Any:
    """The package's bindings, silenced, with the one call that it leaves undeclared."""
    library = api._lib
    library.llama_log_set.argtypes = [_LOG_CALLBACK, ctypes.c_void_p]
    library.llama_log_set.restype = None
    library.llama_log_set(_DISCARD, None)
    remove = library.llama_kv_cache_seq_rm
    remove.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
    remove.restype = ctypes.c_bool
    return api
