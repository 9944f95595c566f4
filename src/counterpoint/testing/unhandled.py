"""What went wrong without anybody noticing: errors that were logged, exceptions that nobody awaited.

Owns: watching the log and the loop for the time of a run.
Does not own: what follows from it (``simulation`` makes it a violation).
Here because: a fault that the server survives is a fault all the same (CASE-INV-9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.typing import EventDict

_ERRORS = ("error", "exception", "critical")


@contextmanager
def watched(loop: asyncio.AbstractEventLoop) -> Iterator[list[str]]:
    """The list grows by a line for every error; nothing is logged meanwhile."""
    seen: list[str] = []

    def look(_logger: object, method: str, event: EventDict) -> EventDict:
        if method in _ERRORS:
            seen.append(f"{event['event']}: {event.get('exc_info')!r}")
        raise structlog.DropEvent

    def unawaited(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        seen.append(f"{context['message']}: {context.get('exception')!r}")

    processors = structlog.get_config()["processors"]
    before = list(processors)
    processors[:] = [look]  # in place: loggers that exist already hold this list
    loop.set_exception_handler(unawaited)
    try:
        yield seen
    finally:
        processors[:] = before
        loop.set_exception_handler(None)
