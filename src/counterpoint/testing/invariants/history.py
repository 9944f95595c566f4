"""What a model is given of its own answers, against what their listener acknowledged (CASE-INV-11).

Owns: transcripts with their marks, acknowledgements, the comparison with a history that the model repeats.
Does not own: how it is known what a model was given: it repeats it (a script with ``echo_history``), or
whoever runs it says so.
Here because: an answer that was cut off must be remembered as it was heard, and only the model sees that.

Holds for sessions that acknowledge (``ack_only``) and answers that have audio. It is an upper bound: an
acknowledgement counts from when it was sent, and as far as the next mark. Who truncates an item says that it
was heard so far.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .violation import Violation

HEARD = "CASE-INV-11"

#: How a history as JSON begins (``models.scripted.content.history_json``).
_HISTORY = '[{"id": '


@dataclass(slots=True)
class _Spoken:
    response_id: str
    text: str = ""
    #: Milliseconds of audio, and the characters spoken by then.
    marks: list[tuple[int, int]] = field(default_factory=list)
    duration_ms: int = 0
    #: All of its audio came.
    complete: bool = False
    acknowledged_ms: int = 0

    @property
    def heard_chars(self) -> int:
        """As many characters at most were heard. Where marks contradict each other, the least holds."""
        if not self.acknowledged_ms:
            return 0
        if self.complete and self.acknowledged_ms >= self.duration_ms:
            return len(self.text)
        later = (chars for ms, chars in self.marks if ms >= self.acknowledged_ms)
        return min(later, default=len(self.text))


class History:
    def __init__(self) -> None:
        self._spoken: dict[str, _Spoken] = {}

    def acknowledged(self, played_ms: int, *, item_id: str = "", response_id: str = "") -> None:
        """The client says how much it played, of an item or of every item of a response."""
        for spoken_id, spoken in self._spoken.items():
            if spoken_id == item_id or spoken.response_id == response_id:
                spoken.acknowledged_ms = max(spoken.acknowledged_ms, played_ms)

    def take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "response.output_audio_transcript.delta":
                self._of(event).text += event["delta"]
            case "response.output_audio.delta":
                self._of(event).duration_ms += event.get("duplex", {}).get("audio_duration_ms", 0)
                for mark in event.get("duplex", {}).get("audio_text_marks", ()):
                    self._of(event).marks.append((mark["audio_ms"], mark["text_chars"]))
            case "response.output_audio.done":
                self._of(event).complete = True
            case "response.output_audio_transcript.done" if event["transcript"].startswith(_HISTORY):
                self._compare(event["transcript"])
            case "response.output_text.done" if event["text"].startswith(_HISTORY):
                self._compare(event["text"])
            case _:
                pass

    def _of(self, event: dict[str, Any]) -> _Spoken:
        return self._spoken.setdefault(event["item_id"], _Spoken(event["response_id"]))

    def _compare(self, repeated: str) -> None:
        try:
            entries = json.loads(repeated)
        except ValueError:
            return  # the answer was cut off in the middle
        for entry in entries:
            self.given(entry["id"], entry["text"])

    def given(self, item_id: str, text: str | None) -> None:
        """A model is given ``text`` as what an item says."""
        spoken = self._spoken.get(item_id)
        if spoken is not None and spoken.marks and text:
            self._check(item_id, text, spoken)

    def _check(self, item_id: str, text: str, spoken: _Spoken) -> None:
        most = spoken.heard_chars
        if not spoken.text.startswith(text) or len(text) > most:
            raise Violation(
                HEARD,
                f"{item_id}: the model sees {text!r} of {spoken.text!r}; "
                f"{spoken.acknowledged_ms} ms, {most} characters at most, were heard",
            )
