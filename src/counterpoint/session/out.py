"""The effects of one step, collected.

Owns: the list, ids of events, the ``duplex`` object that rides on them, the shape of a refusal.
Does not own: which effects there are (``effects``), their order (whoever adds them).
Here because: every part writes events, and each must carry the epoch of the moment it was written.
"""

from __future__ import annotations

import msgspec

from counterpoint.errors import ProtocolError
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.commands import BaseCommand
from counterpoint.protocol.events import Duplex, Event, TextMark, error_event
from counterpoint.protocol.ids import IdSource

from .effects import Effect, Emit, Reply, Tag
from .state import RunState

_UNSET = msgspec.UNSET


class Out:
    def __init__(self, state: RunState, ids: IdSource) -> None:
        self._state = state
        self._ids = ids
        self._effects: list[Effect] = []

    def take(self) -> list[Effect]:
        """The effects so far; the next step starts with none."""
        effects, self._effects = self._effects, []
        return effects

    def do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def emit(
        self,
        event: Event,
        tag: Tag | None = None,
        *,
        duration_ms: int | None = None,
        marks: tuple[TextMark, ...] = (),
        continues: str | None = None,
    ) -> None:
        """A session event. What follows ``tag`` is shown to extended connections only, on official events."""
        epoch = self._state.epoch
        if not kind_of(event).official:
            self.do(Emit(event, self._ids.event(), tag=tag, epoch=epoch))
            return
        duplex = Duplex(
            epoch=epoch,
            turn_id=self._state.turn_id,
            audio_duration_ms=_UNSET if duration_ms is None else duration_ms,
            audio_text_marks=marks or _UNSET,
            continues=_UNSET if continues is None else continues,
        )
        self.do(Emit(event, self._ids.event(), duplex, tag, epoch))

    def reply(self, event: Event) -> None:
        """A connection-scoped event."""
        self.do(Reply(event, self._ids.event()))

    def refuse(self, error: ProtocolError, command: BaseCommand) -> None:
        """The one answer to a command that has no effect."""
        error.event_id = error.event_id or command.event_id
        self.error(error, command.client_event_seq)

    def error(self, error: ProtocolError, client_event_seq: int | None) -> None:
        """An error about a numbered event is a session event (wire contract, section 2)."""
        if client_event_seq is None:
            self.reply(error_event(error))
        else:
            self.emit(error_event(error))
