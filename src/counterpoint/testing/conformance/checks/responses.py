"""Section 5: answers.

Owns: the checks of ``response.create`` and ``response.cancel``, tools, and how answers end.
Does not own: what shows in the events alone (``testing.streams``), interruption (``interruption``).
Here because: everything else is there so that this happens.
"""

from __future__ import annotations

import json
from typing import Any

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.peer import Peer
from counterpoint.testing.conformance.talk import (
    MANUAL,
    amp,
    answer,
    answered,
    append,
    ask,
    configure,
    heard,
    pcm,
    ramp,
    refusal,
    script,
    settle,
    speak,
    type_text,
)
from counterpoint.testing.conformance.target import Target
from counterpoint.testing.streams.stream import Event

#: Long enough that nobody finishes before the next event is read.
_LONG = "Count from one to two hundred, in words."
_TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "Looks a word up.",
    "parameters": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    },
}
_CANCEL = {"type": "response.cancel"}


@check("typed-question-answered", "5", "a typed question is answered")
async def typed_question_answered(target: Target) -> None:
    target.requires("supports_text_input")
    async with target.session() as (peer, _):
        done = await answered(peer)
        require(done["status"] == "completed", f"the response is {done['status']}")
        require(done["output"], "the response has no output")


@check("text-only-answer", "5", "an answer in text has no audio")
async def text_only_answer(target: Target) -> None:
    target.requires("supports_text_input")
    async with target.session() as (peer, _):
        await answered(peer, output_modalities=["text"])
        kinds = {event["type"] for event in peer.since(0)}
        require("response.output_text.done" in kinds, "there is no text")
        require(not any("output_audio" in kind for kind in kinds), "there is audio")


@check("metadata-echoed", "5", "metadata of a request comes back with its response")
async def metadata_echoed(target: Target) -> None:
    target.requires("supports_text_input")
    async with target.session() as (peer, _):
        done = await answered(peer, metadata={"topic": "greeting"}, output_modalities=["text"])
        created = next(peer.stream.of("response.created"))["response"]
        for response in (created, done):
            require(response["metadata"] == {"topic": "greeting"}, f"it is {response['metadata']}")


@check("second-response-refused", "5", "a second response beside an active one is refused, which goes on")
async def second_response_refused(target: Target) -> None:
    async with target.session() as (peer, _):
        await _slow(target, peer)
        await type_text(peer, _LONG)
        response_id = await ask(peer)
        await refusal(peer, {"type": "response.create"}, "conversation_already_has_active_response")
        await peer.send(_CANCEL)
        done = await answer(peer, response_id)
        require(len(list(peer.stream.of("response.created"))) == 1, "a second response was created")
        require(done["status"] == "cancelled", f"the first one is {done['status']}")


@check("nothing-to-cancel", "5", "a cancel with nothing to cancel is response_cancel_not_active")
async def nothing_to_cancel(target: Target) -> None:
    async with target.session() as (peer, _):
        error = await refusal(peer, _CANCEL, "response_cancel_not_active")
        require(str(error["message"]).startswith("Cancellation failed"), f"it says {error['message']!r}")
        await refusal(peer, {**_CANCEL, "response_id": "resp_unknown"}, "response_cancel_not_active")


@check("cancel-then-create", "5", "a create right behind a cancel works")
async def cancel_then_create(target: Target) -> None:
    async with target.session() as (peer, _):
        await _slow(target, peer)
        await type_text(peer, _LONG)
        first = await ask(peer)
        await peer.send(_CANCEL)
        await peer.send({"type": "response.create", "response": {"output_modalities": ["text"]}})
        done = await answer(peer)
        require((done["id"], done["status"]) == (first, "cancelled"), f"{done['id']} is {done['status']}")
        created = await peer.until("response.created")
        await peer.send(_CANCEL)
        await answer(peer, created["response"]["id"])


@check("cancel-before-output", "5", "cancelled before its first output, a response has none", Needs.SCRIPT)
async def cancel_before_output(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(stall_first_ms=500))
        await type_text(peer)
        await peer.send({"type": "response.create"})
        await peer.send(_CANCEL)
        done = await answer(peer)
        require((done["status"], done["output"]) == ("cancelled", []), f"it ends as {done}")
        require(not any(event["type"].endswith(".delta") for event in peer.since(0)), "a delta was sent")


