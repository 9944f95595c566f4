"""The runner carries out what its machine asks for, also when the model does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from counterpoint.limits import Limits
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.plugins.contract import Fence, ModelEvent
from counterpoint.protocol import codec
from counterpoint.protocol.config import SessionConfig
from counterpoint.protocol.events import ResponseDone
from counterpoint.protocol.ids import IdSource
from counterpoint.runtime.detection import DetectionService
from counterpoint.runtime.runner import STOP_RETRIES_S, Runner
from counterpoint.session.effects import Discard, Emit, EndSession, Reply
from counterpoint.session.inputs import CommandReceived
from counterpoint.session.machine import SessionMachine
from counterpoint.testing import virtual_time


class Outbox:
    """Remembers what the session said."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def emit(self, effect: Emit) -> None:
        self.said.append(effect.event)

    def reply(self, effect: Reply) -> None:
        self.said.append(effect.event)

    def discard(self, effect: Discard) -> None:
        pass

    def pending_bytes(self) -> int:
        return 0

    def produced(self, event: ModelEvent) -> None:
        pass


class Stubborn:
    """A model that answers nothing, and whose ``cancel`` raises ``failures`` times."""

    def __init__(self, failures: int) -> None:
        self.cancels: list[tuple[Fence, Fence]] = []
        self.closed = False
        self._failures = failures

    async def _accept(self, *_: object) -> None:
        pass

    open = push = prepare = respond = abort = forget = truncate = update = _accept

    async def cancel(self, old: Fence, new: Fence) -> None:
        self.cancels.append((old, new))
        if len(self.cancels) <= self._failures:
            raise RuntimeError("not now")

    async def close(self) -> None:
        self.closed = True


def command(text: str) -> CommandReceived:
    return CommandReceived(codec.decode(text), True, len(text))


@pytest.mark.parametrize(("failures", "attempts"), [(0, 1), (1, 2), (3, 4), (100, 1 + len(STOP_RETRIES_S))])
def test_an_answer_that_does_not_stop_is_called_off_again(failures: int, attempts: int) -> None:
    """Invariant 80, case C-05. Always the same fence; the client does not wait for any of it."""
    virtual_time.run(_call_off(Stubborn(failures), attempts))


async def _call_off(model: Stubborn, attempts: int) -> None:
    plugin, outbox, limits = ScriptedPlugin({}), Outbox(), Limits()
    machine = SessionMachine(
        "sess_test",
        SessionConfig(),
        plugin.capabilities(),
        limits,
        IdSource("00"),
        validate=plugin.validate,
        now=0.0,
    )
    ended: list[EndSession] = []
    detection = DetectionService()
    runner = Runner(
        machine,
        lambda: model,
        outbox,
        detection,
        max_pending_output_bytes=limits.max_pending_output_bytes,
        cleanup_timeout_s=limits.cleanup_timeout_s,
        ended=ended.append,
    )
    runner.open_model()
    await asyncio.sleep(0)
    runner.post(command('{"type": "response.create", "response": {"instructions": "greet"}}'))
    runner.post(command('{"type": "response.cancel"}'))
    assert isinstance(outbox.said[-1], ResponseDone)
    await asyncio.sleep(10)
    assert len(model.cancels) == attempts
    assert len(set(model.cancels)) == 1
    runner.post(command('{"type": "session.close"}'))
    await asyncio.sleep(1)
    assert model.closed
    assert len(ended) == 1
    await runner.stop()
    detection.close()
