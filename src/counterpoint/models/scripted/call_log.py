"""What was called on the scripted model, and with which request id.

Owns: the bounded log and the form of its entries.
Does not own: who shows it (``serving``, on the debug route).
Here because: a test of a server must see that each ``generate`` that was called off met its ``abort``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from counterpoint.plugins.contract import Fence

#: Entries kept: the last minute of forty sessions that append every 600 ms.
CAPACITY: Final = 4096


class CallLog:
    """The newest calls of all sessions, oldest first. Used on the loop only."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=CAPACITY)

    def add(self, call: str, fence: Fence, **details: Any) -> None:
        """Note ``call`` (open, append, generate, abort, end, close) on the request of ``fence``."""
        self._entries.append(
            {
                "call": call,
                "session_id": fence.session,
                "request_id": request_id(fence),
                "at": asyncio.get_running_loop().time(),
                **details,
            }
        )

    def entries(self) -> list[dict[str, Any]]:
        return list(self._entries)


def request_id(fence: Fence) -> str:
    """One name per (session, epoch, turn): what a stage request is bound to."""
    return f"{fence.session}/{fence.epoch}/{fence.turn}"
