"""Interruptions that turn out to be none.

Owns: ``turn_detection.false_interruption_ms``: what is doubted, how long a verdict may take, what follows it.
Does not own: the interruption, which has happened (``turns``); what was not heard (``unheard``).
Here because: a cough and a word sound alike until the words are known. Short speech that interrupted an
answer becomes a turn only if it says something; else the rest of the answer is said again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.plugins.contract import UserTranscript, UserTranscriptFailed
from counterpoint.protocol.items import ContentPart

from .acknowledgements import is_acknowledgement
from .effects import Forget
from .out import Out
from .responses import Responses
from .state import RunState
from .turns import Turns
from .utterance import Recorded, Utterance

#: A transcript that takes longer leaves the benefit of the doubt to the user.
_VERDICT_S = 2.0


@dataclass(frozen=True, slots=True)
class _Case:
    spoken: Recorded
    respond: bool
    until: float


class Judging:
    def __init__(self, state: RunState, out: Out, turns: Turns, responses: Responses) -> None:
        self._state = state
        self._out = out
        self._turns = turns
        self._responses = responses
        self._case: _Case | None = None

    def doubts(self, utterance: Utterance, extras: Sequence[ContentPart]) -> bool:
        """Whether ``utterance``, which is over, may have been no more than noise."""
        detection = self._state.config.audio.input.turn_detection
        if utterance.unheard is None or utterance.speech_ms is None or detection is None or extras:
            return False
        return utterance.speech_ms <= detection.false_interruption_ms

    def judge(self, spoken: Recorded, *, respond: bool) -> None:
        """Wait for its words; a model that knows none leaves the length to decide."""
        self._case = _Case(spoken, respond, self._state.now + _VERDICT_S)
        if not self._state.capabilities.transcribes:
            self._take_back(self._case)

    def hear(self, transcript: UserTranscript | UserTranscriptFailed) -> None:
        """The model transcribed something."""
        case = self._case
        if case is None or transcript.input != case.spoken.utterance.input:
            return
        if isinstance(transcript, UserTranscriptFailed):
            self.settle()
        elif transcript.final and self._is_noise(transcript.text):
            self._take_back(case)
        elif transcript.final:
            self.settle()

    def settle(self) -> None:
        """No verdict will come, or it is that somebody spoke: what was said is a turn."""
        case, self._case = self._case, None
        if case is not None:
            self._turns.commit(case.spoken, (), respond=case.respond)

    def deadline(self) -> float | None:
        return None if self._case is None else self._case.until

    def expire(self) -> None:
        if self._case is not None and self._case.until <= self._state.now:
            self.settle()

    def _take_back(self, case: _Case) -> None:
        """The noise makes no item, and the answer goes on where it was not heard."""
        self._case = None
        utterance = case.spoken.utterance
        self._out.do(Forget(utterance.input))
        self._turns.forget(utterance)
        if utterance.unheard is not None and self._responses.active is None:
            self._responses.repeat(utterance.unheard)

    def _is_noise(self, text: str) -> bool:
        return not text.strip() or is_acknowledgement(text, self._state.language)