@check("lenient-settings", "5", "what a model cannot do never fails a session", Needs.EXTENSIONS)
async def lenient_settings(target: Target) -> None:
    async with target.session() as (peer, before):
        settings: dict[str, Any] = {
            "audio": {
                "input": {
                    "noise_reduction": {"type": "near_field"},
                    "transcription": {"model": "no-such-model", "language": "en"},
                },
                "output": {"voice": "no-such-voice", "speed": 1.1},
            },
            "tracing": "auto",
            "max_output_tokens": "inf",
            "tools": [_TOOL],
        }
        after = await configure(peer, settings)
        require(after["audio"]["output"]["voice"] == before["audio"]["output"]["voice"], "an unknown voice")
        done = await answered(peer, tool_choice="none")
        require(done["status"] == "completed", f"the response is {done['status']}")


@check(
    "greeting",
    "5",
    "a response in an empty conversation is given, or refused with its code",
    Needs.EXTENSIONS,
)
async def greeting(target: Target) -> None:
    async with target.session() as (peer, _):
        if target.offer.can("supports_text_input"):
            await answer(peer, await ask(peer, instructions="Greet the caller."))
        else:
            await refusal(peer, {"type": "response.create"}, "response_create_without_input")


@check("out-of-band-beside", "5", "an out-of-band response is allowed beside the active one", Needs.SCRIPT)
async def out_of_band_beside(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, script(audio_ms=3000, pace="realtime"))
        await type_text(peer)
        first = await ask(peer)
        extra = {"script": {"audio_ms": 100, "pace": "burst"}}
        await configure(peer, {"extra_body": extra})
        second = await ask(peer, conversation="none", output_modalities=["text"])
        done = await answer(peer)
        require(done["id"] == second, "the active response ended first")
        require(done["conversation_id"] is None, "it belongs to the conversation")
        await peer.send(_CANCEL)
        await answer(peer, first)


@check(
    "out-of-band-cancelled-alone", "6", "a cancel by its id ends an out-of-band response alone", Needs.SCRIPT
)
async def out_of_band_cancelled_alone(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=2000, pace="realtime"))
        await type_text(peer)
        first = await ask(peer)
        second = await ask(peer, conversation="none")
        await peer.send({**_CANCEL, "response_id": second})
        done = await answer(peer)
        require((done["id"], done["status"]) == (second, "cancelled"), f"{done['id']} is {done['status']}")
        require((await configure(peer))["epoch"] == 0, "the epoch advanced")
        done = await answer(peer, first)
        require(done["status"] == "completed", f"the active response is {done['status']}")


@check("scheduled-items-answered", "5", "an item may ask for its answer: when_idle, interrupt", Needs.SCRIPT)
async def scheduled_items_answered(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, script(audio_ms=3000, pace="realtime"))
        await type_text(peer, scheduling="when_idle")
        first = (await peer.until("response.created"))["response"]["id"]
        await type_text(peer, scheduling="interrupt")
        done = await answer(peer, first)
        require(done["status"] == "cancelled", f"the first answer is {done['status']}")
        await peer.until("response.created")


@check("turns-queue", "5", "a turn committed during an answer is answered after it", Needs.SCRIPT)
async def turns_queue(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(interrupt_response=False), script(audio_ms=600, pace="realtime"))
        for _ in range(2):
            await speak(peer, pcm(400, 0.9), pcm(400))
        first, second = await answer(peer), await answer(peer)
        statuses = [first["status"], second["status"]]
        require(statuses == ["completed", "completed"], f"the answers are {statuses}")
        committed = [event["item_id"] for event in peer.stream.of("input_audio_buffer.committed")]
        require(len(set(committed)) == 2, f"{len(committed)} turns were committed")


@check("ramp-exact", "5", "audio is complete, in order, and once", Needs.SCRIPT)
async def ramp_exact(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, script(audio_ms=1237, chunk_ms=80))
        done = await answered(peer)
        require(heard(peer, done["id"]) == ramp(1, 1237 * 24), "the samples are not those of the script")


