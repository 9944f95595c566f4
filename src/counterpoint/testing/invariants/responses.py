"""Every response of one session, from its creation to its one end.

Owns: one end per response, one response at a time, what the parts add up to, where each sample comes from
(CASE-INV-2 to CASE-INV-6).
Does not own: numbers (``sequence``), the order of items in the conversation (``items``).
Here because: what a person hears and reads is these events; nothing may be lost, doubled or mixed in them.

Takes each event once, in the order of its number. After a gap, what was missed is not held against anybody.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pybase64

from counterpoint.models.scripted.content import RAMP_MASK, RAMP_STRIDE
from counterpoint.protocol.audio import SESSION_RATE

from .violation import Violation

ONE_DONE = "CASE-INV-2"
ONE_ACTIVE = "CASE-INV-3"
ADDS_UP = "CASE-INV-4"
AUDIO = "CASE-INV-5"
PROVENANCE = "CASE-INV-6"

_PERIOD = RAMP_MASK + 1
#: The ramp twice, so that any delta is one slice of it.
_RAMP = (np.arange(2 * _PERIOD) & RAMP_MASK).astype("<i2").tobytes()
#: Undoes the stride: the first sample of a response tells its number.
_STRIDE_INVERSE = pow(RAMP_STRIDE, -1, _PERIOD)

#: What each kind of text is called in deltas, in its ``done`` event and in the item.
_TEXTS = {
    "response.output_text": "text",
    "response.output_audio_transcript": "transcript",
    "response.function_call_arguments": "arguments",
}


@dataclass(slots=True)
class _Output:
    """An item of a response."""

    index: int
    text: list[str] = field(default_factory=list)
    samples: int = 0
    duration_ms: int = 0
    text_done: str | None = None
    audio_done: bool = False
    done: bool = False


@dataclass(slots=True)
class _Response:
    id: str
    #: Counts the session's responses from 1; None when some were missed before it.
    number: int | None
    #: Of the responses that were seen.
    place: int
    out_of_band: bool
    items: dict[str, _Output] = field(default_factory=dict)
    #: The sample that comes next.
    position: int = 0
    #: Events of it were missed: what remains need not add up.
    torn: bool = False
    #: Audio of it was passed over.
    audio_torn: bool = False


class Responses:
    """``turns``: the numbers by which a model that decides itself when to speak tells its turns apart, of
    which some are never heard. Without, the n-th response is number n."""

    def __init__(self, turns: Container[int] | None = None) -> None:
        self._turns = turns
        #: Which response each number was heard in, where that is not the order of responses.
        self._heard: dict[int, str] = {}
        self._running: dict[str, _Response] = {}
        self._over: dict[str, str] = {}
        self._seen = 0
        #: What to add to ``place`` for a response's number; None while that is not known.
        self._offset: int | None = 0
        #: Events were lost: a response beside the active one may have begun among them.
        self._torn = False
        self._handlers = {
            "response.created": self._created,
            "response.done": self._done,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.done": self._part_done,
            "response.output_audio.delta": self._audio,
            "response.output_audio.done": self._audio_done,
        }
        for name in _TEXTS:
            self._handlers[f"{name}.delta"] = self._text
            self._handlers[f"{name}.done"] = self._text_done

    @property
    def active(self) -> str | None:
        """The response of the conversation."""
        return next((response.id for response in self._running.values() if not response.out_of_band), None)

    @property
    def running(self) -> list[str]:
        return list(self._running)

    def is_out_of_band(self, response_id: str | None) -> bool:
        """Whether a response that runs is none of the conversation; one whose beginning was missed may be."""
        response = self._running.get(response_id or "")
        return response is not None and response.out_of_band

    # ------------------------------------------------------------------ what comes

    def take(self, event: dict[str, Any]) -> None:
        handler = self._handlers.get(event["type"])
        if handler is not None:
            handler(event)
        elif event["type"].startswith("response.") and "response_id" in event:  # a decision may be of none
            self._find(event)

    def tear_audio(self) -> None:
        """Audio was passed over, nobody says of what."""
        for response in self._running.values():
            response.audio_torn = True

    def tear(self) -> None:
        """Events were lost: what was running may be over, and others may have come and gone."""
        self._offset, self._torn = None, True
        for response in self._running.values():
            response.torn = response.audio_torn = True

    def resync(self, active: dict[str, Any] | None) -> None:
        """A snapshot tells which response is the active one after events were lost."""
        active_id = None if active is None else active["id"]
        for response in list(self._running.values()):
            if not response.out_of_band and response.id != active_id:
                self._lose(response)
        if active_id is not None and active_id not in self._running:
            self._adopt(active_id, out_of_band=False)

    def _lose(self, response: _Response) -> None:
        """Its end was among what was lost."""
        del self._running[response.id]
        self._over[response.id] = "lost"

    def _adopt(self, response_id: str, *, out_of_band: bool) -> _Response:
        """A response whose beginning was missed."""
        response = _Response(response_id, None, 0, out_of_band, torn=True, audio_torn=True)
        self._running[response_id] = response
        return response

    def _find(self, event: dict[str, Any]) -> _Response:
        response_id = event["response_id"]
        response = self._running.get(response_id)
        if response is not None:
            return response
        if response_id in self._over:
            raise Violation(ONE_DONE, f"{event['type']} of {response_id}, which is over")
        if not self._torn:
            raise Violation(ONE_DONE, f"{event['type']} of {response_id}, which was never created")
        return self._adopt(response_id, out_of_band=True)

    def _output(self, event: dict[str, Any]) -> tuple[_Response, _Output]:
        response = self._find(event)
        item_id = event["item_id"]
        if item_id not in response.items:
            if not response.torn:
                raise Violation(ADDS_UP, f"{event['type']} of {item_id}, which was not added")
            response.items[item_id] = _Output(event["output_index"])
        output = response.items[item_id]
        if output.done:
            raise Violation(ADDS_UP, f"{event['type']} of {item_id}, which is done")
        return response, output

    # ------------------------------------------------------------------ responses

    def _created(self, event: dict[str, Any]) -> None:
        shown = event["response"]
        response_id, out_of_band = shown["id"], shown["conversation_id"] is None
        if response_id in self._running or response_id in self._over:
            raise Violation(ONE_DONE, f"{response_id} was created twice")
        active = self._running.get(self.active or "")
        if not out_of_band and active is not None:
            if not active.torn:
                raise Violation(ONE_ACTIVE, f"{response_id} was created while {active.id} runs")
            self._lose(active)
        self._seen += 1
        counted = self._turns is None and self._offset is not None
        number = self._seen + (self._offset or 0) if counted else None
        self._running[response_id] = _Response(response_id, number, self._seen, out_of_band)

    def _done(self, event: dict[str, Any]) -> None:
        shown = event["response"]
        response = self._find({"type": event["type"], "response_id": shown["id"]})
        del self._running[response.id]
        self._over[response.id] = shown["status"]
        if response.torn:
            return
        for item_id, output in response.items.items():
            if not output.done:
                raise Violation(ADDS_UP, f"{response.id} is done, its item {item_id} is not")
        listed = [item["id"] for item in shown["output"]]
        if listed != list(response.items):
            raise Violation(ADDS_UP, f"{response.id} had {list(response.items)} and lists {listed}")

    # ------------------------------------------------------------------ items

    def _item_added(self, event: dict[str, Any]) -> None:
        response = self._find(event)
        item_id, index = event["item"]["id"], event["output_index"]
        if item_id in response.items or (not response.torn and index != len(response.items)):
            raise Violation(ADDS_UP, f"{item_id} was added to {response.id} as number {index}")
        response.items[item_id] = _Output(index)

    def _item_done(self, event: dict[str, Any]) -> None:
        item = event["item"]
        response, output = self._output(event | {"item_id": item["id"]})
        output.done = True
        if response.torn:
            return
        written = item["arguments"] if item["type"] == "function_call" else _transcript(item)
        if written != "".join(output.text):
            raise Violation(ADDS_UP, f"{item['id']} is done with {written!r}, not {''.join(output.text)!r}")

    # ------------------------------------------------------------------ parts

    def _text(self, event: dict[str, Any]) -> None:
        _, output = self._output(event)
        if output.text_done is not None:
            raise Violation(ADDS_UP, f"{event['type']} of {event['item_id']}, whose text is done")
        output.text.append(event["delta"])

    def _text_done(self, event: dict[str, Any]) -> None:
        response, output = self._output(event)
        value = event[_TEXTS[event["type"].removesuffix(".done")]]
        if output.text_done is not None:
            raise Violation(ADDS_UP, f"{event['type']} of {event['item_id']} came twice")
        output.text_done = value
        if not response.torn and value != "".join(output.text):
            raise Violation(ADDS_UP, f"{event['item_id']} has {''.join(output.text)!r}, not {value!r}")

    def _part_done(self, event: dict[str, Any]) -> None:
        _, output = self._output(event)
        part = event["part"]
        written = part.get("transcript", part.get("text"))
        if output.text_done is not None and written != output.text_done:
            raise Violation(ADDS_UP, f"{event['item_id']}: the part has {written!r}")

    def _audio_done(self, event: dict[str, Any]) -> None:
        response, output = self._output(event)
        if output.audio_done:
            raise Violation(ADDS_UP, f"{event['type']} of {event['item_id']} came twice")
        output.audio_done = True
        duration_ms = event.get("duplex", {}).get("audio_duration_ms")
        if response.audio_torn or duration_ms is None:
            return
        if not duration_ms == output.duration_ms == output.samples * 1000 // SESSION_RATE:
            raise Violation(
                AUDIO, f"{event['item_id']}: {duration_ms} ms in all, {output.duration_ms} ms in deltas"
            )

    def _audio(self, event: dict[str, Any]) -> None:
        response, output = self._output(event)
        if output.audio_done:
            raise Violation(ADDS_UP, f"{event['type']} of {event['item_id']}, whose audio is done")
        pcm = pybase64.b64decode(event["delta"])
        if len(pcm) % 2 or not pcm:
            raise Violation(AUDIO, f"{event['event_id']} has {len(pcm)} bytes of audio")
        self._check_origin(response, pcm)
        output.samples += len(pcm) // 2
        output.duration_ms += event.get("duplex", {}).get("audio_duration_ms", 0)

    def _check_origin(self, response: _Response, pcm: bytes) -> None:
        first = int.from_bytes(pcm[:2], "little")
        if response.number is None and not response.audio_torn:
            self._learn_number(response, first)
        if response.number is not None:
            if response.audio_torn:
                response.position = (first - response.number * RAMP_STRIDE) % _PERIOD
            first = (response.number * RAMP_STRIDE + response.position) % _PERIOD
        if pcm != _RAMP[2 * first : 2 * first + len(pcm)]:
            raise Violation(
                PROVENANCE, f"{response.id} (number {response.number}) at sample {response.position}"
            )
        response.position += len(pcm) // 2

    def _learn_number(self, response: _Response, first: int) -> None:
        """A model's own turn, or the first response seen whole after a gap: its first sample tells which."""
        response.number = first * _STRIDE_INVERSE % _PERIOD
        if self._turns is not None:
            other = self._heard.setdefault(response.number, response.id)
            if response.number not in self._turns or other != response.id:
                raise Violation(PROVENANCE, f"{response.id} has audio of turn {response.number} ({other})")
            return
        self._offset = response.number - response.place
        if self._offset < 0:
            raise Violation(PROVENANCE, f"{response.id} has audio of response {response.number}")


def _transcript(item: dict[str, Any]) -> str:
    return "".join(part.get("transcript", part.get("text", "")) for part in item["content"])
