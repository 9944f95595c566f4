"""What the current connection of a session says, on its way to the machine.

Owns: decoding, the commands that concern the connection and not the conversation, exactly-once numbers, room.
Does not own: whether the connection is current (``runtime.live``), what a command does (``session``).
Here because: every frame has exactly one effect or one error, and this is where that is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.protocol import codec
from counterpoint.protocol.audio import AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckEvents,
    AppendAudio,
    Command,
    CommitAudio,
    Heartbeat,
    ResumeSession,
    UpdateSession,
)
from counterpoint.protocol.events import Event, HeartbeatAcknowledged, InputAcknowledged
from counterpoint.session.inputs import CommandReceived, CommandRefused, Input
from counterpoint.session.machine import SessionMachine

from .inbox import Inbox, Verdict

#: While numbered events arrive they are acknowledged at least this often (wire contract, section 2).
ACK_INTERVAL_S = 1.0
#: When a client whose input was refused for lack of room should try again.
BACKPRESSURE_RETRY_MS = 250


class Speaker(Protocol):
    """The connection that is current, as intake sees it."""

    extended: bool

    def extend(self) -> None:
        """The connection is extended from now on."""
        ...

    def say(self, event: Event) -> None:
        """Send a connection-scoped event."""
        ...


class Intake:
    """``input_bytes()``: input that was accepted and not consumed; ``acknowledge(number)`` drops log entries;
    ``prove()``: the newest resume token was received."""

    def __init__(
        self,
        machine: SessionMachine,
        limits: Limits,
        post: Callable[[Input], None],
        *,
        input_bytes: Callable[[], int],
        acknowledge: Callable[[int], object],
        prove: Callable[[], None],
    ) -> None:
        self._machine = machine
        self._limits = limits
        self._post = post
        self._input_bytes = input_bytes
        self._acknowledge = acknowledge
        self._prove = prove
        self._inbox = Inbox()
        self._speaker: Speaker | None = None
        self._ack_timer: asyncio.TimerHandle | None = None

    @property
    def last_number(self) -> int:
        """``last_client_event_seq``: the newest number that was used."""
        return self._inbox.last

    def listen_to(self, speaker: Speaker | None) -> None:
        """Another connection is current, or none; a new one may be told of a gap again."""
        self._speaker = speaker
        self._inbox.reopen()

    def stop(self) -> None:
        """The session ended: nobody is heard any more, and nothing points back to it (case C-14)."""
        self._speaker = None
        self._prove = _nobody_asks
        if self._ack_timer is not None:
            self._ack_timer.cancel()

    def count(self, number: int) -> None:
        """A numbered event had its effect before it came here: it opened the session."""
        if number == self._inbox.expected:
            self._use_number()

    def receive(self, speaker: Speaker, frame: str | bytes) -> None:
        """One frame of the current connection."""
        try:
            command = codec.decode(
                frame,
                extended=speaker.extended,
                max_audio_bytes=self._limits.max_pending_input_bytes,
            )
        except ProtocolError as refusal:
            self._malformed(refusal)
            return
        match command:
            case Heartbeat():
                self._prove()
                speaker.say(HeartbeatAcknowledged(session_id=self._machine.session_id))
            case AckEvents():
                self._ack_events(command)
            case ResumeSession():
                message = "a resume is the first event of a connection"
                self._refuse(command, ProtocolError(ErrorCode.INVALID_SESSION_RESUME, message))
            case _:
                self._for_the_machine(speaker, command, len(frame))

    def hear(self, speaker: Speaker, pcm: bytes, rate: int) -> None:
        """PCM16 that came outside of any frame."""
        command = AppendAudio(audio=pcm, format=AudioFormat(Encoding.PCM16, rate))
        self._for_the_machine(speaker, command, len(pcm))

    def _ack_events(self, command: AckEvents) -> None:
        try:
            self._acknowledge(command.server_event_seq)
        except ProtocolError as refusal:
            self._refuse(command, refusal)
        else:
            self._prove()

    def _for_the_machine(self, speaker: Speaker, command: Command, cost: int) -> None:
        """Exactly-once numbers first, then room, then the machine."""
        number = command.client_event_seq
        if number is not None and not self._is_next(number, command.event_id):
            return
        shortage = self._shortage(command)
        if shortage is not None:
            self._refuse(command, shortage)
            return
        if isinstance(command, UpdateSession) and command.extensions:
            speaker.extend()
        if number is not None:
            self._use_number()
        self._post(CommandReceived(command, speaker.extended, cost))

    def _malformed(self, refusal: ProtocolError) -> None:
        """A frame that is no command: the error uses its number, where that could be read."""
        number = refusal.client_event_seq
        if number is not None:
            if not self._is_next(number, refusal.event_id):
                return
            self._use_number()
        self._post(CommandRefused(refusal, number))

    def _refuse(self, command: Command, refusal: ProtocolError) -> None:
        refusal.event_id = command.event_id
        self._post(CommandRefused(refusal, command.client_event_seq))

    # ------------------------------------------------------------------ exactly once

    def _is_next(self, number: int, event_id: str | None) -> bool:
        match self._inbox.judge(number):
            case Verdict.ACCEPT:
                return True
            case Verdict.GAP:
                expected = self._inbox.expected
                message = f"client_event_seq {expected} is expected next"
                gap = ProtocolError(
                    ErrorCode.CLIENT_EVENT_GAP,
                    message,
                    param="client_event_seq",
                    event_id=event_id,
                    expected=expected,
                )
                self._post(CommandRefused(gap, number))
            case Verdict.DUPLICATE:
                self._schedule_ack()
            case Verdict.AFTER_GAP:
                pass
        return False

    def _use_number(self) -> None:
        self._inbox.use()
        self._schedule_ack()

    def _schedule_ack(self) -> None:
        if self._ack_timer is None:
            self._ack_timer = asyncio.get_running_loop().call_later(ACK_INTERVAL_S, self._ack)

    def _ack(self) -> None:
        self._ack_timer = None
        if self._speaker is not None and self._inbox.last:
            self._speaker.say(
                InputAcknowledged(
                    client_event_seq=self._inbox.last, input_audio_ms=self._machine.input_audio_ms
                )
            )

    # ------------------------------------------------------------------ room

    def _shortage(self, command: Command) -> ProtocolError | None:
        """Why there is no room for ``command`` now; counted before anything is applied."""
        if isinstance(command, AppendAudio):
            bound = self._limits.max_pending_input_bytes
            if self._input_bytes() + len(command.audio) > bound:
                return _backpressure(f"limits.max_pending_input_bytes: more than {bound} bytes of input wait")
        elif isinstance(command, CommitAudio):
            most = self._limits.max_pending_turns
            if most and self._machine.open_turns >= most:
                return _backpressure(f"limits.max_pending_turns: {most} turns wait")
        return None


def _backpressure(message: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INPUT_BACKPRESSURE, message, retry_after_ms=BACKPRESSURE_RETRY_MS)


def _nobody_asks() -> None:
    """No token of a session that ended is proved."""