@check("several-items", "5", "message, call and message come as three items", Needs.SCRIPT)
async def several_items(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        call = {"type": "function_call", "name": "look_up", "arguments": '{"word": "fugue"}'}
        items = [{"type": "message", "text": "one"}, call, {"type": "message", "text": "two"}]
        await configure(peer, script(audio_ms=200, items=items), {"tools": [_TOOL]})
        done = await answered(peer)
        kinds = [item["type"] for item in done["output"]]
        require(kinds == ["message", "function_call", "message"], f"the items are {kinds}")


@check(
    "interrupted-items",
    "5",
    "what was finished before a cancel stays, what was begun is incomplete",
    Needs.SCRIPT,
)
async def interrupted_items(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        items = [{"type": "message", "audio_ms": 100}, {"type": "message", "audio_ms": 5000}]
        await configure(peer, script(items=items, pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        for _ in range(2):
            added = await peer.until("response.output_item.added")
        await peer.until(
            "response.output_audio.delta", where=lambda event: event["item_id"] == added["item"]["id"]
        )
        await peer.send(_CANCEL)
        done = await answer(peer, response_id)
        statuses = [item["status"] for item in done["output"]]
        require(statuses == ["completed", "incomplete"], f"the items are {statuses}")


@check(
    "tool-results-taken-once", "5", "a result of a call is taken once; unknown calls have none", Needs.SCRIPT
)
async def tool_results_taken_once(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, {"tools": [_TOOL]})
        done = await answered(peer)
        (call,) = done["output"]
        require(set(json.loads(call["arguments"])) == {"word"}, f"the arguments are {call['arguments']}")
        result = _result(call["call_id"])
        await peer.send(result)
        await peer.until("conversation.item.added")
        await refusal(peer, result, "duplicate_function_call_output")
        await refusal(peer, _result("call_unknown"), "unknown_function_call_output")
        done = await answer(peer, await ask(peer))
        require([item["type"] for item in done["output"]] == ["message"], "there is no answer to the result")


@check("unfinished-calls-are-stale", "5", "a result of a call that was cancelled is refused", Needs.SCRIPT)
async def unfinished_calls_are_stale(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        call = {"type": "function_call", "name": "look_up", "arguments": '{"word": "' + "a" * 4000 + '"}'}
        await configure(peer, script(items=[{"type": "message", "audio_ms": 3000}, call], pace="realtime"))
        await type_text(peer)
        response_id = await ask(peer)
        await peer.until("response.output_audio.delta")
        await peer.send(_CANCEL)
        done = await answer(peer, response_id)
        calls = [item for item in done["output"] if item["type"] == "function_call"]
        require(all(item["status"] != "completed" for item in calls), "a cancelled call is completed")
        for item in calls:
            await refusal(peer, _result(item["call_id"]), "stale_function_call_output")


@check("failure-told", "5", "a response that fails says why in its status, and by no error", Needs.SCRIPT)
async def failure_told(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, script(fail_at_chunk=2))
        done = await answered(peer)
        error = (done["status_details"] or {}).get("error") or {}
        found = (done["status"], error.get("code"))
        require(found == ("failed", "model_failed"), f"the response is {found}")
        errors = [event for event in await settle(peer) if event["type"] == "error"]
        require(not errors and not list(peer.stream.of("error")), "an error event came as well")


@check(
    "listening-is-completed", "5", "a decision to listen completes its response without output", Needs.SCRIPT
)
async def listening_is_completed(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL, script(listen=True))
        await peer.send(append(pcm(300)))
        await peer.send({"type": "input_audio_buffer.commit"})
        done = await answer(peer)
        require((done["status"], done["output"]) == ("completed", []), f"it ends as {done['status']}")
        require(list(peer.stream.of("response.listen")), "nothing says that it listens")


@check("open-failure-told", "1", "a model that does not open is session_open_failed and 1011", Needs.SCRIPT)
async def open_failure_told(target: Target) -> None:
    async with target.connect(query={"autostart": "0"}) as peer:
        await peer.send({"type": "session.update", "session": script(fail_open=True)})
        error = (await peer.until("error"))["error"]
        require(error["code"] == "session_open_failed", f"the code is {error['code']}")
        require(await peer.end() == 1011, f"the close code is {peer.code}")


async def _slow(target: Target, peer: Peer) -> None:
    """Let the scripted model be as slow as a real one."""
    if target.offer.scripted:
        await configure(peer, script(audio_ms=5000, pace="realtime"))


def _result(call_id: str) -> Event:
    item = {"type": "function_call_output", "call_id": call_id, "output": "a piece of music"}
    return {"type": "conversation.item.create", "item": item}
