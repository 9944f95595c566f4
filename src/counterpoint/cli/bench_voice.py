"""What a person waits for: the embedded voice, on real speech, over a real socket.

Owns: the questions, playing them in real time, the two latencies, the memory of both servers.
Does not own: the command line (``cli.bench``), anything that a server runs.
Here because: a conversation feels like the time from the end of speech to the first sound of the answer.

The end of speech is the last audible sample of a question, in the moment that sample was sent. Questions are
the three recordings of the test data and seven sentences that the voice itself says.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from counterpoint.audio.wav import read_wav
from counterpoint.client import Event, connect
from counterpoint.errors import ConfigurationError
from counterpoint.models.voice.tts import HibariTts

from .conversation import INPUT, Question, converse, spoken
from .figures import Figure
from .server_process import server_process

RECORDINGS = Path("tests/data/audio")
QUESTIONS = (
    "What is the capital of France?",
    "How many days are there in a week?",
    "Can you tell me what a violin is?",
    "What should I eat for breakfast?",
    "Who wrote the play Hamlet?",
    "Why is the sky blue?",
    "What is your favourite colour?",
)


def measure(progress: Callable[[str], None]) -> list[Figure]:
    """Latencies in seconds and milliseconds, memory in megabytes."""
    return asyncio.run(_measure(progress))


async def _measure(progress: Callable[[str], None]) -> list[Figure]:
    questions = _recordings() + _synthesised(QUESTIONS)
    async with server_process(_serve("cascade")) as (url, pid):
        waits = []
        for number, question in enumerate(questions, 1):
            waits.append(await _end_of_speech_to_answer(url, question))
            progress(f"  question {number} of {len(questions)}: {waits[-1]:.2f} s")
        stale = [await _stale_after_barge_in(url, questions[0]) for _ in range(3)]
        voice_mb = _resident_mb(pid)
    async with server_process(_serve("scripted")) as (url, pid):
        await _end_of_speech_to_answer(url, questions[0])
        scripted_mb = _resident_mb(pid)
    return [
        Figure("end of speech to first audio, median", statistics.median(waits), "s", at_most=1.0),
        Figure("end of speech to first audio, best", min(waits), "s"),
        Figure("end of speech to first audio, worst", max(waits), "s"),
        Figure("barge-in to last stale byte, worst", max(stale) * 1000, "ms", at_most=50),
        Figure("resident memory with the voice", voice_mb, "MB", at_most=800),
        Figure("resident memory with the scripted model", scripted_mb, "MB", at_most=80),
    ]


def _serve(model: str) -> list[str]:
    return [sys.executable, "-m", "counterpoint", "serve", "--model", model, "--port", "0"]


async def _end_of_speech_to_answer(url: str, question: bytes) -> float:
    (turn,) = await converse(url, [question], voice="", fast=False, progress=lambda _: None)
    return turn.latency_ms["first_audio"] / 1000


async def _stale_after_barge_in(url: str, speech: bytes) -> float:
    """How long after the server announced interrupting speech the last audio of the old answer came."""
    async with connect(url, session={"type": "realtime", "audio": {"input": INPUT}}) as session:
        await session.send_text("Tell me a long story about a ship, a storm and a lighthouse.")
        answer = await session.respond()
        events = session.events()
        await _next(events, "response.output_audio.delta")
        last_audio = announced = 0.0
        async with spoken(session, Question(speech)), asyncio.timeout(30):
            async for event in events:
                now = asyncio.get_running_loop().time()
                if event.type == "response.output_audio.delta" and event.get("response_id") == answer.id:
                    last_audio = now
                elif event.type == "input_audio_buffer.speech_started":
                    announced = now
                elif announced and event.type == "response.output_audio.delta":
                    break  # the next answer speaks: nothing of the old one can follow
        return max(0.0, last_audio - announced)


async def _next(events: AsyncIterator[Event], kind: str) -> None:
    async for event in events:
        if event.type == kind:
            return
    raise AssertionError("the session ended")


def _recordings() -> list[bytes]:
    found = sorted(RECORDINGS.glob("*.wav"))
    if not found:
        raise ConfigurationError("voice", f"no recordings in {RECORDINGS}: run it from a checkout")
    return [read_wav(path) for path in found]


def _synthesised(sentences: tuple[str, ...]) -> list[bytes]:
    voice = HibariTts()
    return [voice.synthesize(sentence).tobytes() for sentence in sentences]


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024
