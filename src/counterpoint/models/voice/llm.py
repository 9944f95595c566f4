"""The language model: a conversation in, its next line out, piece by piece.

Owns: which session has which slot of cached context, prefill and sampling, whole characters out of byte tokens.
Does not own: the runtime's calls (``ik_llama``), what the conversation holds and when it is cut (the cascade).
Here because: with a small model the prompt costs more than the answer, so what was read once is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .cancellation import Cancelled, never


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation that the model continues."""

    role: Literal["system", "user", "assistant"]
    text: str


class LanguageModel:
    """The shared model. Any thread may call it; sessions take turns token by token."""

    def __init__(
        self, path: Path, *, slots: int = 4, context_tokens: int = 1024
    ) -> None:
        raise NotImplementedError

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Length of the prompt that ``messages`` makes; it and the answer must fit ``context_tokens``."""
        raise NotImplementedError

    def prefill(
        self, session: str, messages: Sequence[Message], cancelled: Cancelled = never
    ) -> int:
        """Read ``messages`` ahead of time into the session's slot; returns how many tokens that took."""
        raise NotImplementedError

    def generate(
        self,
        session: str,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
        cancelled: Cancelled = never,
    ) -> Iterator[str]:
        """The assistant's next message in pieces of whole characters, as they come.

        Raises `StaleFence` when cancelled (asked at each token and prefill chunk), `ValueError` when the
        prompt does not fit.
        """
        raise NotImplementedError
