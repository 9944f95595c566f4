"""Which answers there are, and whose they are.

Owns: from events to ``Response`` objects; that each reaches exactly one owner.
Does not own: an answer itself (``response``), asking for one (``session``).
Here because: answers come asked for and unasked, one beside another, and some begin before this client came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from counterpoint.errors import AnswerMissed, ClientError

from .event import OVERFLOW, Event, notice, text_of
from .options import Options
from .response import Response
from .stream import Stream

#: Key of the metadata by which a ``response.created`` tells what asked for it (wire contract, section 5).
REQUEST_KEY = "counterpoint_request"


class Responses:
    """``is_awaited(request)``: somebody waits for the answer to this request and will own it."""

    def __init__(
        self, options: Options, is_awaited: Callable[[str], bool], notify: Callable[[Event], None]
    ) -> None:
        #: Answers that nobody asked for: of a turn that the server found, or asked for by another client.
        self.unclaimed: Stream[Response] = Stream(options.response_buffer, lambda response: 1)
        self._options = options
        self._is_awaited = is_awaited
        self._notify = notify
        self._active: dict[str, Response] = {}
        #: Also those that are done and still in somebody's hands: playback may yet be interrupted.
        self._known: WeakValueDictionary[str, Response] = WeakValueDictionary()

    def asked_by(self, event: Event, request: str) -> Response | None:
        """The answer that the event creates, if ``request`` asked for it."""
        if event.type == "response.created" and _request_of(event.object("response")) == request:
            return self._active.get(event.response_id)
        return None

    def follow(self, event: Event) -> None:
        if event.type == "session.snapshot":
            self._follow_gap(event.object("active_response"))
            return
        response_id = event.response_id
        if not response_id:
            return
        response = self._known.get(response_id)
        if response is None and event.type.startswith("response."):
            response = self._begin(response_id, event.object("response"))
        if response is not None:
            response.follow(event)
        if event.type == "response.done":
            self._active.pop(response_id, None)

    def _begin(self, response_id: str, data: dict[str, Any]) -> Response:
        response = Response(
            response_id,
            audio_limit=self._options.audio_buffer_bytes,
            overflow=lambda: self._notify(notice(OVERFLOW, stream="audio", response_id=response_id)),
        )
        self._active[response_id] = self._known[response_id] = response
        if not self._is_awaited(_request_of(data)):
            dropped = self.unclaimed.put(response)
            if dropped:
                self._notify(notice(OVERFLOW, stream="responses", dropped=dropped))
        return response

    def _follow_gap(self, active: dict[str, Any]) -> None:
        """All that ended in the gap ended unseen; one that goes on may not have been seen before."""
        active_id = text_of(active, "id")
        for response in [response for response in self._active.values() if response.id != active_id]:
            del self._active[response.id]
            response.finish(AnswerMissed("the end of the response fell into a gap"))
        if active_id:
            (self._active.get(active_id) or self._begin(active_id, active)).skip_gap(active)

    def end(self, error: ClientError | None, outcome: ClientError) -> None:
        """The session is over: ``error`` for the iteration, ``outcome`` for answers without an end."""
        for response in self._active.values():
            response.finish(outcome)
        self._active.clear()
        self.unclaimed.end(error)


def _request_of(response: dict[str, Any]) -> str:
    metadata = response.get("metadata")
    return text_of(metadata, REQUEST_KEY) if isinstance(metadata, dict) else ""
