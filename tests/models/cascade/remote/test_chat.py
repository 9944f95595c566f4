"""A language model behind chat completions: what it is asked, and how its answers are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.models.cascade.remote.openai_server import (
    DONE,
    OpenAIServer,
    Reply,
    chunk,
    event,
    says,
    serving,
    split,
    usage,
)

from counterpoint.models.cascade.failing import StageFailed
from counterpoint.models.cascade.remote.chat import ChatOptions, RemoteLanguageModel
from counterpoint.models.cascade.remote.server import Server
from counterpoint.models.cascade.stages import Finish, Message, Piece, PromptRead, ToolUse, Writing, Written
from counterpoint.plugins.contract import ToolCall, TurnStatus
from counterpoint.protocol.tools import NamedTool, Tool

PROMPT = [Message("system", "be kind"), Message("user", "hi")]
COUNTED = [PromptRead(9, 4), Finish(TurnStatus.COMPLETED, 3)]


@asynccontextmanager
async def model(*replies: Reply, **options: Any) -> AsyncIterator[tuple[RemoteLanguageModel, OpenAIServer]]:
    async with serving(*replies) as remote:
        values: dict[str, Any] = {"url": remote.url, "model": "tiny", "retries": 0}
        chosen = ChatOptions(**values | options)
        server = Server("llm", chosen)
        await server.start()
        try:
            yield RemoteLanguageModel(server, chosen), remote
        finally:
            await server.stop()


async def written(
    model: RemoteLanguageModel, messages: Sequence[Message] = PROMPT, **writing: Any
) -> list[Written]:
    return [item async for item in model.stream(messages, Writing("s", **writing))]


async def answer_to(*replies: Reply, **options: Any) -> list[Written]:
    async with model(*replies, **options) as (language_model, _):
        return await written(language_model)


async def failure_of(*replies: Reply, **options: Any) -> StageFailed:
    with pytest.raises(StageFailed) as failed:
        await answer_to(*replies, **options)
    return failed.value


async def test_an_answer_comes_piece_by_piece_with_what_it_cost() -> None:
    assert await answer_to(says("Well", ", so.")) == [Piece("Well"), Piece(", so."), *COUNTED]


async def test_the_request_is_what_the_interface_says() -> None:
    use = ToolUse("call_1", "look", '{"at": 1}', "sunny")
    async with model(says("So."), body={"temperature": 0.5}) as (language_model, remote):
        await written(
            language_model,
            [*PROMPT, Message("assistant", "", use)],
            max_tokens=50,
            tools=(Tool("look", "Looks.", {"type": "object"}), Tool("stop")),
            tool_choice=NamedTool("look"),
        )
    (asked,) = remote.asked
    function = {"name": "look", "arguments": '{"at": 1}'}
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "temperature": 0.5,
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
            },
            {
                "type": "function",
                "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}},
            },
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }


def calls(*deltas: dict[str, Any]) -> bytes:
    return b"".join(chunk(tool_calls=[delta]) for delta in deltas)


def piece(index: int | None, name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    at = {} if index is None else {"index": index}
    return {**at, "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_calls_are_put_together_however_they_are_cut(size: int) -> None:
    deltas = [piece(0, "look", "", id="a"), piece(0, None, '{"city"'), piece(1, "stop", "", id="b")]
    stream = calls(*deltas, piece(0, None, ': "Rome"}'), piece(1, None, "{}")) + chunk("tool_calls")
    reply = Reply(split(chunk(content="Let me see.") + stream + usage(9, 3, 4) + DONE, size))
    assert await answer_to(reply) == [
        Piece("Let me see."),
        ToolCall(0, "look", '{"city": "Rome"}'),
        ToolCall(1, "stop", "{}"),
        *COUNTED,
    ]


async def test_calls_that_a_server_writes_whole_are_told_apart_by_their_ids() -> None:
    for index in (None, 0):
        deltas = [piece(index, "look", {"at": 1}, id="a"), piece(index, "look", "", id="b")]
        answer = await answer_to(Reply([calls(*deltas), chunk("stop"), DONE]))
        assert answer[:2] == [ToolCall(0, "look", '{"at":1}'), ToolCall(1, "look", "{}")]


@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", "Rome"])
async def test_a_call_that_is_not_whole_is_never_made(arguments: str) -> None:
    stream = calls(piece(0, "look", arguments, id="a"))
    assert (await failure_of(Reply([stream, chunk("tool_calls"), DONE]))).code == "llm_broken"
    limited = await answer_to(Reply([stream, chunk("length"), usage(9, 3, 4), DONE]))
    assert limited == [PromptRead(9, 4), Finish(TurnStatus.MAX_OUTPUT_TOKENS, 3)]


async def test_an_answer_that_was_filtered_says_so() -> None:
    answer = await answer_to(says("So", finish="content_filter"))
    assert answer[-1] == Finish(TurnStatus.CONTENT_FILTER, 3)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (302, "llm_refused"),
        (401, "llm_refused"),
        (404, "llm_refused"),
        (429, "llm_overloaded"),
        (500, "llm_failed"),
        (503, "llm_overloaded"),
    ],
)
async def test_every_status_has_its_code(status: int, code: str) -> None:
    headers = {"Location": "http://127.0.0.1:9/elsewhere"}
    assert (await failure_of(Reply([b"{}"], status, headers))).code == code


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ([chunk(content="So")], "llm_broken"),
        ([], "llm_broken"),
        ([event("{")], "llm_broken"),
        ([event("[]")], "llm_broken"),
        ([chunk(content="So"), event({"error": {"message": "out of memory"}})], "llm_failed"),
    ],
)
async def test_a_stream_that_ends_wrongly_fails(stream: list[bytes], code: str) -> None:
    assert (await failure_of(Reply(stream))).code == code


async def test_a_stream_that_is_cut_fails() -> None:
    assert (await failure_of(Reply([chunk(content="So")], cut=True))).code == "llm_broken"


async def test_silence_ends_an_answer_before_and_within_it() -> None:
    for begun in ([], [chunk(content="So")]):
        failed = await failure_of(Reply(begun, hang=True), timeout_s=0.1)
        assert failed.code == "llm_timeout"


async def test_nobody_there_is_told_from_silence() -> None:
    assert (await failure_of(says("So"), url="http://127.0.0.1:1/v1")).code == "llm_unreachable"


async def test_a_request_is_made_again_while_nothing_came_of_it() -> None:
    failing = [Reply(status=500), Reply([chunk()], cut=True)]
    async with model(*failing, says("So."), retries=2) as (language_model, remote):
        assert await written(language_model) == [Piece("So."), *COUNTED]
    assert len(remote.asked) == 3


@pytest.mark.parametrize(
    "reply",
    [
        Reply([chunk(content="So")], cut=True),
        Reply(status=401),
        Reply(status=429, headers={"Retry-After": "60"}),
    ],
)
async def test_what_cannot_help_is_not_tried(reply: Reply) -> None:
    """An answer that has begun, a refusal, a server that wants a minute."""
    async with model(reply, retries=2) as (language_model, remote):
        with pytest.raises(StageFailed):
            await written(language_model)
    assert len(remote.asked) == 1


async def test_attempts_are_bounded() -> None:
    async with model(Reply(status=429, headers={"Retry-After": "0"}), retries=2) as (language_model, remote):
        with pytest.raises(StageFailed):
            await written(language_model)
    assert len(remote.asked) == 3


async def test_whoever_stops_reading_frees_the_server_at_once() -> None:
    """Seen from the server: the connection is closed while it still has something to say."""
    async with model(Reply([chunk(content="So")], hang=True)) as (language_model, remote):
        answer = language_model.stream(PROMPT, Writing("s"))
        assert await anext(answer) == Piece("So")
        assert not remote.left.is_set()
        await answer.aclose()
        await remote.left.wait()


async def test_without_tools_and_limit_the_request_says_nothing_of_them() -> None:
    """Some servers refuse an empty list of tools."""
    async with model(says("So.")) as (language_model, remote):
        await written(language_model)
    assert set(remote.asked[0].body) == {"model", "messages", "stream", "stream_options"}
