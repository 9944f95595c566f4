"""The Python client: a session that outlives its connections.

Owns: everything that a program needs to talk to a server of the wire contract, or of the official API.
Does not own: microphones, loudspeakers, audio conversion; the server.
Here because: resuming rightly is work that nobody should have to do twice.

::

    from counterpoint.client import connect

    async with connect("ws://127.0.0.1:8099") as session:
        await session.send_text("Good morning")
        response = await session.respond()
        async for chunk in response.audio():
            speaker.write(chunk)

It needs aiohttp, msgspec and pybase64, and nothing of the server. Its errors are ``ClientError`` and what is
below it in ``counterpoint.errors``.
"""

from counterpoint.errors import AnswerMissed, ClientError, ConnectionLost, ServerRefused, SessionEnded
from counterpoint.protocol.commands import ReplayPolicy

from .connect import connect
from .conversation import Conversation, Item
from .event import Event
from .options import Backoff, CloseReason, Options, ResumePoint
from .response import Response
from .session import Session

__all__ = [
    "AnswerMissed",
    "Backoff",
    "ClientError",
    "CloseReason",
    "ConnectionLost",
    "Conversation",
    "Event",
    "Item",
    "Options",
    "ReplayPolicy",
    "Response",
    "ResumePoint",
    "ServerRefused",
    "Session",
    "SessionEnded",
    "connect",
]
