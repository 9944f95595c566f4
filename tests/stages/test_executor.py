"""One suite for every executor: thread, worker process, Ray actor."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from counterpoint.errors import PluginError
from counterpoint.stages.executor import Executor
from counterpoint.stages.messages import Method
from counterpoint.stages.remote import RemoteStage
from counterpoint.stages.stage import StageLost

from .places import PLACES, fragile, place_called

pytestmark = [pytest.mark.parametrize("where", PLACES), pytest.mark.timeout(120)]


class Client:
    """``Requester``: what was said to one request."""

    def __init__(self) -> None:
        self.said_to_it: asyncio.Queue[Any] = asyncio.Queue()
        self.room = asyncio.Event()
        self.losses = 0

    def said(self, output: Any) -> None:
        self.said_to_it.put_nowait(output)

    async def writable(self) -> None:
        await self.room.wait()

    def lost(self) -> None:
        self.losses += 1


@asynccontextmanager
async def running(where: str, replicas: int = 1, **options: Any) -> AsyncIterator[Executor]:
    options["in_thread"] = where == "thread"
    executor = Executor(place_called(where), fragile(**options), replicas)
    await executor.start()
    try:
        yield executor
    finally:
        await executor.stop()


async def opened(executor: Executor, request: str) -> tuple[RemoteStage, Client]:
    stage, client = await executor.choose(), Client()
    await stage.open(request, "here", client)
    return stage, client


async def ask(stage: RemoteStage, request: str, client: Client, unit: Any) -> Any:
    await stage.call(Method.PROCESS, request, unit)
    return await client.said_to_it.get()


async def test_units_come_back_in_order_and_to_their_request(where: str) -> None:
    async with running(where) as executor:
        stage, one = await opened(executor, "one")
        _, two = await opened(executor, "two")
        for number in range(50):
            await stage.call(Method.PROCESS, "one", number)
            await stage.call(Method.PROCESS, "two", -number)
        assert [await one.said_to_it.get() for _ in range(50)] == list(range(50))
        assert [await two.said_to_it.get() for _ in range(50)] == [-number for number in range(50)]


async def test_calls_without_waiting_keep_their_order(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        calls = [stage.call(Method.PROCESS, "one", number) for number in range(100)]
        await asyncio.gather(*calls)
        assert [await client.said_to_it.get() for _ in range(100)] == list(range(100))


@pytest.mark.parametrize("size", [3840, 100_000, 3_000_000, 9_000_000])
async def test_audio_of_any_size_arrives_whole(where: str, size: int) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        for salt in range(3):
            pcm = bytes([salt]) + os.urandom(size - 1)
            assert await ask(stage, "one", client, pcm) == pcm


async def test_a_stage_is_where_it_should_be(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        process, thread = await ask(stage, "one", client, "where")
        assert (process == os.getpid()) == (where == "thread")
        assert (process, thread) != (os.getpid(), threading.get_ident())


async def test_control_abort_and_close_reach_the_request(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        await stage.call(Method.CONTROL, "one", "softer")
        await stage.call(Method.ABORT, "one")
        assert await ask(stage, "one", client, "calls") == ["open here", "control softer", "abort"]
        await stage.close("one")
        await stage.close("one")
        assert stage.requests == 0


async def test_what_the_stage_raises_is_raised_here_and_harms_nobody(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        with pytest.raises(ValueError, match="bad unit"):
            await stage.call(Method.PROCESS, "one", "raise")
        assert await ask(stage, "one", client, "still here") == "still here"


async def called(stage: RemoteStage, client: Client, what: str) -> None:
    """Wait until request "one" of the stage has noted ``what``."""
    async with asyncio.timeout(5):
        while what not in await ask(stage, "one", client, "calls"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_call_that_is_given_up_is_cancelled_there(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        call = asyncio.create_task(stage.call(Method.PROCESS, "one", "hang"))
        await called(stage, client, "hangs")  # one that had not begun would be given up without a word
        call.cancel()
        assert await ask(stage, "one", client, "now") == "now"
        await called(stage, client, "given up")


async def test_a_stage_waits_until_its_client_has_room(where: str) -> None:
    async with running(where) as executor:
        stage, client = await opened(executor, "one")
        call = asyncio.create_task(stage.call(Method.PROCESS, "one", "wait for room"))
        assert await ask(stage, "one", client, "meanwhile") == "meanwhile"
        assert not call.done()
        client.room.set()
        await call
        assert await client.said_to_it.get() == "there was room"


async def test_a_crash_loses_the_requests_there_and_no_other(where: str) -> None:
    async with running(where, replicas=2) as executor:
        stage, client = await opened(executor, "one")
        other, neighbour = await opened(executor, "two")
        assert stage is not other, "the second request goes where there are fewer"
        with pytest.raises(StageLost):
            await stage.call(Method.PROCESS, "one", "crash")
        assert client.losses == 1
        assert await ask(other, "two", neighbour, "untouched") == "untouched"
        assert neighbour.losses == 0


async def test_a_lost_stage_is_started_again(where: str) -> None:
    async with running(where) as executor:
        for _ in range(2):
            stage, client = await opened(executor, "one")
            with pytest.raises(StageLost):
                await stage.call(Method.PROCESS, "one", "crash")
            assert not executor.load().healthy
        stage, client = await opened(executor, "one")
        assert await ask(stage, "one", client, "back") == "back"


async def test_it_says_how_busy_its_stages_are(where: str) -> None:
    async with running(where, replicas=2) as executor:
        async with asyncio.timeout(10):
            while executor.load().slots != 8:  # noqa: ASYNC110 (the load comes now and then)
                await asyncio.sleep(0.01)
        assert executor.load().p95_step_ms == 1.5


async def test_a_stage_that_cannot_start_says_why(where: str) -> None:
    with pytest.raises(ValueError, match="no weights"):
        async with running(where, fail_start=True):
            pass


async def test_a_stopped_executor_has_no_place(where: str) -> None:
    async with running(where) as executor:
        stage, _ = await opened(executor, "one")
    with pytest.raises(PluginError):
        await executor.choose()
    with pytest.raises(StageLost):
        await stage.call(Method.PROCESS, "one", 1)
