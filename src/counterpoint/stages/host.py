"""The end of a link at which the stage is.

Owns: calling the stage for each message, its outlet, telling how busy it is.
Does not own: how messages come and go (``send`` is given), the life of thread, process or actor.
Here because: a stage must not be able to tell where it runs.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any, Final, assert_never

from counterpoint.errors import PluginError

from .messages import (
    AskRoom,
    Call,
    FromStage,
    GiveUp,
    Loaded,
    Method,
    Returned,
    Room,
    Said,
    Started,
    Stop,
    ToStage,
)
from .stage import Stage, StageSpec

#: How often the other end learns how busy the stage is.
LOAD_INTERVAL_S: Final = 0.5


class StageHost:
    """One stage at work. ``run`` returns after ``Stop``; ``SystemExit`` in a stage ends its place."""

    def __init__(self, spec: StageSpec, send: Callable[[FromStage], None]) -> None:
        self._spec = spec
        self._send = send
        self._stage: Stage | None = None
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._asking: dict[int, asyncio.Future[None]] = {}
        self._asked = 0
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        try:
            stage = self._spec.make()
            await stage.start(self)
        except Exception as error:  # noqa: BLE001 (it is raised at the other end)
            self._send(Started(_portable(error)))
            return
        self._stage = stage
        self._send(Started(None))
        try:
            while not self._stopped.is_set():
                self._send(Loaded(stage.load()))
                try:
                    async with asyncio.timeout(LOAD_INTERVAL_S):
                        await self._stopped.wait()
                except TimeoutError:
                    continue
        finally:
            for call in list(self._calls.values()):
                call.cancel()
            await stage.stop()

    def received(self, message: ToStage) -> None:
        match message:
            case Call():
                number = message.number
                self._calls[number] = task = asyncio.create_task(self._answer(message))
                task.add_done_callback(lambda task: self._answered(number, task))
            case GiveUp(number):
                if (call := self._calls.get(number)) is not None:
                    call.cancel()
            case Room(number):
                if (asking := self._asking.pop(number, None)) is not None and not asking.done():
                    asking.set_result(None)
            case Stop():
                self._stopped.set()
            case _:
                assert_never(message)

    def _answered(self, number: int, task: asyncio.Task[None]) -> None:
        self._calls.pop(number, None)
        if not task.cancelled():
            task.exception()  # ``SystemExit`` ends the place; there is nobody to tell it to

    async def _answer(self, call: Call) -> None:
        failure: Exception | None = None
        try:
            await self._call(call)
        except Exception as error:  # noqa: BLE001 (it is raised at the other end)
            failure = _portable(error)
        self._send(Returned(call.number, failure))

    async def _call(self, call: Call) -> None:
        if self._stage is None:
            raise PluginError("the stage has not started")
        match call.method:
            case Method.OPEN:
                await self._stage.open(call.request, call.value)
            case Method.PROCESS:
                await self._stage.process(call.request, call.value)
            case Method.CONTROL:
                await self._stage.control(call.request, call.value)
            case Method.ABORT:
                await self._stage.abort(call.request)
            case Method.CLOSE:
                await self._stage.close(call.request)
            case _:
                assert_never(call.method)

    # ------------------------------------------------------------------ StageOutlet

    def emit(self, request: str, output: Any) -> None:
        self._send(Said(request, output))

    async def writable(self, request: str) -> None:
        self._asked += 1
        number = self._asked
        self._asking[number] = asyncio.get_running_loop().create_future()
        self._send(AskRoom(number, request))
        try:
            await self._asking[number]
        finally:
            self._asking.pop(number, None)


def _portable(error: Exception) -> Exception:
    """``error``, or what can be said of it where its own kind does not travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 (pickling calls the error's own code)
        return PluginError(f"{type(error).__name__}: {error}")
    return error
