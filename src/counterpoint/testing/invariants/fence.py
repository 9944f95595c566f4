"""What an interruption must silence.

Owns: no delta of an older epoch is handed to a transport for the first time after an interruption, and no
audio of an interrupted response ever again (wire contract, sections 3 and 6).
Does not own: which deltas there were before (``responses``), numbers (``sequence``).
Here because: whether a frame came too late is a matter of when it was written, on whatever connection, and
not of when it is read.

Moments are the simulation's steps; a frame's stamp is the step in which it was handed to the transport.
"""

from __future__ import annotations

from typing import Any

from .violation import Violation

#: The number is the last that a frame holds.
_NUMBER = b'"server_event_seq":'
_TAIL = 48

FENCED = "nothing of an older epoch after its end"


class Fence:
    def __init__(self) -> None:
        #: The epoch, and the step after which it was found to hold.
        self._epoch = 0
        self._since = 0
        #: The step in which each number was handed to a transport for the first time.
        self._sent: dict[int, int] = {}
        #: Responses that were cancelled, with the step in which their end was written.
        self._cancelled: dict[str, int] = {}

    def advance(self, epoch: int, step: int) -> None:
        """The server is in ``epoch`` after ``step``."""
        if epoch > self._epoch:
            self._epoch, self._since = epoch, step

    def wrote(self, frame: bytes, step: int) -> None:
        """The server handed ``frame`` to a transport."""
        at = frame.rfind(_NUMBER, -_TAIL)
        if at >= 0:
            self._sent.setdefault(int(frame[at + len(_NUMBER) : -1]), step)

    def take(self, event: dict[str, Any], stamp: int, *, out_of_band: bool) -> None:
        """An event that was not seen before."""
        kind = event["type"]
        if kind == "response.done" and event["response"]["status"] == "cancelled":
            self._cancelled[event["response"]["id"]] = stamp
        elif kind.endswith(".delta") and "response_id" in event and not out_of_band:
            epoch, sent = (
                event.get("duplex", {}).get("epoch", self._epoch),
                self._sent[event["server_event_seq"]],
            )
            if epoch < self._epoch and sent > self._since:
                raise Violation(
                    FENCED,
                    f"{kind} of epoch {epoch} was sent in {sent}, {self._epoch} began in {self._since}",
                )

    def take_again(self, event: dict[str, Any], stamp: int) -> None:
        """An event that was seen before is sent again."""
        if event["type"] != "response.output_audio.delta":
            return
        ended = self._cancelled.get(event["response_id"], stamp)
        if stamp > ended:
            raise Violation(
                FENCED, f"{event['response_id']} ended in step {ended}, was heard again in {stamp}"
            )
