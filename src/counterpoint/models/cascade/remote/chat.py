"""A language model behind ``/chat/completions``: streamed answers, tools, usage.

Owns: the request, and what each chunk of the answer means.
Does not own: events (``sse``), pieces of calls (``tool_calls``), failures of the request (``server``).
Here because: it is the interface that vLLM, llama.cpp, Ollama, SGLang and the hosted models have in common.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Annotated, Any, Final

import aiohttp
import msgspec

from counterpoint.models.cascade.failing import Fault
from counterpoint.models.cascade.stages import Finish, Message, Piece, PromptRead, Writing, Written
from counterpoint.plugins.contract import TurnStatus
from counterpoint.protocol.tools import NamedTool, Tool, ToolChoice

from .server import Server, ServerOptions
from .sse import EventReader
from .tool_calls import CallDelta, CallReader

#: What comes after the last chunk.
_DONE: Final = "[DONE]"

_STATUSES: Final = {
    "length": TurnStatus.MAX_OUTPUT_TOKENS,
    "content_filter": TurnStatus.CONTENT_FILTER,
}


class ChatOptions(ServerOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``model.llm.*`` of a language model elsewhere."""

    #: Turns of the user that it is told at least; with twice as many the older half is left out.
    turns: Annotated[int, msgspec.Meta(ge=1)] = 16
    #: More fields of every request, as the server understands them: temperature, top_p, ...
    body: dict[str, Any] = msgspec.field(default_factory=dict)


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    #: An error in the middle of an answer; its form differs from server to server.
    error: Any = None


class RemoteLanguageModel:
    """A ``LanguageModel``. The server keeps what it has read by itself, so nothing is read ahead here."""

    def __init__(self, server: Server, options: ChatOptions) -> None:
        self._server = server
        self._options = options

    def stream(self, messages: Sequence[Message], writing: Writing) -> AsyncGenerator[Written]:
        """Raises ``StageFailed``. A call comes whole, after the text."""
        body = request_body(messages, writing, self._options)
        return self._server.attempt(lambda: self._answer(body))

    async def prefill(self, session: str, messages: Sequence[Message]) -> None:
        pass

    def release(self, session: str) -> None:
        pass

    async def _answer(self, body: dict[str, Any]) -> AsyncGenerator[Written]:
        calls, reason, usage = CallReader(), None, _Usage()
        async with self._server.post("chat/completions", json=body) as response:
            async for chunk in self._chunks(response):
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    if choice.delta.content:
                        yield Piece(choice.delta.content)
                    for delta in choice.delta.tool_calls or ():
                        calls.feed(delta)
                    reason = choice.finish_reason or reason
        if reason is None:
            raise self._server.failed(Fault.BROKEN, "the answer ended before it was finished")
        status = _STATUSES.get(reason, TurnStatus.COMPLETED)
        if status is TurnStatus.COMPLETED:
            try:
                whole = calls.finish()
            except ValueError as error:
                raise self._server.failed(Fault.BROKEN, str(error)) from None
            for call in whole:
                yield call
        cached = usage.prompt_tokens_details
        yield PromptRead(usage.prompt_tokens, cached.cached_tokens or 0 if cached else 0)
        yield Finish(status, usage.completion_tokens or None)

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[_Chunk]:
        """Until the server says that it is done."""
        reader = EventReader()
        try:
            async for piece in response.content.iter_any():
                for data in reader.feed(piece):
                    if data == _DONE:
                        return
                    chunk = msgspec.json.decode(data, type=_Chunk)
                    if chunk.error is not None:
                        raise self._server.failed(Fault.FAILED, "an error in the middle of the answer")
                    yield chunk
        except ValueError:
            raise self._server.failed(
                Fault.BROKEN, "the answer is no stream of chat completion chunks"
            ) from None


def request_body(messages: Sequence[Message], writing: Writing, options: ChatOptions) -> dict[str, Any]:
    body: dict[str, Any] = {
        **options.body,
        "model": options.model,
        "messages": [entry for message in messages for entry in _entries(message)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if writing.max_tokens is not None:
        body["max_tokens"] = writing.max_tokens
    if writing.tools:
        body["tools"] = [_tool(tool) for tool in writing.tools]
        body["tool_choice"] = _choice(writing.tool_choice)
    return body


def _entries(message: Message) -> list[dict[str, Any]]:
    use = message.use
    if use is None:
        return [{"role": message.role, "content": message.text}]
    call = {"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": use.call_id, "content": use.output},
    ]


def _tool(tool: Tool) -> dict[str, Any]:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {
        "type": "function",
        "function": {key: value for key, value in function.items() if value is not None},
    }


def _choice(choice: ToolChoice) -> str | dict[str, Any]:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice
