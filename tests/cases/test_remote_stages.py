"""The cascade with its stages on servers elsewhere, over real sockets on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.models.cascade.remote.openai_server import DONE, OpenAIServer, Reply, chunk, says, serving, usage

from counterpoint.models.cascade.plugin import CascadePlugin

from .client import Caller, respond, user_says
from .llm_server import llm_server
from .world import World

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "Tells the weather.", "parameters": CITY}
SOUND = Reply([bytes(4800)])
CALL = {"index": 0, "id": "c", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}


def cascade(llm: str, other: str, **options: Any) -> CascadePlugin:
    return CascadePlugin(
        {
            "llm": {"url": llm, "model": "tiny", "retries": 0} | options,
            "asr": {"url": other, "model": "ears"},
            "tts": {"url": other, "model": "mouth"},
        }
    )


async def open_session(world: World, plugin: CascadePlugin) -> Caller:
    await world.serve(plugin=plugin)
    caller = await world.call()
    caller.record.ramp = False
    return caller


async def call_of(caller: Caller) -> dict[str, Any]:
    """The one call in the answer that is asked for now."""
    await caller.send(
        user_says("How is the weather in Rome?"), respond(tools=[WEATHER], tool_choice="required")
    )
    (item,) = (await caller.done())["output"]
    assert item["type"] == "function_call"
    return dict(item)


async def tell(caller: Caller, call: dict[str, Any], output: str) -> dict[str, Any]:
    """The response that follows the result of a call."""
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": output}
    await caller.send({"type": "conversation.item.create", "item": result}, respond())
    return dict(await caller.done())


async def test_an_answer_with_tools_is_spoken(world: World) -> None:
    calls = Reply([chunk(tool_calls=[CALL]), chunk("tool_calls"), usage(9, 3), DONE])
    async with serving(calls, says("It is ", "sunny.")) as llm, serving(SOUND) as other:
        caller = await open_session(world, cascade(llm.url, other.url))
        call = await call_of(caller)
        assert (call["name"], json.loads(call["arguments"])) == ("weather", {"city": "Rome"})
        response = await tell(caller, call, "sunny")
        assert response["status"] == "completed"
        assert caller.transcript(response["id"]) == "It is sunny."
        assert len(caller.audio(response["id"])) == 4800
        told, result = llm.asked[1].body["messages"][-2:]
        assert told["tool_calls"][0]["id"] == result["tool_call_id"] == call["call_id"]
        assert result["content"] == "sunny"
        await caller.hang_up()


@pytest.mark.parametrize(
    ("llm", "sound", "code"),
    [
        (Reply(status=401), SOUND, "llm_refused"),
        (Reply([chunk(content="Well. ")], cut=True), SOUND, "llm_broken"),
        (says("So."), Reply(status=400), "tts_refused"),
    ],
)
async def test_a_stage_that_fails_ends_its_answer_and_not_the_session(
    world: World, llm: Reply, sound: Reply, code: str
) -> None:
    async with serving(llm, says("So.")) as model, serving(sound, SOUND) as other:
        caller = await open_session(world, cascade(model.url, other.url))
        response = await caller.answer()
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == code
        assert (await caller.answer())["status"] == "completed"
        await caller.hang_up()


async def test_an_answer_that_is_cancelled_leaves_its_server_at_once(world: World) -> None:
    async with (
        serving(Reply([chunk(content="Well, this is the answer. And ")], hang=True)) as llm,
        serving(SOUND) as other,
    ):
        caller = await open_session(world, cascade(llm.url, other.url))
        await caller.ask()
        await caller.expect("response.output_audio.delta")
        await left_after_cancel(caller, llm)
        await caller.hang_up()


async def left_after_cancel(caller: Caller, llm: OpenAIServer) -> None:
    assert not llm.left.is_set()
    await caller.send({"type": "response.cancel"})
    await llm.left.wait()
    assert (await caller.done())["status"] == "cancelled"


@pytest.mark.voice
@pytest.mark.servers
async def test_a_real_server_calls_a_tool_and_answers_with_its_result(world: World, tmp_path: Path) -> None:
    """The weights of the embedded model, served by another project."""
    async with llm_server(tmp_path) as (url, name), serving(SOUND) as other:
        caller = await open_session(world, cascade(url, other.url, model=name, body={"temperature": 0}))
        call = await call_of(caller)
        assert call["name"] == "weather"
        assert isinstance(json.loads(call["arguments"])["city"], str)
        response = await tell(caller, call, "sunny, 25 degrees")
        assert response["status"] == "completed"
        assert caller.transcript(response["id"])
        assert response["usage"]["input_tokens"] > 0
        await caller.hang_up()
