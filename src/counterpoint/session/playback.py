"""What was generated, handed over, played and heard of every spoken item.

Owns: the four positions of each audio part, acknowledgements, the server's guess of a silent client's
playback, the ceiling that an interruption leaves, the place at which a truncation cuts text.
Does not own: the text and the audio themselves (``conversation``), which characters a position in the
audio stands for (``alignment``), when to interrupt (``turns``).
Here because: the history may hold only what was heard, and only one place may say what that is.

Positions are samples of the session's output rate; an item has at most one audio part, at content index 0.
Times are seconds of any monotonic clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from counterpoint.plugins.contract import Mark


class Positions(NamedTuple):
    """Milliseconds of audio: generated >= sent >= played >= committed (wire contract, section 7)."""

    generated_ms: int
    sent_ms: int
    played_ms: int
    committed_ms: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Of ``item_id``, ``samples`` of audio (``audio_end_ms`` milliseconds) and at most ``chars`` characters remain.

    ``chars`` is not yet rounded to whole words; ``Conversation.limit`` and ``.truncate`` do that.
    """

    item_id: str
    samples: int
    audio_end_ms: int
    chars: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """The spoken part of an item as it stands in the conversation (see ``Conversation.spoken``)."""

    item_id: str
    samples: int
    rate: int
    chars: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The answer to an acknowledgement: the positions in force of the part that it ended in."""

    response_id: str
    item_id: str
    positions: Positions
    history_committed: bool  #: everything of the item that was handed over stands in the history


class PlaybackLedger:
    """The playback of one session's responses.

    ``model_rate`` is the rate in which marks count; ``alignment`` is the model's ``text_alignment``;
    ``policy`` is ``ack_only``, ``commit_all_on_done`` or ``auto``.
    """

    def __init__(self, model_rate: int, alignment: str, policy: str = "auto") -> None:
        raise NotImplementedError

    def set_policy(self, policy: str, now: float) -> None:
        """What counts as heard from now on; what was heard by the old policy stays."""

    # ------------------------------------------------------------------ the server's side

    def begin(self, response_id: str, rate: int) -> tuple[Cut, ...]:
        """A response starts, speaking at ``rate``.

        The table is bounded: returns what was heard of the items that had to leave it unheard, for
        ``Conversation.limit`` (usually nothing).
        """
        raise NotImplementedError

    def add_part(self, response_id: str, item_id: str) -> None:
        """A message that will be spoken starts; an acknowledgement that came too early applies now."""
        raise NotImplementedError

    def append(self, item_id: str, samples: int, chars: int, marks: Sequence[Mark] = ()) -> None:
        """More was generated. ``marks`` are relative to what was appended before and count at the model's rate."""
        raise NotImplementedError

    def complete(self, item_id: str) -> None:
        """All audio and text of the part has been generated."""
        raise NotImplementedError

    def sent(self, item_id: str, samples: int, chars: int, now: float) -> None:
        """A transport took the part up to ``samples`` and ``chars`` (see ``effects.Tag``). Never moves back."""
        raise NotImplementedError

    def done(self, response_id: str, now: float) -> None:
        """``response.done`` of an uninterrupted response was written."""
        raise NotImplementedError

    def interrupt(self, response_id: str, now: float) -> tuple[Cut, ...]:
        """Freeze what was heard of a response: no later acknowledgement raises it.

        Returns, in order, the parts that were not heard whole (empty: everything was, or nothing is known
        of the response). Report everything handed over with ``sent`` before. Idempotent.
        """
        raise NotImplementedError

    def forget(self, item_id: str) -> None:
        """The item was deleted: nothing of it stays."""
        raise NotImplementedError

    # ------------------------------------------------------------------ the client's side

    def acknowledge_response(self, response_id: str, played_ms: int, now: float) -> Acknowledged | None:
        """``played_ms`` over the audio items of a response in order. None: unknown, to be ignored."""
        raise NotImplementedError

    def acknowledge_item(
        self, item_id: str, played_ms: int, now: float, response_id: str | None = None
    ) -> Acknowledged | None:
        """``played_ms`` of one item. None: unknown or not of ``response_id``, to be ignored."""
        raise NotImplementedError

    def truncate(self, spoken: Spoken, audio_end_ms: int) -> Cut:
        """Where ``conversation.item.truncate`` cuts; the smallest of several wins.

        Raises ``ProtocolError`` with ``param`` ``audio_end_ms`` beyond the end of the audio there is.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ reading

    def positions(self, response_id: str, now: float) -> Positions:
        """Of all audio of a response; zeros when nothing is known of it."""
        raise NotImplementedError

    def heard(self, item_id: str, now: float) -> int | None:
        """Characters that were heard, not yet rounded to words. None: not in the table, all that stands counts."""
        raise NotImplementedError

    def fully_heard(self, item_id: str, now: float) -> bool:
        """Everything of the item that was, or will be, spoken was heard."""
        raise NotImplementedError

    def playing(self, now: float) -> tuple[str, ...]:
        """Responses of which something that was handed over has not been played yet, oldest first."""
        raise NotImplementedError

    def is_playing(self, now: float) -> bool:
        raise NotImplementedError
