"""One session of the scripted model.

Owns: the answers under way, transcripts on their way, opening and closing as scripted.
Does not own: what an answer says (``content``), when (``answer``), by which script (``playbook``).
Here because: it is the smallest complete turn-based ``ModelSession``, and what tests talk to.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from counterpoint.errors import ModelOpenFailed
from counterpoint.plugins.contract import (
    Fence,
    Outlet,
    ResponseRequest,
    StepInput,
    TurnEnd,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.protocol.config import SessionConfig

from . import content
from .answer import AnswerTask
from .call_log import CallLog
from .heard import HeardAudio
from .playbook import Playbook
from .script import DEFAULT_SCRIPT, Lifecycle, Script


class ScriptedSession:
    """A ``ModelSession``. ``open_sessions`` has the id of every session that still holds something."""

    def __init__(self, session_id: str, lifecycle: Lifecycle, log: CallLog, open_sessions: set[str]) -> None:
        self._fence = Fence(session_id, 0)
        self._default_lifecycle = lifecycle
        self._log = log
        self._open_sessions = open_sessions
        self._playbook = Playbook()
        self._heard = HeardAudio()
        self._outlet: Outlet
        self._answers: dict[int, AnswerTask] = {}  #: by turn
        self._transcripts: dict[int, asyncio.Task[None]] = {}  #: by input
        self._close_by: float | None = None  #: loop time at which the scripted cleanup is over

    async def open(self, config: SessionConfig, outlet: Outlet) -> None:
        self._log.add("open", self._fence)
        self._playbook.read(config.extra_body)
        lifecycle = self._playbook.lifecycle(self._default_lifecycle)
        await asyncio.sleep(lifecycle.open_delay_ms / 1000)
        if lifecycle.fail_open:
            raise ModelOpenFailed("the script says so")
        self._outlet = outlet
        self._open_sessions.add(self._fence.session)

    async def push(self, step: StepInput) -> None:
        self._log.add("append", step.fence, input=step.input, samples=len(step.audio) // 2, final=step.final)
        self._heard.add(step.input, step.audio)
        if step.final:
            self._transcribe(step, self._playbook.next_for_input() or DEFAULT_SCRIPT)

    async def prepare(self, request: ResponseRequest) -> None:
        """Nothing is gained by an early start: a scripted answer is made as it is said."""

    async def respond(self, request: ResponseRequest) -> None:
        self._log.add("generate", request.fence)
        self._playbook.read(request.extra)
        script = self._playbook.next_for_answer(request.nth)
        if script is None:
            script, call = DEFAULT_SCRIPT, content.sample_call(request)
            script = script if call is None else replace(script, parts=(call,))
        answer = content.plan(script, request, self._audio_of_turn(request))
        started = AnswerTask(script, answer, request, self._outlet)
        self._answers[request.fence.turn] = started
        started.task.add_done_callback(lambda task: self._ended(request.fence, task))

    async def cancel(self, old: Fence, new: Fence) -> None:
        for answer in list(self._answers.values()):
            if answer.request.fence.epoch <= old.epoch and not answer.request.out_of_band:
                self._stop(answer)

    async def abort(self, fence: Fence) -> None:
        if (answer := self._answers.get(fence.turn)) is not None:
            self._stop(answer)

    async def forget(self, input: int) -> None:
        self._heard.forget(input)

    async def truncate(self, fence: Fence, heard_chars: int, heard_samples: int) -> None:
        """The history of each request says what was heard, and nothing else is remembered here."""

    async def update(self, config: SessionConfig) -> None:
        self._playbook.read(config.extra_body)

    async def close(self) -> None:
        self._log.add("close", self._fence)
        tasks = [answer.task for answer in self._answers.values()] + list(self._transcripts.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._clean_up(self._playbook.lifecycle(self._default_lifecycle))
        self._open_sessions.discard(self._fence.session)

    async def _clean_up(self, lifecycle: Lifecycle) -> None:
        """Take as long as scripted, from the first attempt on: one that was given up on is not lost."""
        if lifecycle.hang_on_close:
            await asyncio.Event().wait()
        now = asyncio.get_running_loop().time()
        if self._close_by is None:
            self._close_by = now + lifecycle.cleanup_delay_ms / 1000
        await asyncio.sleep(max(0.0, self._close_by - now))

    def _stop(self, answer: AnswerTask) -> None:
        self._log.add("abort", answer.request.fence)
        answer.stop()

    def _ended(self, fence: Fence, task: asyncio.Task[TurnEnd | None]) -> None:
        del self._answers[fence.turn]
        end = None if task.cancelled() else task.result()
        if end is not None and end.usage is not None:
            self._log.add("end", fence, output_tokens=end.usage.output_tokens)

    def _audio_of_turn(self, request: ResponseRequest) -> bytes:
        """The newest user item as audio: what the client created it with, else what was pushed."""
        if not request.out_of_band:
            self._heard.forget_before(request.input)
        newest = next((item for item in reversed(request.history) if item.role == "user"), None)
        if newest is not None and newest.audio is not None:
            return newest.audio
        return self._heard.all_of(request.input)

    def _transcribe(self, step: StepInput, script: Script) -> None:
        if step.transcribe:
            task = asyncio.create_task(self._tell(step, script), name=f"scripted transcript {step.input}")
            self._transcripts[step.input] = task
            task.add_done_callback(lambda _: self._transcripts.pop(step.input, None))

    async def _tell(self, step: StepInput, script: Script) -> None:
        """The scripted transcript, in words and then whole."""
        await asyncio.sleep(script.transcript_delay_ms / 1000)
        if script.fail_transcript:
            self._outlet.emit(step.fence, UserTranscriptFailed(step.input, "the script says so"))
            return
        for piece in re.findall(r"\S+\s*", script.input_transcript):
            self._outlet.emit(step.fence, UserTranscript(step.input, piece, final=False))
        self._outlet.emit(step.fence, UserTranscript(step.input, script.input_transcript))
