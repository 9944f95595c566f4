"""What a simulated client says, and how it configures its session.

Owns: making commands and configurations out of choices.
Does not own: numbering and sending (``simulated_client``), the chances of everything else (``operations``).
Here because: a run should use every command of the wire, in every order that clients may.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pybase64

from .operations import Dice
from .simulated_client import Line, SimulatedClient, Traits

#: More than any answer lasts.
_ALL_MS = 1_000_000

#: Keys of a script by which the model misbehaves.
_FAULT_KEYS = (
    "cleanup_delay_ms",
    "fail_at_chunk",
    "fail_open",
    "fail_transcript",
    "hang",
    "hang_on_close",
    "ignore_cancel_ms",
    "open_delay_ms",
    "stall_first_ms",
)

#: Frames that are not commands.
_GARBAGE = ("", "not json", "[]", '{"type": 7}', '{"type": "no.such.event"}', '{"type": "playback.ack"}')


def traits(dice: Dice, *, may_hang: bool) -> Traits:
    """What kind of client opens a session. ``may_hang``: its model side may never let go of its slot."""
    extended = dice.roll(6) > 0
    detected = dice.roll(2) == 0
    detection: dict[str, Any] | None = None
    if detected:
        detection = {
            "type": "server_vad",
            "detector": "amp",
            "silence_duration_ms": 60 + 40 * dice.roll(4),
            "interrupt_response": dice.roll(4) > 0,
            "create_response": dice.roll(8) > 0,
        }
    scripts = [script(dice) for _ in range(1 + dice.roll(4))]
    scripts[0] |= _LIFECYCLES.get(dice.roll(16), {})
    if may_hang and dice.roll(4) == 0:
        scripts[0]["hang_on_close"] = True
    session: dict[str, Any] = {
        "audio": {"input": {"turn_detection": detection, "transcription": {} if dice.roll(3) == 0 else None}},
        "extra_body": {"script": scripts},
    }
    if dice.roll(4) == 0:
        session["output_modalities"] = ["text"]
    if extended and dice.roll(3) == 0:
        session["playback_commit_policy"] = ("ack_only", "commit_all_on_done")[dice.roll(2)]
    if extended and dice.roll(4) == 0:
        session["overlap_policy"] = ("listen_only", "barge_in_on_speech", "graded")[dice.roll(3)]
    return Traits(extended, extended and dice.roll(2) == 0, detected, session)


def script(dice: Dice) -> dict[str, Any]:
    """What the model does for one response."""
    answer: dict[str, Any] = {
        "audio_ms": (0, 100, 300, 600)[dice.roll(4)],
        "chunk_ms": (20, 40)[dice.roll(2)],
        "pace": ("realtime", "burst")[dice.roll(2)],
        "words": dice.roll(6),
    }
    fault = dice.roll(24)
    if fault < len(_FAULTS):
        answer |= _FAULTS[fault]
    return answer


_FAULTS: tuple[dict[str, Any], ...] = (
    {"fail_at_chunk": 3},
    {"hang": True},
    {"stall_first_ms": 700},
    {"ignore_cancel_ms": 400},
    {"items": [{"type": "message", "text": "first"}, {"type": "message", "text": "second"}]},
    {"tool_calls": [{"name": "look_up", "arguments": '{"what": "a rather long argument"}'}]},
    {"listen": True},
    {"echo_history": True},
    {"echo_history": True, "pace": "burst", "audio_ms": 100},
    {"echo_history": True, "pace": "burst", "audio_ms": 0},
    {"fail_transcript": True},
)


_LIFECYCLES: dict[int, dict[str, Any]] = {
    0: {"open_delay_ms": 300},
    1: {"fail_open": True},
    2: {"cleanup_delay_ms": 400},
    3: {"cleanup_delay_ms": 1800},
}


def hangs(traits: Traits) -> bool:
    """The model side of such a session never lets go."""
    return any(script.get("hang_on_close") for script in traits.session["extra_body"]["script"])


def faults_of(traits: Traits) -> list[str]:
    """What its scripts do that models should not."""
    scripts = traits.session["extra_body"]["script"]
    return [f"script {key}" for script in scripts for key in script if key in _FAULT_KEYS]


def say(client: SimulatedClient, dice: Dice, *, line: Line | None = None) -> None:
    """Say one thing; ``line`` is an older connection to say it on."""
    _COMMANDS[dice.roll(len(_COMMANDS))](client, dice, line)


def say_own_item(client: SimulatedClient, line: Line | None = None) -> None:
    """An item whose id names the command that created it."""
    item = {
        "type": "message",
        "id": f"own_{client.next_event_id()}",
        "role": "user",
        "content": [{"type": "input_text", "text": "hello"}],
    }
    client.say({"type": "conversation.item.create", "item": item}, lasting=True, line=line)


# --------------------------------------------------------------------------- input

_Speaker = Callable[[SimulatedClient, Dice, Line | None], None]


def _append(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    if line is not None:
        return say_own_item(client, line)
    level = 0.9 if dice.roll(2) else 0.0
    pcm = client.witness.heard.next_audio(20 * (1 + dice.roll(6)), level)
    client.say({"type": "input_audio_buffer.append", "audio": pybase64.b64encode(pcm).decode()})
    return None


def _plain(name: str, **fields: str) -> _Speaker:
    """A command that is always the same."""

    def speak(client: SimulatedClient, _dice: Dice, line: Line | None) -> None:
        client.say({"type": name, **fields}, line=line)

    return speak


# --------------------------------------------------------------------------- responses


def _create(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    response: dict[str, Any] = {"metadata": {"command": client.next_event_id()}}
    if dice.roll(5) == 0:
        response["conversation"] = "none"
    client.say({"type": "response.create", "response": response}, lasting=True, line=line)


def _cancel(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    command: dict[str, Any] = {"type": "response.cancel"}
    running = client.witness.responses.running
    if running and dice.roll(2):
        command["response_id"] = running[dice.roll(len(running))]
    client.say(command, line=line)


# --------------------------------------------------------------------------- items


def _item(client: SimulatedClient, _dice: Dice, line: Line | None) -> None:
    say_own_item(client, line)


def _item_command(name: str) -> _Speaker:
    def speak(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
        order = client.witness.items.order
        item_id = order[dice.roll(len(order))] if order else "item_unknown"
        command: dict[str, Any] = {"type": f"conversation.item.{name}", "item_id": item_id}
        if name == "truncate":
            command |= {"content_index": 0, "audio_end_ms": 20 * dice.roll(20)}
            client.witness.history.acknowledged(command["audio_end_ms"], item_id=item_id)
        client.say(command, line=line)

    return speak


def _ack_playback(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    order = client.witness.items.order
    if order:
        item_id, played_ms = order[-1 - dice.roll(min(3, len(order)))], 20 * dice.roll(40)
        client.witness.history.acknowledged(played_ms, item_id=item_id)
        client.say({"type": "playback.ack", "item_id": item_id, "played_ms": played_ms}, line=line)


def hear_out(client: SimulatedClient) -> None:
    """Whatever was sent has been played: nothing waits for playback any more."""
    for response_id in client.witness.responses.running:
        client.witness.history.acknowledged(_ALL_MS, response_id=response_id)
        client.say({"type": "playback.ack", "response_id": response_id, "played_ms": _ALL_MS})


# --------------------------------------------------------------------------- session


def _update(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    session = {"extra_body": {"script": [script(dice) for _ in range(1 + dice.roll(3))]}}
    client.say({"type": "session.update", "session": session}, line=line)


def _acknowledge(client: SimulatedClient, _dice: Dice, line: Line | None) -> None:
    sequence = client.witness.sequence
    if line is None and client.line is not None:
        sequence.acknowledged = max(sequence.acknowledged, client.cursor)
        client.say({"type": "session.event_ack", "server_event_seq": client.cursor})


def _garbage(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    if dice.roll(2):
        client.say({"type": "no.such.event"}, lasting=True, line=line)
    elif (target := line or client.line) is not None:
        target.link.send(_GARBAGE[dice.roll(len(_GARBAGE))])


def _close(client: SimulatedClient, dice: Dice, line: Line | None) -> None:
    if dice.roll(8) == 0:
        client.say({"type": "session.close"}, line=line)


#: How often each is said, by how often it stands here.
_COMMANDS: tuple[_Speaker, ...] = (
    *([_append] * 14),
    *([_plain("input_audio_buffer.commit")] * 3),
    *([_create] * 4),
    *([_item] * 4),
    _plain("input.text.append", text="typed"),
    _plain("input_audio_buffer.clear"),
    _plain("input.cancel"),
    *([_cancel] * 2),
    _plain("barge_in"),
    _plain("output_audio_buffer.clear"),
    _item_command("retrieve"),
    _item_command("truncate"),
    _item_command("delete"),
    *([_ack_playback] * 3),
    _update,
    *([_acknowledge] * 2),
    *([_plain("session.heartbeat")] * 2),
    _garbage,
    _close,
)


def first_update(traits: Traits) -> dict[str, Any]:
    """The first event of a connection that opens a session as the client wants it."""
    return {"type": "session.update", "session": traits.session, "extensions": traits.extended}


def is_void(frame: str) -> str | None:
    """The ``event_id`` of a frame that arrives where nothing is listened to; None: it has none."""
    try:
        values = json.loads(frame)
    except ValueError:
        return None
    return values.get("event_id") if isinstance(values, dict) else None
