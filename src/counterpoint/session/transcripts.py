"""The words of the user's turns, whenever they come.

Owns: which utterance is which item, the transcription events, pieces that come before the commit.
Does not own: transcribing (the model), the transcript itself (``conversation``).
Here because: transcripts are fenced by their item and by nothing else: an interruption loses none, and
those of several turns come in any order (case J-03).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from counterpoint.plugins.contract import UserTranscript, UserTranscriptFailed
from counterpoint.protocol.codes import ErrorClass
from counterpoint.protocol.events import (
    DurationUsage,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
)

from .conversation import Conversation
from .out import Out
from .state import RunState

Transcript = UserTranscript | UserTranscriptFailed

#: Utterances that a transcript may still come for; a model that was not asked for one sends none.
_EXPECTED = 256


@dataclass(slots=True)
class _Utterance:
    item_id: str = ""  #: empty until it is committed
    seconds: float = 0.0
    early: list[Transcript] = field(default_factory=list)


class Transcripts:
    def __init__(self, state: RunState, out: Out, conversation: Conversation) -> None:
        self._state = state
        self._out = out
        self._conversation = conversation
        #: Utterances whose transcript is not complete, by the number of the input.
        self._utterances: dict[int, _Utterance] = {}

    def expect(self, input: int) -> None:
        """Utterance ``input`` began."""
        if self._state.capabilities.transcribes:
            self._utterances[input] = _Utterance()
        if len(self._utterances) > _EXPECTED:
            del self._utterances[next(iter(self._utterances))]

    def forget(self, input: int) -> None:
        """It was dropped before it was committed."""
        self._utterances.pop(input, None)

    def commit(self, input: int, item_id: str, seconds: float) -> None:
        """It became ``item_id``, which has been announced."""
        utterance = self._utterances.get(input)
        if utterance is None:
            return
        utterance.item_id, utterance.seconds = item_id, seconds
        early, utterance.early = utterance.early, []
        for transcript in early:
            self.take(transcript)

    def words(self, input: int) -> str:
        """What is known of an utterance that is still being spoken."""
        utterance = self._utterances.get(input)
        early = () if utterance is None else utterance.early
        return "".join(piece.text for piece in early if isinstance(piece, UserTranscript))

    def take(self, transcript: Transcript) -> None:
        """News of an utterance; ignored when it was dropped, or is complete already."""
        utterance = self._utterances.get(transcript.input)
        if utterance is None:
            return
        if not utterance.item_id:
            utterance.early.append(transcript)
            return
        final = isinstance(transcript, UserTranscriptFailed) or transcript.final
        if final:
            del self._utterances[transcript.input]
        if utterance.item_id in self._conversation:
            self._apply(utterance, transcript)

    def _apply(self, utterance: _Utterance, transcript: Transcript) -> None:
        if isinstance(transcript, UserTranscript) and transcript.final:
            self._conversation.set_transcript(utterance.item_id, transcript.text)
        if self._state.config.audio.input.transcription is not None:
            self._out.emit(_event(utterance, transcript))


def _event(
    utterance: _Utterance, transcript: Transcript
) -> TranscriptionDelta | TranscriptionCompleted | TranscriptionFailed:
    item_id = utterance.item_id
    match transcript:
        case UserTranscript(text=text, final=False):
            return TranscriptionDelta(item_id=item_id, content_index=0, delta=text)
        case UserTranscript(text=text):
            usage = DurationUsage(utterance.seconds)
            return TranscriptionCompleted(item_id=item_id, content_index=0, transcript=text, usage=usage)
        case UserTranscriptFailed(message=message):
            error = TranscriptionError(type=ErrorClass.SERVER, code="transcription_failed", message=message)
            return TranscriptionFailed(item_id=item_id, content_index=0, error=error)
