"""A session as it is shown: the ``session`` object and the snapshot.

Owns: what is not configuration in ``session``: state, epoch, turn, capabilities, playback.
Does not own: the configuration's form (``protocol.config``), what a stock connection sees (``projection``).
Here because: ``session.created``, ``.updated`` and ``.resumed`` must show the same thing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from counterpoint.limits import Limits
from counterpoint.protocol.audio import Encoding
from counterpoint.protocol.config import SESSION_OBJECTS, render
from counterpoint.protocol.events import (
    ConversationSnapshot,
    ItemAdded,
    ItemDone,
    PlaybackPositions,
    SessionSnapshot,
    SessionUpdated,
)
from counterpoint.protocol.items import Item, ItemStatus

from .conversation import Conversation
from .input import InputLine
from .playback import PlaybackLedger
from .responses import Responses
from .state import RunState

_FORMATS = [encoding.value for encoding in Encoding]


class Description:
    def __init__(
        self,
        state: RunState,
        limits: Limits,
        conversation: Conversation,
        ledger: PlaybackLedger,
        responses: Responses,
        input: InputLine,
        *,
        resumable: bool,
    ) -> None:
        self._state = state
        self._conversation = conversation
        self._ledger = ledger
        self._responses = responses
        self._input = input
        self._capabilities = _capabilities(state, limits, resumable)

    def session(self) -> dict[str, Any]:
        """The ``session`` object in full; the projection strips it for stock connections."""
        state, active = self._state, self._responses.active
        live = {
            "id": state.session_id,
            "object": SESSION_OBJECTS[state.config.type],
            "expires_at": None,
            "state": state.lifecycle.value,
            "turn_state": self._turn_state(),
            "epoch": state.epoch,
            "turn_id": state.turn_id,
            "active_response_id": active.id if active else None,
            "capabilities": self._capabilities,
            "playback": msgspec.to_builtins(self._playback()),
        }
        return render(state.config, extended=True, live=live)

    def snapshot(self, as_of: int) -> SessionSnapshot:
        """The state after the last number that was dropped."""
        active = self._responses.active
        return SessionSnapshot(
            as_of_server_event_seq=as_of,
            session=self.session(),
            conversation=ConversationSnapshot(self._conversation.snapshot()),
            active_response=active.render() if active else None,
            playback=self._playback(),
        )

    def restated(self) -> tuple[SessionUpdated | ItemAdded | ItemDone, ...]:
        """What a stock connection gets in the snapshot's place (wire contract, section 3).

        The configuration comes first: an update may have been lost too, and where there are no items it is
        all that shows the gap.
        """
        events: list[SessionUpdated | ItemAdded | ItemDone] = [SessionUpdated(session=self.session())]
        previous: str | None = None
        for item in self._conversation.snapshot():
            events += _restated(item, previous)
            previous = item.id
        return tuple(events)

    def _playback(self) -> PlaybackPositions:
        newest = self._responses.newest
        return self._ledger.positions(newest.id, self._state.now) if newest else PlaybackPositions()

    def _turn_state(self) -> str:
        """idle, user_speaking, responding, or overlapping: both at once."""
        speaks, answers = self._input.is_spoken, self._responses.active is not None
        if answers:
            return "overlapping" if speaks else "responding"
        return "user_speaking" if speaks else "idle"


def _restated(item: Item, previous: str | None) -> tuple[ItemAdded | ItemDone, ...]:
    """An item that is still being written is done later, by an event of its own."""
    added = ItemAdded(previous_item_id=previous, item=item)
    if item.status is ItemStatus.IN_PROGRESS:
        return (added,)
    return (added, ItemDone(previous_item_id=previous, item=item))


def _capabilities(state: RunState, limits: Limits, resumable: bool) -> dict[str, Any]:
    model = state.capabilities
    unit_ms = model.step_samples * 1000 / model.input_rate
    sessions = [most for most in (limits.max_sessions, model.max_sessions) if most]
    return {
        "interaction": model.interaction.value,
        "unit_ms": unit_ms if model.interaction.native else None,
        "supports_barge_in": model.barge_in,
        "supports_session_resume": resumable,
        "supports_audio_truncate": state.can_truncate,
        "supports_text_input": model.text_input,
        "supports_video_input": model.images,
        "supports_tools": model.tools,
        "input_audio_formats": _FORMATS if model.audio_input else [],
        "output_audio_formats": _FORMATS if model.audio_output else [],
        "max_sessions": min(sessions, default=None),
    }
