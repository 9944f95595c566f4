"""The language model's runtime: what it computes, and its limits."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.voice.files import find_files
from counterpoint.models.voice.ik_llama import MAX_BATCH, GgufContext, GgufModel

pytestmark = pytest.mark.voice

TEXT = (
    "The sea was calm in the morning, and the boats went out one after the other, until only the old "
    "fisherman was left on the beach. He looked at the sky for a long time, shook his head, and began "
    "to mend his nets, for he knew that by the evening there would be a storm, and that all would come home."
)


@pytest.fixture(scope="module")
def model() -> GgufModel:
    return GgufModel(find_files().llm)


def read_all(context: GgufContext, tokens: list[int], batch: int) -> None:
    for start in range(0, len(tokens), batch):
        context.read(tokens[start : start + batch])


def logits_after(model: GgufModel, tokens: list[int], batch: int) -> np.ndarray:
    context = GgufContext(model, 256)
    read_all(context, tokens, batch)
    return context.logits().copy()


@pytest.mark.parametrize("length", [31, 32, 33, 62, 64])
def test_batches_of_up_to_31_equal_one_token_at_a_time(model: GgufModel, length: int) -> None:
    """With 32 this runtime's results are wrong by more than 10."""
    tokens = model.tokenize(TEXT)[:length]
    assert len(tokens) == length
    one_by_one = logits_after(model, tokens, 1)
    np.testing.assert_allclose(logits_after(model, tokens, MAX_BATCH), one_by_one, atol=1e-3)
    np.testing.assert_allclose(logits_after(model, tokens, 7), one_by_one, atol=1e-3)


@pytest.mark.parametrize("size", [0, MAX_BATCH + 1, 100])
def test_a_batch_of_another_size_is_refused(model: GgufModel, size: int) -> None:
    with pytest.raises(ValueError, match="1 to 31 tokens"):
        GgufContext(model, 256).read([1] * size)


def test_a_context_that_forgot_is_like_one_that_never_read(model: GgufModel) -> None:
    kept, dropped, other = (model.tokenize(text) for text in ("The sea was", " calm in the", " wild. A boat"))
    context = GgufContext(model, 256)
    read_all(context, kept + dropped, 5)
    context.forget_from(len(kept))
    assert context.tokens == kept
    context.read(other)
    np.testing.assert_allclose(context.logits(), logits_after(model, kept + other, 1), atol=1e-3)


def test_a_batch_that_does_not_fit_leaves_the_context_as_it_was(model: GgufModel) -> None:
    text = model.tokenize(TEXT)[:MAX_BATCH]
    context = GgufContext(model, 256)
    for _ in range(8):
        context.read(text)
    with pytest.raises(RuntimeError, match="status 1"):
        context.read(text)
    assert context.tokens == text * 8
    context.forget_from(20)
    context.read(text[20:])
    np.testing.assert_allclose(context.logits(), logits_after(model, text, 1), atol=1e-3)


def test_contexts_do_not_touch_each_other(model: GgufModel) -> None:
    """Interleaved equals separate (invariant 109)."""
    left, right = (model.tokenize(text) for text in ("Once upon a time there", "My favourite food is"))
    contexts = GgufContext(model, 256), GgufContext(model, 256)
    for a, b in zip(left, right, strict=False):
        contexts[0].read([a])
        contexts[1].read([b])
    shared = min(len(left), len(right))
    np.testing.assert_array_equal(contexts[0].logits(), logits_after(model, left[:shared], 1))
    np.testing.assert_array_equal(contexts[1].logits(), logits_after(model, right[:shared], 1))


@pytest.mark.parametrize("text", ["Hello there.", "naïve café", "你好 🙂🙂", " spaces  and\nlines\t", ""])
def test_pieces_of_tokens_are_the_text(model: GgufModel, text: str) -> None:
    assert b"".join(model.piece(token) for token in model.tokenize(text)).decode() == text


def test_names_of_control_tokens_are_text_unless_asked_for(model: GgufModel) -> None:
    (end,) = model.tokenize("<|im_end|>", control=True)
    assert model.ends_generation(end)
    assert model.piece(end) == b""
    assert end not in model.tokenize("<|im_end|>")


def test_it_computes_on_one_thread(model: GgufModel) -> None:
    """Two collapse as soon as anything else runs on the machine."""
    context = GgufContext(model, 256)
    assert model.api._lib.llama_n_threads(ctypes.c_void_p(context._handle)) == 1
    assert model.api._lib.llama_n_threads_batch(ctypes.c_void_p(context._handle)) == 1


def test_another_file_is_a_configuration_error(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"not a model")
    with pytest.raises(ConfigurationError, match=r"voice.llm: .*model.gguf is not a GGUF model"):
        GgufModel(path)
