"""Everything that a client can say, one frozen class per intent.

Owns: the command types and the closed union ``Command``.
Does not own: reading them from a frame (``codec``), their effect (``session``, ``delivery``, ``runtime``).
Here because: what is behind the codec matches on types, never on strings.

Aliases of the wire become one type: ``input.commit`` is ``CommitAudio``, ``turn.signal`` is ``BargeIn``,
``transcription_session.update`` is ``UpdateSession``.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from counterpoint.errors import ProtocolError

from .audio import AudioFormat, Encoding
from .codes import ErrorCode
from .items import Item
from .response_options import ResponseOptions


class BaseCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What every command carries."""

    event_id: str | None = None  #: the client's own id; an error about the command names it
    client_event_seq: int | None = None  #: numbers exactly-once input (wire contract, section 2)


# --------------------------------------------------------------------------- session


class UpdateSession(BaseCommand, frozen=True):
    patch: dict[str, Any]  #: for ``config.merge``, which validates it against the current configuration
    extensions: bool = False  #: the connection is extended from now on


class Heartbeat(BaseCommand, frozen=True):
    pass


class AckEvents(BaseCommand, frozen=True):
    """Session events up to ``server_event_seq`` were processed; the log may drop them."""

    server_event_seq: int


class CloseSession(BaseCommand, frozen=True):
    pass


class ReplayPolicy(enum.StrEnum):
    """What a resume sends again (wire contract, section 3)."""

    FULL = "full"
    NO_AUDIO = "no_audio"
    FROM_PLAYHEAD = "from_playhead"


class ResumeSession(BaseCommand, frozen=True):
    session_id: str
    resume_token: str
    last_received_server_event_seq: int
    replay: ReplayPolicy = ReplayPolicy.FULL

    def __repr__(self) -> str:
        """Without the token, which must reach no log."""
        return f"ResumeSession(session_id={self.session_id!r}, after={self.last_received_server_event_seq})"


# --------------------------------------------------------------------------- input


class AppendAudio(BaseCommand, frozen=True):
    audio: bytes
    format: AudioFormat | None = None  #: of this append alone; None: the session's
    sample_rate_hz: int | None = None  #: of this append alone, in the encoding that holds for it
    is_speech: bool | None = None  #: the client's own detector; None: unknown
    video_frames: tuple[str, ...] = ()  #: images, as data URIs

    def format_within(self, session: AudioFormat) -> AudioFormat:
        """How the bytes are to be read in a session whose input format is ``session``.

        Raises ``ProtocolError`` (``sample_rate_hz``) for a rate that the encoding does not have.
        """
        stated = self.format or session
        if self.sample_rate_hz is None or self.sample_rate_hz == stated.rate:
            return stated
        if stated.encoding in (Encoding.ULAW, Encoding.ALAW):
            message = f"sample_rate_hz: must be {stated.rate} for {stated.encoding.value}"
            raise ProtocolError(
                ErrorCode.INVALID_EVENT, message, param="sample_rate_hz", event_id=self.event_id
            )
        return AudioFormat(stated.encoding, self.sample_rate_hz)

    def __repr__(self) -> str:
        return f"AppendAudio({len(self.audio)} bytes, event_id={self.event_id!r})"


class AppendText(BaseCommand, frozen=True):
    """Text for the open item, committed with it."""

    text: str


class CommitAudio(BaseCommand, frozen=True):
    response_create: bool | None = None  #: false: commit only


class ClearAudio(BaseCommand, frozen=True):
    pass


class CancelInput(BaseCommand, frozen=True):
    """Clear the input and cancel the answer."""


class BargeIn(BaseCommand, frozen=True):
    """The user talks over the answer: cancel it, with reason ``turn_detected``."""


# --------------------------------------------------------------------------- conversation


class Scheduling(enum.StrEnum):
    """When a created item makes the model answer (extension)."""

    INTERRUPT = "interrupt"
    WHEN_IDLE = "when_idle"
    SILENT = "silent"


class CreateItem(BaseCommand, frozen=True):
    item: Item  #: its id is empty unless the client chose one
    previous_item_id: str | None = None  #: None: append; "root": first
    scheduling: Scheduling = Scheduling.SILENT


class RetrieveItem(BaseCommand, frozen=True):
    item_id: str


class DeleteItem(BaseCommand, frozen=True):
    item_id: str


class TruncateItem(BaseCommand, frozen=True):
    item_id: str
    content_index: int
    audio_end_ms: int


# --------------------------------------------------------------------------- responses and playback


class CreateResponse(BaseCommand, frozen=True):
    options: ResponseOptions = ResponseOptions()


class CancelResponse(BaseCommand, frozen=True):
    response_id: str | None = None  #: None: the active one


class ClearOutput(BaseCommand, frozen=True):
    response_id: str | None = None  #: None: the active one, or the one that is played


class AckPlayback(BaseCommand, frozen=True):
    """So much was heard. At least one of the ids is given; any ``played_ms`` is good, and clamped later."""

    played_ms: int
    response_id: str | None = None
    item_id: str | None = None
    content_index: int = 0
    truncate: bool = False


Command = (
    UpdateSession
    | Heartbeat
    | AckEvents
    | CloseSession
    | ResumeSession
    | AppendAudio
    | AppendText
    | CommitAudio
    | ClearAudio
    | CancelInput
    | BargeIn
    | CreateItem
    | RetrieveItem
    | DeleteItem
    | TruncateItem
    | CreateResponse
    | CancelResponse
    | ClearOutput
    | AckPlayback
)
