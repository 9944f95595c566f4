"""Opening a session at an address.

Owns: ``connect``; what goes into the URL and the headers.
Does not own: the session that it opens (``session``).
Here because: it is the one door, and everything that may be asked for at it should be found at it.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .options import Options, ResumePoint
from .session import Session
from .transport import WebSocketTransport

_PATH = "/v1/realtime"
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}
_NO_OPTIONS = Options()


def connect(
    url: str,
    *,
    api_key: str | None = None,
    session: dict[str, Any] | None = None,
    model: str | None = None,
    extended: bool = True,
    resume: ResumePoint | None = None,
    tls: ssl.SSLContext | None = None,
    options: Options = _NO_OPTIONS,
) -> Connecting:
    """Open a session, or take one over.

    ::

        async with connect("ws://127.0.0.1:8099", session={"instructions": "Be brief."}) as session:
            await session.send_text("Good morning")
            response = await session.respond()
            print((await response.done()).text)

    ``url`` is the server's (``ws``, ``wss``, ``http`` or ``https``); without a path it gets
    ``/v1/realtime``. ``session`` is the configuration to open it with, in the official shape; ``model`` one
    of the names that the server lists. ``resume`` takes over the session of ``Session.resume_point`` as it
    is, so it goes with no ``session``.

    ``extended=False`` speaks the official API only, to any server of it: nothing is numbered, and a lost
    connection is the end of the session.

    Leaving the block closes the session; with ``await connect(...)`` the program does (``Session.close``,
    or ``Session.detach`` to keep it). Only the first connection is tried just once: it raises
    ``ServerRefused`` if the server says no, ``ConnectionLost`` if there is none.
    """
    if resume is not None and (session is not None or not extended):
        raise ValueError("a session is resumed as it is, by an extended connection")
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    query = {"model": model, "autostart": "0" if extended else None}
    dial = functools.partial(
        WebSocketTransport.dial, _address(url, query), headers=headers, tls=tls, ping_s=options.ping_s
    )
    return Connecting(lambda: Session(dial, options, extended=extended), session or {}, resume)


class Connecting:
    """What ``connect`` returns: ``async with`` it, or ``await`` it. Each time it is a new session."""

    def __init__(
        self, make: Callable[[], Session], config: dict[str, Any], resume: ResumePoint | None
    ) -> None:
        self._make = make
        self._config = config
        self._resume = resume
        self._entered: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    async def _open(self) -> Session:
        session = self._make()
        await session.open(self._config, self._resume)
        return session

    async def __aenter__(self) -> Session:
        if self._entered is not None:
            raise RuntimeError("this block is entered already; call connect() for another session")
        self._entered = await self._open()
        return self._entered

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        session, self._entered = self._entered, None
        if session is not None:
            await session.close()


def _address(url: str, query: dict[str, str | None]) -> str:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise ValueError(f"not the address of a server: {url!r}; it looks like ws://host:8099/v1/realtime")
    given = [(key, value) for key, value in query.items() if value is not None]
    asked = [*parse_qsl(parts.query, keep_blank_values=True), *given]
    path = parts.path if parts.path not in ("", "/") else _PATH
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, urlencode(asked), ""))
