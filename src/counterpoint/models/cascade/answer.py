"""Making an answer: from the words of the user to sentences, and from sentences to their sound.

Owns: the two running stages of an answer, the length of what is said, token counts.
Does not own: prompts (``prompt``), sending (``reply``), when an answer is begun or dropped (``session``).
Here because: an answer that is prepared in a pause and one that was asked for are made in the same way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from counterpoint.models.voice.text import SentenceSplitter
from counterpoint.plugins.contract import ResponseRequest, ToolCall, TurnEnd, TurnStatus, Usage

from .ahead import Ahead
from .prompt import SORRY, is_unheard
from .stages import Finish, LanguageModel, Message, Piece, PromptRead, Stages, Synthesizer, Writing

#: Sentences written ahead of those that are spoken.
_WRITTEN_AHEAD: Final = 4
#: Sentences spoken ahead of the one that is being sent.
_SPOKEN_AHEAD: Final = 1

_SENTENCE_MARKS: Final = ".!?\u2026"
_CLOSING: Final = "\"\u201d\u2019')]"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A clause or sentence of the answer; ``text`` begins with the space that parts it from the one before.

    ``pcm`` is its sound, int16 at 24 kHz, once it has been spoken.
    """

    text: str
    pcm: bytes = b""


Part = Sentence | ToolCall | TurnEnd

#: Makes the prompt; awaited when an answer is begun.
Prompt = Callable[[], Awaitable[Sequence[Message]]]


def begin_answer(request: ResponseRequest, prompt: Prompt, stages: Stages, session: str) -> Ahead[Part]:
    """Begin the answer to ``request``. Its parts end with ``TurnEnd``, or raise what a stage raises."""
    name = f"answer {request.fence.turn}"
    writing = Writing(session, request.max_output_tokens, request.tools, request.tool_choice)
    text = _Text(stages.sentences)
    written = Ahead(_write(prompt, stages.language_model, writing, text), _WRITTEN_AHEAD, f"{name} text")
    if "audio" not in request.modalities:
        return written
    spoken = _speak(written, stages.synthesizer, request.voice)
    return Ahead(spoken, _SPOKEN_AHEAD, f"{name} voice", upstream=written)


async def _write(prompt: Prompt, model: LanguageModel, writing: Writing, text: _Text) -> AsyncGenerator[Part]:
    """Sentences and calls as the model writes them."""
    messages = await prompt()
    if is_unheard(messages):
        yield Sentence(SORRY)
        yield TurnEnd(usage=Usage())
        return
    read, tokens, finish = PromptRead(0), 0, None
    async with aclosing(model.stream(messages, writing)) as stream:
        async for item in stream:
            match item:
                case PromptRead():
                    read = item
                case ToolCall():
                    yield item
                case Finish():
                    finish = item
                case Piece():
                    tokens += item.tokens
                    for sentence in text.feed(item.text):
                        yield sentence
            if text.long_enough:
                break
    for sentence in text.finish():
        yield sentence
    if finish is None:
        cut = writing.max_tokens is not None and tokens >= writing.max_tokens and not text.long_enough
        finish = Finish(TurnStatus.MAX_OUTPUT_TOKENS if cut else TurnStatus.COMPLETED)
    if finish.tokens is not None:
        tokens = finish.tokens
    yield TurnEnd(finish.status, Usage(read.tokens, tokens, read.cached))


async def _speak(written: Ahead[Part], synthesizer: Synthesizer, voice: str) -> AsyncGenerator[Part]:
    """The same parts, with the sound of every sentence."""
    async for part in written:
        if isinstance(part, Sentence):
            yield Sentence(part.text, await synthesizer.synthesize(part.text.strip(), voice))
        else:
            yield part


class _Text:
    """Cuts what is written into sentences, and says when there are enough of them."""

    def __init__(self, sentences: int | None) -> None:
        self._splitter = SentenceSplitter()
        self._left = sentences
        self._begun = False

    @property
    def long_enough(self) -> bool:
        return self._left == 0

    def feed(self, piece: str) -> list[Sentence]:
        return self._sentences(self._splitter.feed(piece))

    def finish(self) -> list[Sentence]:
        return self._sentences(self._splitter.finish())

    def _sentences(self, chunks: Sequence[str]) -> list[Sentence]:
        sentences = []
        for chunk in chunks:
            if self.long_enough:
                break
            sentences.append(Sentence(f" {chunk}" if self._begun else chunk))
            self._begun = True
            if self._left is not None and chunk.rstrip(_CLOSING).endswith(tuple(_SENTENCE_MARKS)):
                self._left -= 1
        return sentences
