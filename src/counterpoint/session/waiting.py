"""Commands that wait for the detector, so that they apply where the client put them.

Owns: which commands wait, and their order.
Does not own: what they do (``machine``), the audio that is with the detector (``input``).
Here because: detection leaves the loop and takes its time; a commit behind it must not overtake the audio
before it, and a cancel must not wait at all (wire contract, section 9).
"""

from __future__ import annotations

from collections import deque

from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AppendAudio,
    AppendText,
    CancelInput,
    ClearAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)

from .inputs import CommandReceived, CommandRefused

Waiting = CommandReceived | CommandRefused

#: What these do depends on the speech before them.
_AFTER_AUDIO = (CommitAudio, ClearAudio, CancelInput, AppendText, UpdateSession, CreateItem)

#: What these do depends on the commands before them.
_AFTER_COMMANDS = (AppendAudio, CreateResponse, RetrieveItem, DeleteItem, TruncateItem)


class WaitingCommands:
    def __init__(self) -> None:
        self._line: deque[Waiting] = deque()

    def __bool__(self) -> bool:
        return bool(self._line)

    @property
    def held_bytes(self) -> int:
        return sum(_size(news) for news in self._line)

    @property
    def commits(self) -> int:
        return sum(
            isinstance(news, CommandReceived) and isinstance(news.command, CommitAudio) for news in self._line
        )

    def must_wait(self, news: Waiting, *, audio_pending: bool) -> bool:
        """``news`` came now; ``audio_pending``: audio before it is with the detector."""
        if isinstance(news, CommandRefused):
            return loses_input(news) and (audio_pending or bool(self._line))
        if isinstance(news.command, _AFTER_AUDIO):
            return audio_pending or bool(self._line)
        return bool(self._line) and isinstance(news.command, _AFTER_COMMANDS)

    def put(self, news: Waiting) -> None:
        self._line.append(news)

    def take(self, *, audio_pending: bool) -> Waiting | None:
        """The next one whose time has come."""
        if not self._line or (audio_pending and _follows_audio(self._line[0])):
            return None
        return self._line.popleft()

    def clear(self) -> list[Waiting]:
        """The session ends; returns those that never had an effect."""
        left = list(self._line)
        self._line.clear()
        return left


def loses_input(refused: CommandRefused) -> bool:
    """A client that does not number its events cannot repeat one (wire contract, section 4)."""
    return refused.error.code == ErrorCode.INPUT_BACKPRESSURE and refused.client_event_seq is None


def _follows_audio(news: Waiting) -> bool:
    return isinstance(news, CommandRefused) or isinstance(news.command, _AFTER_AUDIO)


def _size(news: Waiting) -> int:
    command: Command | None = news.command if isinstance(news, CommandReceived) else None
    return len(command.audio) if isinstance(command, AppendAudio) else 0
