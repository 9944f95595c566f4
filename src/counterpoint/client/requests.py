"""Who waits for which answer of the server.

Owns: matching events to those who wait for them; refusing them by the error that names their event.
Does not own: sending (``link``), what an answer means (``session``).
Here because: most answers do not name the event that they answer. They come in the order in which it was
asked, so somebody who asked and waits no longer keeps his place until his answer has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from counterpoint.errors import ClientError

from .event import Event, text_of
from .handshake import refusal_of

#: What an event means to who waits: a value, or None: it is not the answer.
Accept = Callable[[Event], Any]


class Requests:
    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Accept, asyncio.Future[Any]]] = {}

    def expect(self, event_id: str, accept: Accept) -> asyncio.Future[Any]:
        """The answer to the client's event ``event_id``: the first event that ``accept`` makes a value of."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[event_id] = (accept, future)
        return future

    def is_awaited(self, event_id: str) -> bool:
        """Whether somebody still waits for this one."""
        _, future = self._waiting.get(event_id, (None, None))
        return future is not None and not future.done()

    def offer(self, event: Event) -> None:
        """Give the event to the first who takes it for his answer."""
        if event.type == "error":
            self._fail(text_of(event.object("error"), "event_id"), refusal_of(event))
            return
        for event_id, (accept, future) in self._waiting.items():
            answer = accept(event)
            if answer is not None:
                del self._waiting[event_id]
                if not future.done():
                    future.set_result(answer)
                return

    def fail(self, error: ClientError, concerned: Callable[[str], bool] = lambda event_id: True) -> None:
        """Tell those that are concerned that no answer will come."""
        for event_id in [event_id for event_id in self._waiting if concerned(event_id)]:
            self._fail(event_id, error)

    def _fail(self, event_id: str, error: ClientError) -> None:
        _, future = self._waiting.pop(event_id, (None, None))
        if future is not None and not future.done():
            future.set_exception(error)
