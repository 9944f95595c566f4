"""``pipecat-ai``: what comes out of its service for the Realtime API, a JSON object a line.

Owns: a pipeline around the service as its documentation shows it.
Does not own: what must be seen (``test_real_clients``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import wave
from typing import Any

from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    FunctionCallInProgressFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMRunFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

WEATHER = FunctionSchema("weather", "The weather in a city.", {"city": {"type": "string"}}, ["city"])
DONE, AUDIO = LLMFullResponseEndFrame, TTSAudioRawFrame


class Talk(FrameProcessor):
    """Stands behind the service in the pipeline and tells what passes."""

    def __init__(self, name: str, speech: bytes) -> None:
        super().__init__()
        self.scenario, self.speech = name, speech
        self.worker: Any = None
        self._text = ""
        self._interrupted = False
        self._passed: asyncio.Queue[type] = asyncio.Queue()

    def saw(self, what: str, **more: object) -> None:
        print(json.dumps({"scenario": self.scenario, "saw": what, **more}), flush=True)

    async def process_frame(self, frame: Any, direction: Any) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case ErrorFrame():
                self.saw("error", message=frame.error)
            case TTSAudioRawFrame():
                self.saw("audio", pcm=base64.b64encode(frame.audio).decode())
            case LLMTextFrame():
                self._text += frame.text
            case FunctionCallInProgressFrame():
                self.saw("tool", name=frame.function_name, arguments=json.dumps(frame.arguments))
            case InterruptionFrame():
                self.saw("interrupted")
                self._interrupted = True
            case LLMFullResponseStartFrame() if self._interrupted:  # all of the last one has passed
                self._interrupted = False
                self.saw("again")
            case LLMFullResponseEndFrame() if self._text:  # an interruption ends a response twice
                self.saw("text", text=self._text)
                self._text = ""
        self._passed.put_nowait(type(frame))
        await self.push_frame(frame, direction)

    async def until(self, kind: type) -> None:
        while await self._passed.get() is not kind:
            pass

    async def hear(self, pcm: bytes) -> None:
        """In its own time: an interruption makes its way through the pipeline after the sound."""
        for start in range(0, len(pcm), 4800):
            await self.worker.queue_frame(InputAudioRawFrame(pcm[start : start + 4800], 24_000, 1))
            await asyncio.sleep(0.1)


async def text(talk: Talk) -> None:
    await talk.worker.queue_frame(LLMRunFrame())
    await talk.until(DONE)


async def audio(talk: Talk) -> None:
    """Without a detector of the server's: something in the pipeline says when a turn ends."""
    await text(talk)
    await talk.hear(talk.speech)
    await talk.worker.queue_frame(UserStoppedSpeakingFrame())
    await talk.until(DONE)


async def vad(talk: Talk) -> None:
    """The server finds out when the turn ends; what was said before may still be playing."""
    await text(talk)
    await talk.hear(talk.speech + bytes(48_000))
    await talk.until(AUDIO)
    await talk.until(DONE)


async def tools(talk: Talk) -> None:
    await text(talk)
    await talk.until(AUDIO)
    await talk.until(DONE)


async def cancel(talk: Talk) -> None:
    await talk.worker.queue_frame(LLMRunFrame())
    await talk.until(AUDIO)
    await talk.worker.queue_frame(InterruptionFrame())
    await talk.until(InterruptionFrame)
    await talk.hear(talk.speech)
    await talk.worker.queue_frame(UserStoppedSpeakingFrame())
    await talk.until(LLMFullResponseStartFrame)
    await talk.until(DONE)


def service(url: str, name: str) -> OpenAIRealtimeLLMService:
    by_hand = name in ("audio", "cancel")
    listening = events.AudioInput(
        transcription=events.InputAudioTranscription(),
        turn_detection=False if by_hand else events.TurnDetection(),
    )
    properties = events.SessionProperties(
        output_modalities=["text" if name == "text" else "audio"],
        audio=events.AudioConfiguration(input=listening),
    )
    settings = OpenAIRealtimeLLMService.Settings(model="gpt-realtime", session_properties=properties)
    return OpenAIRealtimeLLMService(api_key="unused", base_url=url, settings=settings)


async def weather(call: Any) -> None:
    await call.result_callback({"weather": "sunny"})


async def converse(url: str, speech: bytes, name: str) -> None:
    scenario = {"text": text, "audio": audio, "vad": vad, "tools": tools, "cancel": cancel}[name]
    offered = ToolsSchema(standard_tools=[WEATHER] if name == "tools" else [])
    context = LLMContext([{"role": "user", "content": "Hello."}], offered)
    llm = service(url, name)
    llm.register_function("weather", weather)
    talk = Talk(name, speech)
    pair = LLMContextAggregatorPair(context)
    pipeline = Pipeline([pair.user(), llm, talk, pair.assistant()])
    params = PipelineParams(audio_in_sample_rate=24_000, audio_out_sample_rate=24_000)
    talk.worker = PipelineWorker(pipeline, params=params, enable_rtvi=False)
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(talk.worker)
    running = asyncio.create_task(runner.run())
    await scenario(talk)
    await talk.worker.queue_frame(EndFrame())
    await running
    for message in context.get_messages():
        if message["role"] == "user":
            talk.saw("heard", text=message["content"])


async def main(url: str, recording: str, *names: str) -> None:
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    with wave.open(recording) as wav:
        speech = wav.readframes(wav.getnframes())
    for name in names:
        await converse(url, speech, name)


asyncio.run(main(*sys.argv[1:]))
