"""A correct client, as simple as the wire contract allows, on links that a simulation drives.

Owns: tokens and cursor, numbering and sending again, what it says.
Does not own: when anything is read or arrives (the simulation), judging the server (``witness``).
Here because: a server is tested against the contract, not against the client that came with it: nothing of
``counterpoint.client`` is used here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from counterpoint.protocol.codes import EXPIRED_REASONS, CloseCode
from counterpoint.protocol.commands import ResumeSession

from .invariants.outcomes import Outcomes, Sent
from .invariants.sequence import Place
from .invariants.violation import Violation
from .link import Closed, MemoryLink
from .simulated_server import Upgrade
from .witness import Witness

CLOSES = "a recoverable error closes no connection"
LOCKED_OUT = "a client that follows the rules is never locked out"

#: Refusals of a resume after which another token may still be good.
_WRONG_TOKEN = "invalid_resume_token"

#: Events that do not use up a number.
_UNNUMBERED = ("session.resume", "session.heartbeat", "session.event_ack")

#: What the server's last event says, by the close code that may follow it (wire contract, sections 1 and 2).
_REASONS: dict[int, tuple[str, ...]] = {
    CloseCode.NORMAL: ("client_closed", "model_closed", *EXPIRED_REASONS),
    CloseCode.REFUSED: ("admin",),
    CloseCode.INTERNAL: ("failed", "internal_error"),
    CloseCode.DRAINED: ("drained",),
    CloseCode.REPLACED: ("session.replaced",),
    CloseCode.HANDSHAKE_TIMEOUT: ("config_timeout",),
}

#: Connections that a client remembers.
KEPT_LINES = 4

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Traits:
    """What kind of client it is. ``script`` and ``detection`` configure its session."""

    extended: bool
    numbered: bool
    detected: bool
    session: dict[str, Any]


@dataclass(slots=True)
class Line:
    """One connection of the client."""

    link: MemoryLink
    #: The session that it asked to resume, and with which token.
    resumes: str | None = None
    token: str = ""
    policy: str = "full"
    after: int = 0
    generation: int = 0
    place: Place | None = None
    #: The last event before the end, and the end.
    last: dict[str, Any] = field(default_factory=dict)
    closed: Closed | None = None

    @property
    def attached(self) -> bool:
        """As far as the client knows."""
        return self.place is not None and self.closed is None and self.last.get("type") != "session.replaced"


class SimulatedClient:
    """``connect(upgrade, witness)`` gives it a new connection to the server, which ``witness`` may watch.

    A stock client resumes by what its request says, any other by its first event.
    """

    def __init__(self, name: str, traits: Traits, connect: Callable[[Upgrade, Witness], MemoryLink]) -> None:
        self.name = name
        self.traits = traits
        self._connect = connect
        self._commands = 0
        #: What it said last, to tell of.
        self.said = ""
        #: Its connections, the newest last.
        self.lines: list[Line] = []
        self.session_id: str | None = None
        #: Why the session ended, once that is known.
        self.ended: str | None = None
        #: Good for a resume, the likeliest first.
        self.tokens: list[str] = []
        self.outcomes = Outcomes()
        self.witness = Witness(
            extended=traits.extended,
            numbered=traits.numbered,
            detected=traits.detected,
            acknowledges=traits.session.get("playback_commit_policy") == "ack_only",
            outcomes=self.outcomes,
        )
        #: Numbered commands that the server is not known to have used.
        self._unused: dict[int, str] = {}
        self._number = 0
        self._generation = 0

    # ------------------------------------------------------------------ connecting

    @property
    def line(self) -> Line | None:
        """The connection that it talks on: the newest that is attached."""
        attached = [line for line in self.lines if line.attached]
        return max(attached, key=lambda line: line.generation, default=None)

    def open(self, update: dict[str, Any], *, autostart: bool) -> None:
        """Start a session and configure it; without ``autostart`` the update starts it."""
        line = Line(self._connect(Upgrade(autostart, self.traits.extended), self.witness))
        self.lines.append(line)
        self.say(update, line=line, numbered=self.traits.numbered)

    @property
    def cursor(self) -> int:
        """The newest number that it processed: on its newest connection that said anything."""
        places = [line.place for line in self.lines if line.place is not None]
        return places[-1].last if places else 0

    def resume(self, policy: str, *, back: int = 0) -> None:
        """Open a connection that resumes the session, beside those that there are.

        ``back``: it lost its state, and kept an older copy by so many events.
        """
        assert self.session_id is not None
        token, after = self.tokens[0], max(0, self.cursor - back)
        if self.traits.extended:
            line = Line(self._connect(Upgrade(), self.witness), self.session_id, token, policy, after)
            request: dict[str, Any] = {
                "type": "session.resume",
                "session_id": self.session_id,
                "resume_token": token,
                "last_received_server_event_seq": after,
                "replay": policy,
            }
            self.say(request, line=line)
        else:
            for old in self.lines:  # such a client comes back because it lost its connection
                old.link.reset()
                old.closed = old.closed or Closed(None)
            resume = ResumeSession(
                session_id=self.session_id, resume_token=token, last_received_server_event_seq=after
            )
            line = Line(
                self._connect(Upgrade(resume=resume), self.witness), self.session_id, token, "full", after
            )
        self.said = f"after {after}, replay {line.policy}"
        self.lines.append(line)
        del self.lines[:-KEPT_LINES]

    # ------------------------------------------------------------------ saying something

    def say(
        self,
        command: dict[str, Any],
        *,
        lasting: bool = False,
        line: Line | None = None,
        numbered: bool = False,
    ) -> str:
        """Send a command and return its ``event_id``; without a connection only numbered ones are kept.

        ``line`` is a connection that is not attached; what it sends has no number unless it is ``numbered``.
        """
        number = None
        if numbered or (line is None and self.traits.numbered and command["type"] not in _UNNUMBERED):
            self._number += 1
            number = command["client_event_seq"] = self._number
        frame = self._frame(command)
        event_id: str = command["event_id"]
        self.outcomes.add(Sent(event_id, command["type"], number, lasting))
        if number is not None:
            self._unused[number] = frame
            self.witness.heard.sent(number, command["type"], event_id)
        target = line or self.line
        if target is not None:
            target.link.send(frame)
        return event_id

    @property
    def unused(self) -> int:
        """Numbered commands that the server is not known to have used."""
        return len(self._unused)

    def next_event_id(self) -> str:
        """Of the command that is said next."""
        return f"{self.name}.{self._commands + 1}"

    def say_again(self) -> None:
        """Send every numbered command that the server is not known to have used."""
        line = self.line
        if line is not None:
            for frame in self._unused.values():
                line.link.send(frame)

    def finish(self) -> None:
        """End the session: by a command, or by the end of the connection where commands are held back."""
        if not self._unused:
            self.say({"type": "session.close"})
        elif self.line is not None:
            self.line.link.send_close(1000)

    def _frame(self, command: dict[str, Any]) -> str:
        self._commands += 1
        command["event_id"] = f"{self.name}.{self._commands}"
        self.said = json.dumps(command)
        return self.said

    # ------------------------------------------------------------------ listening

    def read(self, line: Line) -> bool:
        """Take the next thing that a connection holds; whether there was one."""
        sent = None if line.closed is not None else line.link.read()
        if sent is None:
            return False
        if isinstance(sent, Closed):
            line.closed = sent
            self._closed(line, sent)
            return True
        event = _decode(sent.payload)
        line.last = event
        match event["type"]:
            case "session.created" | "session.resumed":
                self._attached(line, event)
            case "session.closed" | "session.expired":
                self._take(line, event, sent.stamp)
                self.ended = event["reason"]
            case "session.input_ack":
                self._used(event["client_event_seq"], event["input_audio_ms"], exact=False)
            case "session.heartbeat_ack":
                self._proven(line)
            case _:
                self._take(line, event, sent.stamp)
        return True

    def _take(self, line: Line, event: dict[str, Any], stamp: int) -> None:
        if line.place is not None:
            self.witness.take(line.place, event, stamp)

    def _attached(self, line: Line, event: dict[str, Any]) -> None:
        if line.resumes is not None and line.resumes != self.session_id:
            return  # the answer to a resume of a session that was given up
        replay = event.get("replay", {})
        line.place = Place(line.after, line.policy, gap=replay.get("gap", False))
        line.generation = event["attachment_generation"]
        self.session_id = event["session"]["id"]
        if line.generation > self._generation:
            self._generation = line.generation
            presented = [line.token] if line.token else []
            self.tokens = [event["resume_token"], *presented]
        if "last_client_event_seq" in event:
            self._check_replay(line, replay)
            self._used(event["last_client_event_seq"], event["input_audio_ms"], exact=True)
        self.say_again()

    def _check_replay(self, line: Line, replay: dict[str, Any]) -> None:
        first, last = replay["from"], replay["to"]
        if first is not None and (first != line.after + 1 or last < first or replay["gap"]):
            raise Violation("CASE-INV-1", f"a resume after {line.after} is answered with {replay}")

    def _proven(self, line: Line) -> None:
        """The server heard from us on this connection: older tokens may be void by now."""
        if line.generation == self._generation:
            self.tokens = self.tokens[:1]

    def _used(self, number: int, input_audio_ms: int, *, exact: bool) -> None:
        for used in [used for used in self._unused if used <= number]:
            del self._unused[used]
        if self.traits.numbered:
            self.witness.heard.told(number, input_audio_ms, exact=exact)

    # ------------------------------------------------------------------ ends

    def _closed(self, line: Line, closed: Closed) -> None:
        """A connection ended; if the server ended it, it must have had a reason, and said it."""
        code = line.last.get("error", {}).get("code")
        if closed.code == CloseCode.REFUSED and line.place is None:
            self._refused(line, code)
        elif closed.code not in (None, CloseCode.TRY_AGAIN) and self.traits.extended:
            told = code or line.last.get("reason") or line.last.get("type")
            if told not in _REASONS.get(closed.code, ()):
                raise Violation(CLOSES, f"{self.name} was closed with {closed.code} after {told}")

    def _refused(self, line: Line, code: str | None) -> None:
        """A resume was refused. A token that the server does not know is forgotten."""
        if line.resumes != self.session_id:
            return
        if code == _WRONG_TOKEN and line.token in self.tokens:
            self.tokens.remove(line.token)
        elif code == "session_resume_expired":
            self.ended = "expired"
