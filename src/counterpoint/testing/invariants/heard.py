"""What a client said, and what the server says that it heard.

Owns: the input clock, the audio of committed items (exactly-once input), for clients that number.
Does not own: finding speech.
Here because: audio that is lost or doubled over a reconnect shows in nothing but the samples themselves.

Every append continues one ramp, so two chunks never have the same samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pybase64

from counterpoint.protocol.audio import SESSION_RATE

from .outcomes import RETRYABLE
from .violation import Violation

EXACTLY_ONCE = "exactly-once input"

SAMPLES_PER_MS = SESSION_RATE // 1000


class Heard:
    """The input of one session. ``detected``: turns are found by a detector."""

    def __init__(self, *, detected: bool) -> None:
        self._detected = detected
        self._pcm = bytearray()
        #: Newest sample that each append, commit and clear so far covers, by their numbers.
        self._ends: dict[int, int] = {0: 0}
        self._last_number = 0
        self._commits: list[tuple[str, int, int]] = []
        self._clears: list[tuple[int, int]] = []
        self._refused: dict[str, None] = {}
        self._start = 0
        self._torn = False
        self._spoken: dict[str, int] = {}
        self._items: dict[str, tuple[int, int]] = {}

    def next_audio(self, milliseconds: int, level: float) -> bytes:
        """The next samples of the client's microphone: about ``level`` loud, never the same twice."""
        start = len(self._pcm) // 2
        ramp = (np.arange(start, start + milliseconds * SAMPLES_PER_MS) % 997).astype("<i2")
        pcm = (ramp + np.int16(level * 30_000)).astype("<i2").tobytes()
        self._pcm += pcm
        return pcm

    def sent(self, number: int, kind: str, event_id: str) -> None:
        """A numbered command; audio was taken from ``next_audio`` before."""
        self._last_number = number
        self._ends[number] = len(self._pcm) // 2
        if kind == "input_audio_buffer.commit":
            self._commits.append((event_id, number, len(self._pcm) // 2))
        elif kind in ("input_audio_buffer.clear", "input.cancel"):
            self._clears.append((number, len(self._pcm) // 2))

    def told(self, number: int, input_audio_ms: int, *, exact: bool) -> None:
        """The server used ``number`` and says how much audio it heard."""
        if number > self._last_number:
            raise Violation(EXACTLY_ONCE, f"number {number} was used, {self._last_number} is the newest sent")
        expected = self._ends[number] // SAMPLES_PER_MS
        if input_audio_ms > expected or (exact and input_audio_ms != expected):
            raise Violation(
                EXACTLY_ONCE, f"{input_audio_ms} ms were heard up to number {number}, {expected} ms were sent"
            )

    def tear(self) -> None:
        """Events were lost: which commit an item belongs to is not known any more."""
        self._torn = True

    # ------------------------------------------------------------------ events

    def take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "error" if event["error"]["code"] not in RETRYABLE:
                self._refused[event["error"]["event_id"]] = None
            case "input_audio_buffer.speech_started":
                self._spoken[event["item_id"]] = event["audio_start_ms"] * SAMPLES_PER_MS
            case "input_audio_buffer.speech_stopped":
                start = self._spoken.pop(event["item_id"], None)
                if start is not None:
                    self._items[event["item_id"]] = (start, event["audio_end_ms"] * SAMPLES_PER_MS)
            case "input_audio_buffer.committed" if not self._detected and not self._torn:
                self._committed(event["item_id"])
            case "conversation.item.retrieved":
                self._compare(event["item"])
            case _:
                pass

    def _committed(self, item_id: str) -> None:
        """The oldest commit that was not refused is the one; commits are answered in order."""
        while self._commits and self._commits[0][0] in self._refused:
            self._commits.pop(0)
        if not self._commits:
            raise Violation(EXACTLY_ONCE, f"{item_id} was committed by nobody")
        _, number, end = self._commits.pop(0)
        while self._clears and self._clears[0][0] < number:
            self._start = max(self._start, self._clears.pop(0)[1])
        self._items[item_id] = (self._start, end)
        self._start = end

    def _compare(self, item: dict[str, Any]) -> None:
        span = self._items.get(item["id"])
        if span is None or not item["content"] or not item["content"][0].get("audio"):
            return
        start, end = span
        audio = pybase64.b64decode(item["content"][0]["audio"])
        if audio != bytes(self._pcm[2 * start : 2 * end]):
            raise Violation(
                EXACTLY_ONCE,
                f"{item['id']} has {len(audio) // 2} samples, not {start} to {end} of what was sent",
            )
