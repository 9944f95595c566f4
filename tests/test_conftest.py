"""The hygiene of ``conftest.py`` catches each kind of leak, and lets clean tests pass."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HEAD = """
import asyncio, logging, socket, threading, time
import pytest, structlog
from hypothesis import given, strategies as st
"""

CLEAN = """
async def test_tasks_that_end():
    task = asyncio.create_task(asyncio.sleep(0))
    await asyncio.to_thread(int)
    task.cancel()

@pytest.fixture
async def server():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    forever = asyncio.create_task(asyncio.Event().wait())
    yield server.sockets[0].getsockname()
    forever.cancel()
    server.close()
    await server.wait_closed()

async def test_what_a_fixture_takes_down(server):
    reader, writer = await asyncio.open_connection(*server)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()

@pytest.mark.logs_traceback
def test_a_traceback_that_is_the_subject():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("as expected")

@given(st.integers())
async def test_a_property(number):
    await asyncio.sleep(0)

def test_without_a_loop():
    with socket.socket():
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
"""

LEAKS = """
async def test_task():
    asyncio.create_task(asyncio.Event().wait(), name="plain")

@given(st.integers())
async def test_task_in_a_property(number):
    asyncio.create_task(asyncio.Event().wait(), name="property")

def test_thread():
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()

kept = []
def test_socket():
    kept.append(socket.socket())

async def fail():
    raise ValueError("nobody looks")

async def test_exception():
    asyncio.create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

def test_log():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger("some.library").exception("oh")

def test_structured_log():
    structlog.get_logger().error("oh", exc_info=ValueError("structured"))
"""

COMPLAINTS = {
    "test_task": "tasks left running: <Task pending name='plain'",
    "test_task_in_a_property": "tasks left running: <Task pending name='property'",
    "test_thread": "threads left running: ",
    "test_socket": "sockets left open: ",
    "test_exception": "Task exception was never retrieved",
    "test_log": "ZeroDivisionError: division by zero",
    "test_structured_log": "ValueError: structured",
}


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with our conftest and our configuration."""
    here = Path(__file__).parent
    pytester.makeconftest((here / "conftest.py").read_text())
    configuration = (here.parent / "pyproject.toml").read_text()
    pytester.makepyprojecttoml(configuration)
    return pytester


def run(inner: pytest.Pytester, source: str) -> pytest.RunResult:
    file = inner.makepyfile(HEAD + source)
    return inner.runpytest_subprocess("-p", "no:cacheprovider", str(file))


def test_clean_tests_pass(inner: pytest.Pytester) -> None:
    run(inner, CLEAN).assert_outcomes(passed=5)


def test_every_leak_fails(inner: pytest.Pytester) -> None:
    result = run(inner, LEAKS)
    result.assert_outcomes(passed=len(COMPLAINTS), errors=len(COMPLAINTS))
    _, *reports = result.stdout.str().split("ERROR at teardown of ")
    complaints = {report.split()[0]: report for report in reports}
    assert complaints.keys() == COMPLAINTS.keys()
    for name, complaint in COMPLAINTS.items():
        assert complaint in complaints[name]
