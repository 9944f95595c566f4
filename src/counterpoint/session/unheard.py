"""Finds what was generated of an answer and not heard, so that it can be said again.

Owns: the two looks that this takes.
Does not own: whether an interruption was false (``judging``), saying it again (``responses``).
Here because: the answer must be looked at before the interruption cuts it, and the ledger after, when it
says what was heard.
"""

from __future__ import annotations

from dataclasses import dataclass

from counterpoint.protocol.items import Message, OutputAudio

from .alignment import whole_words
from .conversation import Conversation
from .playback import PlaybackLedger
from .response import Kind, RunningResponse, Unheard
from .responses import Responses
from .state import RunState


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it was generated, whatever was handed over of it."""

    response: RunningResponse
    item_id: str
    text: str
    audio: bytes


class Remainders:
    def __init__(
        self, state: RunState, conversation: Conversation, ledger: PlaybackLedger, responses: Responses
    ) -> None:
        self._state = state
        self._conversation = conversation
        self._ledger = ledger
        self._responses = responses

    def said(self) -> tuple[Said, ...]:
        """Before an interruption: the spoken messages of the answer that the user hears."""
        response = self._responses.newest
        if response is None or response.out_of_band:
            return ()
        spoken = [item.id for item in response.items if item.kind is Kind.SPOKEN]
        return tuple(self._said(response, item_id) for item_id in spoken if item_id in self._conversation)

    def unheard(self, said: tuple[Said, ...]) -> Unheard | None:
        """After it: what was not heard of them."""
        parts = tuple(part for each in said if any(part := self._rest(each)))
        return Unheard(said[0].response.id, said[0].response.config, parts) if parts else None

    def _said(self, response: RunningResponse, item_id: str) -> Said:
        item = self._conversation.render(item_id, audio=True)
        assert isinstance(item, Message)
        (part,) = item.content
        assert isinstance(part, OutputAudio)
        return Said(response, item_id, part.transcript or "", part.audio or b"")

    def _rest(self, said: Said) -> tuple[str, bytes]:
        now = self._state.now
        heard = whole_words(said.text, self._ledger.heard(said.item_id, now) or 0)
        played = self._ledger.played(now).get((said.item_id, 0), 0)
        size = said.response.config.audio.output.format.encoding.sample_bytes
        return said.text[heard:], said.audio[played * size :]
