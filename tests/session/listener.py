"""The client of a driven session, as far as it reads: frames of an extended connection, held to every rule.

Owns: making frames of what a machine emits, feeding them to the checks, what a client knows by now.
Does not own: the checks (``testing.witness``, ``testing.streams``), what the client says
(``random_commands``).
Here because: the checks of the simulator and of the conformance suite are about frames, and a machine alone
makes none.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec

from counterpoint.plugins.contract import ResponseRequest
from counterpoint.protocol import codec, projection
from counterpoint.protocol import events as ev
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.commands import AckPlayback, Command, TruncateItem
from counterpoint.session.effects import Emit, Prepare, Respond
from counterpoint.testing.invariants.outcomes import Outcomes, Sent
from counterpoint.testing.invariants.sequence import Place
from counterpoint.testing.streams.rules import check_session
from counterpoint.testing.streams.stream import Stream
from counterpoint.testing.witness import Witness

from .driver import Driver

_decode = msgspec.json.Decoder().decode


class Listener:
    """``acknowledges``: what was heard is what it says it heard; ``turns``: see ``Witness``."""

    def __init__(self, driver: Driver, *, acknowledges: bool, turns: Container[int] | None) -> None:
        self._driver = driver
        self._outcomes = Outcomes()
        self.witness = Witness(
            extended=True,
            numbered=False,
            detected=False,
            acknowledges=acknowledges,
            outcomes=self._outcomes,
            turns=turns,
        )
        self._acknowledges = acknowledges
        self._place = Place(0, "full")
        self._stream = Stream(extended=True)
        self._step = self._number = 0
        #: How much of each of the driver's lists was read.
        self._effects = self._sent = self._replies = 0
        #: Ids that a client could name, be they over or deleted by now.
        self.items = ["item_unknown"]
        self.responses = ["resp_unknown"]
        self.calls = ["call_unknown"]
        created = ev.SessionCreated(
            session=driver.machine.describe(), resume_token="secret", attachment_generation=1
        )
        self._stream.received.append(_decode(_unnumbered(created, "event_created")))

    # ------------------------------------------------------------------ what it says

    def next_header(self) -> dict[str, Any]:
        """What the next command is called."""
        self._number += 1
        return {"event_id": f"c{self._number}", "client_event_seq": self._number}

    def says(self, event_id: str, kind: str, command: Command | None = None, *, lasting: bool) -> None:
        """It sends a command with the newest header; ``lasting``: its effect can be recognised."""
        self._outcomes.add(Sent(event_id, kind, self._number, lasting))
        self._stream.sent.append({"event_id": event_id, "client_event_seq": self._number})
        if isinstance(command, AckPlayback):
            self.witness.history.acknowledged(
                command.played_ms, item_id=command.item_id or "", response_id=command.response_id or ""
            )
        elif isinstance(command, TruncateItem):
            self.witness.history.acknowledged(command.audio_end_ms, item_id=command.item_id)

    # ------------------------------------------------------------------ what it reads

    def listen(self) -> None:
        """Read what the last step led to. Raises ``Violation``."""
        self._step += 1
        driver = self._driver
        self.witness.fence.advance(driver.machine.epoch, self._step)
        for effect in driver.effects[self._effects :]:
            if isinstance(effect, Respond | Prepare) and self._acknowledges:
                self._compare(effect.request)
        self._effects = len(driver.effects)
        for reply in driver.replies[self._replies :]:
            self._take(_unnumbered(reply, f"reply_{self._replies}"))
            self._replies += 1
        for entry in driver.sent[self._sent :]:
            self._sent += 1
            frame = _numbered(entry, self._sent)
            self.witness.fence.wrote(frame, self._step)
            self._take(frame)

    def _compare(self, request: ResponseRequest) -> None:
        """CASE-INV-11, but for items whose end is on its way: with it the last words count as heard."""
        ending = [
            entry.event.item_id
            for entry in self._driver.pending
            if isinstance(entry.event, ev.OutputAudioDone)
        ]
        for item in request.history:
            if item.id not in ending:
                self.witness.history.given(item.id, item.text)

    def _take(self, frame: bytes) -> None:
        event = _decode(frame)
        self._stream.received.append(event)
        self.witness.take(self._place, event, self._step)
        match event["type"]:
            case "conversation.item.added":
                self.items.append(event["item"]["id"])
            case "response.created":
                self.responses.append(event["response"]["id"])
            case "response.output_item.done" if event["item"]["type"] == "function_call":
                self.calls.append(event["item"]["call_id"])
            case _:
                pass

    def finish(self) -> None:
        """The session is over and everything was read: nothing is missing, and nothing is wrong in it."""
        listed = [item.id for item in self._driver.machine.snapshot(0)[0].conversation.items]
        assert self.witness.items.order == listed, "CASE-INV-10"
        assert self.witness.responses.running == [], "CASE-INV-2"
        missing = self._outcomes.missing(self._number)
        assert missing is None, f"CASE-INV-7: {missing}"
        violations = check_session([self._stream])
        assert not violations, violations[0]


def _numbered(entry: Emit, number: int) -> bytes:
    duplex = b"" if entry.duplex is None else codec.encode_duplex(entry.duplex)
    body = codec.encode_body(entry.event, entry.event_id)
    frame = projection.session_frame(kind_of(entry.event), body, duplex, number, extended=True, beta=False)
    assert frame is not None
    return frame


def _unnumbered(event: ev.Event, event_id: str) -> bytes:
    body = codec.encode_body(event, event_id)
    frame = projection.connection_frame(kind_of(event), body, extended=True, beta=False)
    assert frame is not None
    return frame
