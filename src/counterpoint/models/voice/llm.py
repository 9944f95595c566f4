"""The language model: a conversation in, its next line out, piece by piece.

Owns: prompts, which session has which slot of cached context, sampling, whole characters from byte tokens.
Does not own: the runtime's calls (``ik_llama``); what the conversation holds and where it is cut (cascade).
Here because: with a small model the prompt costs more than the answer, so what was read once is kept.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import ConfigurationError

from .cancellation import Cancelled, never, stop_if
from .fair_lock import FairLock
from .ik_llama import MAX_BATCH, GgufContext, GgufModel

#: A small model's less likely words are noise.
_TOP_K: Final = 20
#: How often a call that waits for a slot asks whether it is still wanted.
_SLOT_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation that the model continues."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(slots=True)
class _Slot:
    context: GgufContext
    #: Whose conversation the context holds; nobody's once its session has gone.
    session: str | None
    busy: bool


class LanguageModel:
    """The shared model. Any thread may call it.

    One set of weights, and up to ``slots`` contexts of about 45 MB, made when first needed. A session
    keeps its context until it is released, or until another session needs one and it is the least
    recently used; then its prompt is read again. Concurrent calls alternate token by token, because
    two at once would be slower than one after the other; calls beyond the number of slots, and a
    second call of one session, wait.
    """

    def __init__(self, path: Path, *, slots: int = 3, context_tokens: int = 768) -> None:
        self._model = GgufModel(path)
        self._context_tokens = context_tokens
        self._most_slots = slots
        self._start = self._control_token("<|im_start|>")
        self._end = self._control_token("<|im_end|>")
        self._line_end = self._model.tokenize("\n")
        #: Guards `_slots` and the fields of each slot.
        self._changed = Condition()
        #: Least recently used first.
        self._slots: list[_Slot] = []
        #: Held for one token or one prefill chunk.
        self._turn = FairLock()

    @property
    def context_tokens(self) -> int:
        """What a prompt and its answer must fit into."""
        return self._context_tokens

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Length of the prompt that ``messages`` makes."""
        return len(self._prompt(messages))

    def prefill(self, session: str, messages: Sequence[Message], cancelled: Cancelled = never) -> int:
        """Read ``messages`` ahead of time into the session's slot; returns how many tokens were new.

        Raises like `generate`.
        """
        prompt = self._fitting(self._conversation(messages))
        with self._slot(session, cancelled) as context:
            return self._read(context, prompt, cancelled)

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
        """The assistant's next message, in pieces of whole characters as they come.

        Ends where the model ends, after ``max_tokens``, or when the context is full. ``temperature``
        0 always takes the likeliest token. The session's slot is held until the iterator ends or is
        closed. Raises `StaleFence` when cancelled, which is asked at each token and prefill chunk, and
        `ValueError` when the prompt leaves no room in the context.
        """
        prompt = self._fitting(self._prompt(messages))
        room = min(max_tokens, self._context_tokens - len(prompt))
        chance = np.random.default_rng(seed)
        with self._slot(session, cancelled) as context:
            self._read(context, prompt, cancelled)
            yield from whole_characters(self._continue(context, room, temperature, chance, cancelled))

    def release(self, session: str) -> None:
        """The session has gone: its slot is the next to be given away. Harmless when it has none."""
        with self._changed:
            for slot in self._slots:
                if slot.session == session:
                    slot.session = None

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        """The conversation and the opening of the answer."""
        return [*self._conversation(messages), self._start, *self._model.tokenize("assistant\n")]

    def _conversation(self, messages: Sequence[Message]) -> list[int]:
        """ChatML. The words of a message can never become its control tokens."""
        tokens: list[int] = []
        for message in messages:
            line = self._model.tokenize(f"{message.role}\n{message.text.strip()}")
            tokens += [self._start, *line, self._end, *self._line_end]
        return tokens

    def _control_token(self, name: str) -> int:
        tokens = self._model.tokenize(name, control=True)
        if len(tokens) != 1:
            raise ConfigurationError("voice.llm", f"the model has no {name} token; choose a ChatML model")
        return tokens[0]

    def _fitting(self, prompt: list[int]) -> list[int]:
        if len(prompt) >= self._context_tokens:
            raise ValueError(f"{len(prompt)} tokens of prompt do not fit a context of {self._context_tokens}")
        return prompt

    def _read(self, context: GgufContext, prompt: list[int], cancelled: Cancelled) -> int:
        """Make ``context`` hold ``prompt``, keeping its common beginning. Returns how many were read."""
        # The last token is always read, because its scores are what comes next.
        kept = _common_prefix(context.tokens, prompt[:-1])
        context.forget_from(kept)
        for start in range(kept, len(prompt), MAX_BATCH):
            self._step(context, prompt[start : start + MAX_BATCH], cancelled)
        return len(prompt) - kept

    def _continue(
        self,
        context: GgufContext,
        room: int,
        temperature: float,
        chance: np.random.Generator,
        cancelled: Cancelled,
    ) -> Iterator[bytes]:
        """What the model writes after what ``context`` holds, token by token, at most ``room`` of them."""
        for left in reversed(range(room)):
            token = _choose(context.logits(), temperature, chance)
            if self._model.ends_generation(token):
                return
            yield self._model.piece(token)
            if left:
                self._step(context, [token], cancelled)

    def _step(self, context: GgufContext, tokens: list[int], cancelled: Cancelled) -> None:
        with self._turn:
            stop_if(cancelled)
            context.read(tokens)

    @contextmanager
    def _slot(self, session: str, cancelled: Cancelled) -> Iterator[GgufContext]:
        with self._changed:
            while (slot := self._free_slot(session)) is None:
                stop_if(cancelled)
                self._changed.wait(_SLOT_POLL_S)
            slot.session, slot.busy = session, True
        try:
            yield slot.context
        finally:
            with self._changed:
                slot.busy = False
                self._slots.remove(slot)
                self._slots.append(slot)
                self._changed.notify_all()

    def _free_slot(self, session: str) -> _Slot | None:
        """The session's own slot, else nobody's, else a new one, else the least recently used."""
        own = next((slot for slot in self._slots if slot.session == session), None)
        if own is not None:
            return None if own.busy else own
        free = [slot for slot in self._slots if not slot.busy]
        if abandoned := [slot for slot in free if slot.session is None]:
            return abandoned[0]
        if len(self._slots) < self._most_slots:
            self._slots.append(_Slot(GgufContext(self._model, self._context_tokens), session, busy=False))
            return self._slots[-1]
        return free[0] if free else None


def whole_characters(pieces: Iterable[bytes]) -> Iterator[str]:
    """UTF-8 in ``pieces`` that may end inside a character, as text that never does."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if text := decoder.decode(piece):
            yield text
    if rest := decoder.decode(b"", final=True):
        yield rest


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _choose(scores: NDArray[np.float32], temperature: float, chance: np.random.Generator) -> int:
    if temperature <= 0:
        return int(scores.argmax())
    likeliest = np.argpartition(scores, -_TOP_K)[-_TOP_K:]
    exponents = (scores[likeliest].astype(np.float64) - float(scores.max())) / temperature
    weights = np.exp(exponents)
    return int(chance.choice(likeliest, p=weights / weights.sum()))
