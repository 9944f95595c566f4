"""One event as the client hands it on: a server's, or a notice of the client's own.

Owns: ``Event``, reading one from a frame, the types of the client's notices.
Does not own: what an event changes (``session``, ``conversation``, ``response``).
Here because: a program should see the official JSON, of this server and of others, also of types that came
after this version; and a server may send anything, so nothing here raises on a missing or odd field.
"""

from __future__ import annotations

import binascii
from typing import Any

import msgspec
import pybase64

#: Stream data was dropped because nobody read it. ``stream``: events, responses or audio; ``dropped``: how
#: many events, answers, or bytes.
OVERFLOW = "client.overflow"
#: Microphone audio of an outage was dropped, the oldest first. ``audio_ms``: how much.
AUDIO_DROPPED = "client.audio_dropped"
#: The connection ended and the client is resuming. ``code``, ``reason``: how it ended.
DISCONNECTED = "client.disconnected"
#: A frame that is no event was received and ignored. ``reason``: what is wrong with it.
MALFORMED = "client.malformed_frame"

_DECODER = msgspec.json.Decoder(dict[str, Any])


class Event:
    """An event: its ``type`` and ``data``, the whole JSON object.

    ``event["delta"]`` and ``event.get("delta")`` read ``data``. The typed readers (``string``, ``integer``,
    ``object``) return an empty value for a field that is missing or of another form.
    """

    __slots__ = ("data", "size", "type")

    def __init__(self, data: dict[str, Any], size: int = 0) -> None:
        self.type: str = data["type"]
        self.data = data
        self.size = size  #: bytes of its frame

    def __repr__(self) -> str:
        """Without the data, which may hold a resume token."""
        return f"Event({self.type!r}, seq={self.seq})"

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.data.get(key, default)

    def string(self, key: str) -> str:
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def integer(self, key: str) -> int | None:
        value = self.data.get(key)
        return value if type(value) is int else None

    def object(self, key: str) -> dict[str, Any]:
        value = self.data.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def local(self) -> bool:
        """Whether this is a notice of the client itself and not a server's event."""
        return self.type.startswith("client.")

    @property
    def seq(self) -> int | None:
        """``server_event_seq``; None for what concerns the connection only."""
        return self.integer("server_event_seq")

    @property
    def response_id(self) -> str:
        """The response that the event is about, or an empty string."""
        return self.string("response_id") or text_of(self.object("response"), "id")

    @property
    def audio(self) -> bytes:
        """The audio of a ``response.output_audio.delta``, in the session's output format; else empty."""
        if self.type != "response.output_audio.delta":
            return b""
        try:
            return pybase64.b64decode(self.string("delta"), validate=True)
        except (binascii.Error, ValueError):
            return b""


def text_of(values: dict[str, Any], key: str) -> str:
    """``values[key]`` where it is a string, else an empty one."""
    value = values.get(key)
    return value if isinstance(value, str) else ""


def read_event(frame: str | bytes) -> Event:
    """The event in a text frame. Raises ``ValueError`` if it is none; binary frames (``bytes``) are none."""
    if isinstance(frame, bytes):
        raise ValueError("binary frames are not events")
    try:
        data = _DECODER.decode(frame)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(data.get("type"), str):
        raise ValueError("an event has a type")
    return Event(data, len(frame))


def notice(type: str, **values: Any) -> Event:
    """A notice of the client's own."""
    return Event({"type": type, **values})
