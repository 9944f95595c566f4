"""Hygiene: a test that leaves something behind, or swallows a failure, fails.

Owns: what every test of this repository is held to: no task, thread or socket outlives it, and no traceback
that nobody handled is logged.
Does not own: fixtures of any layer (they live beside its tests).
Here because: a leak shows as a flake in some later test, where nobody can find it.

A test whose subject is a failure that the product logs with its traceback says so with
``@pytest.mark.logs_traceback``.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

#: A thread that was told to stop needs a moment for it.
JOIN_S = 2.0

#: Closing transports and cancelled tasks need some turns of the loop, never a sleep.
LOOP_TURNS = 20


# On a busy machine any example may be slow. (Hypothesis sees by itself that it runs in CI, and then draws the
# same examples each time.)
settings.register_profile("any_machine", settings(), deadline=None)
settings.load_profile("any_machine")

# What is logged by way of structlog is seen by the standard library's handlers, ours among them.
structlog.configure(
    processors=[structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
)


class UnhandledTracebacks(logging.Handler):
    """Collects what nobody handled: errors of asyncio, and whatever was logged with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.name == "asyncio":
            self.seen.append(logging.Formatter().format(record))


def open_sockets() -> set[tuple[int, int]]:
    """Descriptor and inode of every socket that this process has open."""
    found = set()
    for entry in Path("/dev/fd").iterdir():
        try:
            status = os.fstat(int(entry.name))
        except OSError:  # the descriptor of the listing itself
            continue
        if stat.S_ISSOCK(status.st_mode):
            found.add((int(entry.name), status.st_ino))
    return found


def left_threads(before: set[threading.Thread]) -> list[str]:
    threads = [thread for thread in threading.enumerate() if thread not in before]
    for thread in threads:
        thread.join(JOIN_S)
    return [thread.name for thread in threads if thread.is_alive()]


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No thread, socket or unhandled traceback is left once all other fixtures, and the loop, are gone."""
    threads, sockets = set(threading.enumerate()), open_sockets()
    tracebacks = UnhandledTracebacks()
    logging.getLogger().addHandler(tracebacks)
    try:
        yield
        gc.collect()  # a task's exception that was never retrieved is reported when the task is collected
    finally:
        logging.getLogger().removeHandler(tracebacks)
    assert not (left := left_threads(threads)), f"threads left running: {left}"
    assert not (opened := open_sockets() - sockets), f"sockets left open: {sorted(opened)}"
    if "logs_traceback" not in request.keywords:
        assert not tracebacks.seen, "logged and not handled:\n" + "\n".join(tracebacks.seen)


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """No task of the test's loop is left once all other fixtures of the test are gone."""
    before = asyncio.all_tasks()
    yield
    if own := asyncio.current_task():
        before.add(own)
    for _ in range(LOOP_TURNS):
        if asyncio.all_tasks() <= before:
            return
        await asyncio.sleep(0)
    left = sorted(repr(task) for task in asyncio.all_tasks() - before)
    assert not left, f"tasks left running: {', '.join(left)}"


@pytest.fixture(autouse=True)
def tasks_watched(request: pytest.FixtureRequest, nothing_left: None) -> None:
    """Where there is a loop, ``no_task_left`` is set up before all other fixtures, hence torn down after."""
    function = getattr(request.function, "hypothesis", None)
    inner = function.inner_test if function is not None else request.function
    if inspect.iscoroutinefunction(inner):
        request.getfixturevalue("no_task_left")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was loaded for all tests need not be looked at again by the collection after each of them."""
    gc.collect()
    gc.freeze()
