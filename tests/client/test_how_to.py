"""Every piece of code on the page about the client is run, against a real server."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from counterpoint.client import connect
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.testing.server import running_server

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "python-client.md"
PIECES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
ADDRESS = "ws://127.0.0.1:8099"

#: ``amp`` finds speech by loudness alone; the answer is one second of the script's ramp.
SESSION = {
    "audio": {"input": {"turn_detection": {"type": "server_vad", "detector": "amp"}, "transcription": {}}},
    "extra_body": {"script": {"pace": "burst", "text": "good day", "input_transcript": "hello"}},
}
TONE = (30_000).to_bytes(2, "little") * SESSION_RATE


class HeardEnough(Exception):
    """How the test stops a conversation that would go on for ever."""


class Speaker:
    """Plays one second."""

    def __init__(self) -> None:
        self.heard = b""

    async def play(self, chunk: bytes) -> None:
        self.heard += chunk
        if len(self.heard) == 2 * SESSION_RATE:
            raise HeardEnough


async def microphone() -> AsyncIterator[bytes]:
    for start in range(0, len(TONE), 960):
        yield TONE[start : start + 960]
    while True:
        yield bytes(960)
        await asyncio.sleep(0.02)


def piece_with(text: str) -> str:
    (piece,) = [piece for piece in PIECES if text in piece]
    return str(piece)


async def run(piece: str, **names: Any) -> dict[str, Any]:
    """Run a piece of the page, which may await, with ``names``; returns all names afterwards."""
    async with running_server() as server, connect(server.url, session=SESSION) as session:
        names = {"asyncio": asyncio, "connect": connect, "session": session, "question": TONE, **names}
        code = compile(piece.replace(ADDRESS, server.url), str(PAGE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        async with asyncio.timeout(20):
            if (coroutine := eval(code, names)) is not None:
                await coroutine
    return names


def test_the_page_has_no_piece_that_is_not_run() -> None:
    assert len(PIECES) == len(TESTED)
    assert all(piece_with(text) for text in TESTED)


TESTED = (
    "asyncio.run(main())",
    "TaskGroup",
    "commit_audio",
    "for item in session.conversation",
    "session.events()",
    "function_call_output",
    "math.inf",
    "detach()",
    "except ServerRefused",
)


async def test_a_first_conversation() -> None:
    async with running_server() as server:
        program = piece_with("asyncio.run(main())").replace(ADDRESS, server.url)
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, timeout=30
        )
    assert (done.stdout.split()[:2], done.stderr) == (["completed", "word1"], "")


async def test_speaking_and_listening() -> None:
    speaker = Speaker()
    with pytest.raises(ExceptionGroup) as stopped:
        await run(piece_with("TaskGroup"), microphone=microphone, speaker=speaker)
    assert stopped.group_contains(HeardEnough)
    assert speaker.heard == b"".join(((7919 + i) % 32768).to_bytes(2, "little") for i in range(SESSION_RATE))


async def test_turns_by_hand() -> None:
    names = await run(piece_with("commit_audio") + "\nawait response.done()")
    assert names["response"].text == "good day"


async def test_reading_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    await run('await session.send_text("hello")\n' + piece_with("for item in session.conversation"))
    assert capsys.readouterr().out == "user completed hello\n"


async def test_reading_events(capsys: pytest.CaptureFixture[str]) -> None:
    await run("await session.append_audio(question + bytes(48_000))\n" + piece_with("session.events()"))
    assert capsys.readouterr().out == "somebody speaks, at 0 ms\n"


async def test_calling_functions() -> None:
    script = [{"tool_calls": [{"name": "now", "arguments": "{}"}]}, {"text": "it is noon"}]
    setting = f'await session.update({{"extra_body": {{"script": {script}}}}})\n'
    names = await run(setting + piece_with("function_call_output"))
    assert names["output"]["output"] == "noon"
    assert names["answer"].text == "it is noon"
    kinds = [item.type for item in names["session"].conversation]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


async def test_a_patient_program() -> None:
    names = await run(piece_with("math.inf"))
    assert names["patient"].close_reason.code == 1000


async def test_handing_over() -> None:
    names = await run(piece_with("detach()"))
    assert names["second"].id == names["first"].id


async def test_being_refused(capsys: pytest.CaptureFixture[str]) -> None:
    await run(piece_with("except ServerRefused"))
    assert capsys.readouterr().out == "invalid_event session.audio.input.format.rate\n"
