"""The places that stages run in, for tests that hold on all of them, and a stage that can be told to fail."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from counterpoint.plugins.contract import PluginLoad
from counterpoint.stages.link import Place
from counterpoint.stages.process import ProcessPlace
from counterpoint.stages.stage import StageOutlet, StageSpec
from counterpoint.stages.thread import ThreadPlace

PLACES = ["thread", "process", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])]

FRAGILE = "tests.stages.places:Fragile"


def place_called(name: str) -> Place:
    match name:
        case "thread":
            return ThreadPlace()
        case "process":
            return ProcessPlace()
        case _:
            from counterpoint.stages.ray_actor import RayPlace

            return RayPlace(cpus=0.1)


def fragile(**options: Any) -> StageSpec:
    return StageSpec(FRAGILE, options)


class Fragile:
    """Gives back units with the calls so far; a unit that is the name of a fault is that fault."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._calls: dict[str, list[str]] = {}
        self._outlet: StageOutlet

    async def start(self, outlet: StageOutlet) -> None:
        if self._options.get("fail_start"):
            raise ValueError("no weights")
        self._outlet = outlet

    async def open(self, request: str, setup: Any) -> None:
        self._calls[request] = [f"open {setup}"]

    async def process(self, request: str, unit: Any) -> None:
        match unit:
            case "raise":
                raise ValueError("bad unit")
            case "crash":
                self._crash()
            case "hang":
                await self._hang(request)
            case "wait for room":
                await self._outlet.writable(request)
                self._outlet.emit(request, "there was room")
            case "calls":
                self._outlet.emit(request, list(self._calls[request]))
            case "where":
                self._outlet.emit(request, (os.getpid(), threading.get_ident()))
            case _:
                self._outlet.emit(request, unit)

    async def control(self, request: str, command: Any) -> None:
        self._calls[request].append(f"control {command}")

    async def abort(self, request: str) -> None:
        self._calls[request].append("abort")

    async def close(self, request: str) -> None:
        self._calls.pop(request, None)

    def load(self) -> PluginLoad:
        return PluginLoad(len(self._calls), slots=4, p95_step_ms=1.5)

    async def stop(self) -> None:
        pass

    async def _hang(self, request: str) -> None:
        self._calls[request].append("hangs")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._calls[request].append("given up")

    def _crash(self) -> None:
        if self._options.get("in_thread"):
            raise SystemExit
        os._exit(1)
