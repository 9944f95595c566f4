"""The end of a link at which a stage is used.

Owns: calls that wait for their return, output on its way to its request, the loss of both with the place.
Does not own: another place after a loss (``executor``), choosing among several (``executor``).
Here because: to its user a stage elsewhere is a stage, apart from ``StageLost``.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, assert_never

from counterpoint.plugins.contract import PluginLoad

from .link import Link, Place
from .messages import AskRoom, Call, FromStage, GiveUp, Loaded, Method, Returned, Room, Said, Started, Stop
from .stage import StageLost, StageSpec


class Requester(Protocol):
    """Who made a request."""

    def said(self, output: Any) -> None: ...

    async def writable(self) -> None: ...

    def lost(self) -> None:
        """The stage forgot the request; nothing more comes of it."""
        ...


class RemoteStage:
    """One life of one place, from ``launch`` to its loss or ``stop``. ``gone`` is set at its end."""

    def __init__(self) -> None:
        self.load = PluginLoad(healthy=False)
        self.gone = asyncio.Event()
        self._link: Link | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returns: dict[int, asyncio.Future[None]] = {}
        self._requesters: dict[str, Requester] = {}
        #: Requests that waited for room, so that the tasks are not lost.
        self._asking: set[asyncio.Task[None]] = set()
        self._calls = 0

    @property
    def requests(self) -> int:
        return len(self._requesters)

    async def start(self, place: Place, spec: StageSpec) -> None:
        """Returns when the stage is warm. Raises what its start raised, or ``StageLost``."""
        self._link = await place.launch(spec, self)
        try:
            await self._started
        except BaseException:
            await self._link.close()
            raise

    async def stop(self) -> None:
        if self._link is not None:
            self._link.send(Stop())
            await self._link.close()

    # ------------------------------------------------------------------ requests

    async def open(self, request: str, setup: Any, requester: Requester) -> None:
        self._requesters[request] = requester
        try:
            await self.call(Method.OPEN, request, setup)
        except BaseException:
            self._requesters.pop(request, None)
            raise

    async def close(self, request: str) -> None:
        await self.call(Method.CLOSE, request)
        self._requesters.pop(request, None)

    async def call(self, method: Method, request: str, value: Any = None) -> None:
        """Returns when the stage did, raises what it raised, or ``StageLost``."""
        if self._link is None or self.gone.is_set():
            raise StageLost("the stage is gone")
        self._calls += 1
        number = self._calls
        returned: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returns[number] = returned
        self._link.send(Call(number, method, request, value))
        try:
            await returned
        except asyncio.CancelledError:
            self._link.send(GiveUp(number))
            raise
        finally:
            self._returns.pop(number, None)

    # ------------------------------------------------------------------ Peer

    def received(self, message: FromStage) -> None:
        match message:
            case Returned(number, failure):
                if (waiting := self._returns.get(number)) is not None:
                    _settle(waiting, failure)
            case Said(request, output):
                if (requester := self._requesters.get(request)) is not None:
                    requester.said(output)
            case AskRoom():
                asking = asyncio.create_task(self._ask_room(message))
                self._asking.add(asking)
                asking.add_done_callback(self._asking.discard)
            case Loaded(load):
                self.load = load
            case Started(failure):
                _settle(self._started, failure)
            case _:
                assert_never(message)

    def lost(self) -> None:
        self.gone.set()
        self.load = PluginLoad(healthy=False)
        failure = StageLost("the place of the stage is gone")
        for waiting in (self._started, *self._returns.values()):
            _settle(waiting, failure)
        self._started.exception()  # nobody need wait for it any more
        requesters, self._requesters = self._requesters, {}
        for requester in requesters.values():
            requester.lost()
        for asking in self._asking:
            asking.cancel()

    async def _ask_room(self, asked: AskRoom) -> None:
        requester = self._requesters.get(asked.request)
        if requester is not None:
            await requester.writable()
        if self._link is not None:
            self._link.send(Room(asked.number))


def _settle(waiting: asyncio.Future[None], failure: Exception | None) -> None:
    if waiting.done():
        return
    if failure is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(failure)
