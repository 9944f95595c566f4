"""What a session has heard: the utterances of its user, and the words of each.

Owns: the table of utterances and its bound, telling transcripts.
Does not own: recognition (``Transcriber``), the conversation (``prompt``), answers (``session``).
Here because: transcripts go on whatever happens to answers, and history needs the words of earlier turns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog

from counterpoint.audio.resample import StreamingResampler
from counterpoint.plugins.contract import (
    Fence,
    HistoryItem,
    ModelEvent,
    StepInput,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.audio import SESSION_RATE

from .failing import StageFailed
from .stages import INPUT_RATE, Transcriber
from .utterance import Utterance

log = structlog.get_logger(__name__)

#: Utterances kept: more than a prompt mentions, twice as many as may wait for an answer. Those whose words
#: are being found stay until they are.
CAPACITY: Final = 8

Emit = Callable[[Fence, ModelEvent], None]


class Hearing:
    """Utterances by their number; items that a client made of audio by their id."""

    def __init__(self, transcriber: Transcriber, emit: Emit) -> None:
        self._transcriber = transcriber
        self._emit = emit
        self._utterances: dict[int | str, Utterance] = {}
        self._telling: dict[asyncio.Task[None], None] = {}

    def feed(self, step: StepInput) -> bool:
        """More of an utterance. True if it is speech that whatever was made of the utterance leaves out."""
        utterance = self._utterances.get(step.input) or self._begin(step.input)
        if step.final:
            utterance.fence = step.fence
        return utterance.feed(step.audio)

    def refresh(self, number: int) -> bool:
        """Forget the words of an utterance if audio came after them. True if there are none now."""
        utterance = self._utterances.get(number)
        return utterance is not None and utterance.refresh()

    def forget(self, number: int) -> None:
        if (utterance := self._utterances.pop(number, None)) is not None:
            utterance.cancel()

    async def words(self, item: HistoryItem, *, required: bool) -> str:
        """What ``item`` says. Unless it is ``required``, one that cannot be understood says nothing."""
        if item.text is not None:
            return item.text
        utterance = self._utterance_of(item)
        if utterance is None:
            return ""
        if required:
            return await utterance.text()
        with contextlib.suppress(Exception):
            return await utterance.text()
        return ""

    def tell(self, number: int, *, failure: bool) -> None:
        """Emit the transcript of a committed utterance, once; and, if wanted, that there is none."""
        utterance = self._utterances.get(number)
        if utterance is not None and utterance.fence is not None and not utterance.told:
            utterance.told = True
            telling = self._tell(number, utterance, utterance.fence, failure)
            task = asyncio.create_task(telling, name=f"transcript {number}")
            self._telling[task] = None
            task.add_done_callback(self._telling.pop)

    async def close(self) -> None:
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
        for utterance in self._utterances.values():
            await utterance.aclose()

    async def _tell(self, number: int, utterance: Utterance, fence: Fence, failure: bool) -> None:
        try:
            text = await utterance.text()
        except Exception as error:
            if isinstance(error, StageFailed):
                log.error("transcription failed", session=fence.session, input=number, reason=str(error))
            else:
                log.error("transcription failed", session=fence.session, input=number, exc_info=error)
            if failure:
                self._emit(fence, UserTranscriptFailed(number, "the input could not be transcribed"))
        else:
            self._emit(fence, UserTranscript(number, text))

    def _utterance_of(self, item: HistoryItem) -> Utterance | None:
        if item.audio is None:
            return None if item.input is None else self._utterances.get(item.input)
        if item.id not in self._utterances:
            resampler = StreamingResampler(SESSION_RATE, INPUT_RATE)
            self._begin(item.id).feed(resampler.process(item.audio) + resampler.flush())
        return self._utterances[item.id]

    def _begin(self, key: int | str) -> Utterance:
        self._make_room()
        utterance = self._utterances[key] = Utterance(key, self._transcriber.start())
        return utterance

    def _make_room(self) -> None:
        finished = [key for key, utterance in self._utterances.items() if not utterance.busy]
        for key in finished[: max(0, len(self._utterances) - CAPACITY + 1)]:
            self._utterances.pop(key).cancel()
