"""A client that says anything at any time, about anything that there is, was or never will be.

Owns: drawing a command.
Does not own: sending it, what must come of it (``listener``).
Here because: every command of the wire in every state of a session is more than a table can hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import PCM16_24K, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearAudio,
    ClearOutput,
    CloseSession,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    Scheduling,
    TruncateItem,
    UpdateSession,
)
from counterpoint.protocol.items import (
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    Item,
    ItemReference,
    Message,
    OutputText,
    Role,
)
from counterpoint.protocol.response_options import ResponseOptions

from .driver import MANUAL, tone, vad
from .listener import Listener

_PICTURE = "data:image/png;base64,AA=="

#: What an update may ask for; the last ones are refused.
_PATCHES: tuple[dict[str, Any], ...] = (
    MANUAL,
    vad(silence_duration_ms=200),
    vad(interrupt_response=False),
    vad(idle_timeout_ms=2000),
    {"instructions": "be brief"},
    {"overlap_policy": "graded"},
    {"overlap_policy": "barge_in_on_speech"},
    {"output_modalities": ["text"]},
    {"output_modalities": ["audio"]},
    {"audio": {"output": {"voice": "alto"}}},
    {"overlap_policy": "shout"},
    {"no_such_field": 1},
)

Draw = Callable[[dict[str, Any]], Command]


class RandomCommands:
    """``duplex``: the client speaks all the time, so commits alone start answers."""

    def __init__(self, rng: random.Random, listener: Listener) -> None:
        self._rng = rng
        self._listener = listener
        self._draws: tuple[Draw, ...] = (
            *([self._append] * 10),
            *([self._commit] * 3),
            *([self._item] * 4),
            *([self._respond] * 4),
            *([self._acknowledge] * 4),
            *([self._cancel] * 2),
            lambda header: AppendText(text=self._rng.choice(("typed", "")), **header),
            lambda header: ClearAudio(**header),
            lambda header: CancelInput(**header),
            lambda header: BargeIn(**header),
            lambda header: ClearOutput(response_id=self._maybe(listener.responses), **header),
            lambda header: RetrieveItem(item_id=self._known(listener.items), **header),
            lambda header: DeleteItem(item_id=self._known(listener.items), **header),
            self._truncate,
            lambda header: UpdateSession(patch=self._rng.choice(_PATCHES), **header),
        )

    def next(self) -> tuple[Command | ProtocolError, str, bool]:
        """A command, or the refusal of one that could not be read; its id; whether its effect shows."""
        header = self._listener.next_header()
        event_id: str = header["event_id"]
        if self._rng.random() < 0.01:
            return ProtocolError(ErrorCode.INVALID_EVENT, "no such event", **header), event_id, True
        if self._rng.random() < 0.002:
            return CloseSession(**header), event_id, False
        command = self._rng.choice(self._draws)(header)
        return command, event_id, isinstance(command, CreateResponse | CreateItem)

    def _known(self, ids: list[str]) -> str:
        """Mostly one of the newest, else any that ever was, or never."""
        return self._rng.choice(ids[-4:] if self._rng.random() < 0.7 else ids)

    def _maybe(self, ids: list[str]) -> str | None:
        return self._known(ids) if self._rng.random() < 0.5 else None

    # ------------------------------------------------------------------ input

    def _append(self, header: dict[str, Any]) -> Command:
        rng = self._rng
        audio = tone(rng.choice((20, 100, 300, 600)), rng.choice((0.0, 0.9)))
        if rng.random() < 0.1:
            audio = audio[: rng.choice((0, -1, -480))]
        return AppendAudio(
            audio=audio,
            format=rng.choice((None, None, None, PCM16_24K, AudioFormat(Encoding.PCM16, 16_000))),
            is_speech=rng.choice((None, None, None, True, False)),
            video_frames=(_PICTURE,) if rng.random() < 0.05 else (),
            **header,
        )

    def _commit(self, header: dict[str, Any]) -> Command:
        return CommitAudio(response_create=self._rng.choice((None, None, True, False)), **header)

    # ------------------------------------------------------------------ items

    def _item(self, header: dict[str, Any]) -> Command:
        previous = self._rng.choice((None, None, "root", self._known(self._listener.items)))
        scheduling = self._rng.choice((*Scheduling, Scheduling.SILENT))
        item = self._content(f"own_{header['event_id']}")
        return CreateItem(item=item, previous_item_id=previous, scheduling=scheduling, **header)

    def _content(self, item_id: str) -> Item:
        match self._rng.randrange(6):
            case 0 | 1:
                call_id = self._known(self._listener.calls)
                return FunctionCallOutput(id=item_id, call_id=call_id, output="42")
            case 2:
                audio, picture = InputAudio(audio=tone(40, 0.5), transcript="hm"), InputImage(_PICTURE)
                return Message(id=item_id, role=Role.USER, content=(audio, picture))
            case 3:
                return Message(id=item_id, role=Role.ASSISTANT, content=(OutputText("so I said"),))
            case _:
                return Message(id=item_id, role=Role.USER, content=(InputText("hello"),))

    def _truncate(self, header: dict[str, Any]) -> Command:
        return TruncateItem(
            item_id=self._known(self._listener.items),
            content_index=self._rng.choice((0, 0, 0, 1)),
            audio_end_ms=self._rng.randrange(900),
            **header,
        )

    # ------------------------------------------------------------------ answers

    def _respond(self, header: dict[str, Any]) -> Command:
        rng = self._rng
        given = (ItemReference(self._known(self._listener.items)),) if rng.random() < 0.1 else None
        options = ResponseOptions(
            metadata={"command": header["event_id"]},
            out_of_band=rng.random() < 0.2,
            output_modalities=rng.choice((None, None, ("text",), ("audio",))),
            max_output_tokens=rng.choice((None, 5)),
            input=given,
        )
        return CreateResponse(options=options, **header)

    def _cancel(self, header: dict[str, Any]) -> Command:
        return CancelResponse(response_id=self._maybe(self._listener.responses), **header)

    def _acknowledge(self, header: dict[str, Any]) -> Command:
        """Of an item, of a response, or of both, whether they belong together or not."""
        item_id, response_id = self._known(self._listener.items), self._maybe(self._listener.responses)
        return AckPlayback(
            item_id=item_id if response_id is None or self._rng.random() < 0.5 else None,
            response_id=response_id,
            played_ms=self._rng.choice((0, 90, 250, 600, 5000)),
            content_index=self._rng.choice((0, 0, 0, 1)),
            truncate=self._rng.random() < 0.1,
            **header,
        )
