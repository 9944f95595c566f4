"""Which commands wait for the detector, and in which order they come out."""

from __future__ import annotations

import pytest

from counterpoint.errors import ProtocolError
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
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from counterpoint.session.inputs import CommandReceived, CommandRefused
from counterpoint.session.waiting import WaitingCommands

from .driver import user_text


def received(command: Command) -> CommandReceived:
    return CommandReceived(command, extended=True)


AFTER_AUDIO: list[Command] = [
    CommitAudio(),
    ClearAudio(),
    CancelInput(),
    AppendText(text=""),
    UpdateSession(patch={}),
    user_text(""),
]
AFTER_COMMANDS: list[Command] = [
    AppendAudio(audio=b""),
    CreateResponse(),
    RetrieveItem(item_id=""),
    DeleteItem(item_id=""),
    TruncateItem(item_id="", content_index=0, audio_end_ms=0),
]
NEVER: list[Command] = [CancelResponse(), BargeIn(), ClearOutput(), CloseSession(), AckPlayback(played_ms=0)]


@pytest.mark.parametrize("pending", [False, True], ids=["quiet", "audio pending"])
@pytest.mark.parametrize("behind", [False, True], ids=["first", "behind another"])
@pytest.mark.parametrize(
    ("command", "audio", "commands"),
    [
        *[(command, True, True) for command in AFTER_AUDIO],
        *[(command, False, True) for command in AFTER_COMMANDS],
        *[(command, False, False) for command in NEVER],
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_waits_for_what(
    command: Command, audio: bool, commands: bool, behind: bool, pending: bool
) -> None:
    line = WaitingCommands()
    if behind:
        line.put(received(CommitAudio()))
    expected = (audio and pending) or (commands and behind)
    assert line.must_wait(received(command), audio_pending=pending) is expected


def test_they_come_out_in_order_and_only_when_their_time_has_come() -> None:
    line = WaitingCommands()
    commands: list[Command] = [CommitAudio(), CreateResponse(), AppendAudio(audio=b"1234"), CommitAudio()]
    for command in commands:
        line.put(received(command))
    assert line.held_bytes == 4
    assert line.take(audio_pending=True) is None
    assert line.take(audio_pending=False) == received(commands[0])
    assert line.take(audio_pending=True) == received(commands[1])
    assert line.take(audio_pending=True) == received(commands[2])
    assert line.held_bytes == 0
    assert line.take(audio_pending=True) is None
    assert line.clear() == [received(commands[3])]
    assert not line


@pytest.mark.parametrize(
    ("code", "number", "waits"),
    [
        (ErrorCode.INPUT_BACKPRESSURE, None, True),
        (ErrorCode.INPUT_BACKPRESSURE, 3, False),
        (ErrorCode.INVALID_EVENT, None, False),
    ],
)
def test_a_refusal_waits_where_it_costs_the_utterance(
    code: ErrorCode, number: int | None, waits: bool
) -> None:
    refused = CommandRefused(ProtocolError(code, "no"), number)
    assert WaitingCommands().must_wait(refused, audio_pending=True) is waits
