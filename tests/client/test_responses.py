"""Answers as objects: whole, interrupted, unread, unasked, and lost."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.client.event import Event
from counterpoint.client.options import Options
from counterpoint.client.response import Response
from counterpoint.client.responses import REQUEST_KEY, Responses
from counterpoint.errors import AnswerMissed, SessionEnded


class Told:
    """Responses, and what was told about them."""

    def __init__(self, *, awaited: Callable[[str], bool] = lambda request: False, **options: Any) -> None:
        self.notices: list[Event] = []
        self.all = Responses(Options(**options), awaited, self.notices.append)

    def follow(self, type: str, **fields: Any) -> None:
        self.all.follow(Event({"type": type, **fields}))

    def create(self, response_id: str, **fields: Any) -> None:
        self.follow("response.created", response={"id": response_id, "status": "in_progress", **fields})

    def speak(self, response_id: str, pcm: bytes = b"", text: str = "", item: int = 0) -> None:
        part = {"response_id": response_id, "output_index": item, "content_index": 0}
        delta = base64.b64encode(pcm).decode()
        self.follow("response.output_audio.delta", **part, delta=delta)
        self.follow("response.output_audio_transcript.delta", **part, delta=text)

    def finish(self, response_id: str, status: str = "completed", **fields: Any) -> None:
        self.follow("response.done", response={"id": response_id, "status": status, **fields})


async def heard(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.audio()])


async def test_an_answer_from_beginning_to_end() -> None:
    told = Told()
    told.create("r1")
    response = await anext(aiter(told.all.unclaimed))
    assert (response.id, response.status, response.text, response.output) == ("r1", "in_progress", "", [])
    told.speak("r1", b"ab", "Good ")
    told.speak("r1", b"cd", "morning")
    told.speak("r1", b"ef", "Bye", item=1)
    told.finish("r1", output=[{"id": "item_1"}])
    assert await heard(response) == b"abcdef"
    assert [delta async for delta in response.deltas()] == ["Good ", "morning", "Bye"]
    assert await response.done() is response
    assert (response.status, response.text) == ("completed", "Good morning\nBye")
    assert response.output == [{"id": "item_1"}]
    assert not response.interrupted
    assert repr(response) == "Response('r1', completed)"


async def test_the_final_text_is_the_servers() -> None:
    told = Told()
    told.create("r1")
    response = await anext(told.all.unclaimed)
    told.speak("r1", text="Good mo")
    part = {"response_id": "r1", "output_index": 0, "content_index": 0}
    told.follow("response.output_audio_transcript.done", **part, transcript="Good")
    told.follow("response.output_text.done", **part | {"content_index": 1}, text="written")
    assert response.text == "Good\nwritten"
    content = [{"type": "output_audio", "transcript": "Goo"}, {"type": "output_text", "text": "writ"}, 5]
    told.finish("r1", "incomplete", output=[{"content": content}, {"content": None}, "odd"])
    assert response.text == "Goo\nwrit"


async def test_what_was_not_heard_of_an_interrupted_answer_is_not_heard_later() -> None:
    told = Told()
    told.create("r1")
    response = await anext(told.all.unclaimed)
    told.speak("r1", b"heard")
    assert await anext(aiter(response.audio())) == b"heard"
    told.speak("r1", b"unheard")
    told.finish("r1", "cancelled")
    assert await heard(response) == b""
    assert (response.interrupted, (await response.done()).status) == (True, "cancelled")


async def test_playback_can_be_cut_after_the_end() -> None:
    told = Told()
    told.create("r1")
    response = await anext(told.all.unclaimed)
    told.speak("r1", b"unheard")
    told.finish("r1")
    told.follow("output_audio_buffer.cleared", response_id="r1")
    assert (await heard(response), response.interrupted, response.status) == (b"", True, "completed")


async def test_audio_that_nobody_reads_gives_way_and_that_is_told_once() -> None:
    """Case K-03."""
    told = Told(audio_buffer_bytes=4)
    told.create("r1")
    response = await anext(told.all.unclaimed)
    for pcm in (b"ab", b"cd", b"ef", b"gh"):
        told.speak("r1", pcm)
    told.finish("r1")
    assert await heard(response) == b"efgh"
    assert response.dropped_audio_bytes == 4
    assert [dict(event.data) for event in told.notices] == [
        {"type": "client.overflow", "stream": "audio", "response_id": "r1"}
    ]


async def test_answers_that_nobody_takes_give_way() -> None:
    """Case K-03."""
    told = Told(response_buffer=2)
    for name in ("r1", "r2", "r3"):
        told.create(name)
        told.finish(name)
    assert [event["dropped"] for event in told.notices] == [1]
    told.all.end(None, SessionEnded("client_closed"))
    assert [response.id async for response in told.all.unclaimed] == ["r2", "r3"]


async def test_an_answer_has_one_owner() -> None:
    told = Told(awaited=lambda request: request == "mine")
    event = Event({"type": "response.created", "response": {"id": "r1", "metadata": {REQUEST_KEY: "mine"}}})
    told.all.follow(event)
    told.create("r2", metadata={REQUEST_KEY: "another client's"})
    mine = told.all.asked_by(event, "mine")
    assert mine is not None
    assert (mine.id, told.all.asked_by(event, "other")) == ("r1", None)
    told.all.end(None, SessionEnded("client_closed"))
    assert [response.id async for response in told.all.unclaimed] == ["r2"]


async def test_answers_side_by_side_do_not_mix() -> None:
    told = Told()
    told.create("r1")
    told.create("r2")
    first, second = [await anext(told.all.unclaimed) for _ in range(2)]
    told.speak("r1", b"a")
    told.speak("r2", b"b")
    told.finish("r2")
    told.speak("r1", b"c")
    told.finish("r1")
    assert (await heard(first), await heard(second)) == (b"ac", b"b")


async def test_an_answer_that_began_before_this_client_came_is_taken_up() -> None:
    told = Told()
    told.speak("r1", b"rest")
    response = await anext(told.all.unclaimed)
    told.finish("r1")
    assert await heard(response) == b"rest"


async def test_news_of_playback_begins_no_answer() -> None:
    told = Told()
    told.follow("output_audio_buffer.started", response_id="long ago")
    told.follow("response.created", response={})
    told.follow("response.listen", reason="nothing was said")
    told.all.end(None, SessionEnded("client_closed"))
    assert [response async for response in told.all.unclaimed] == []


async def test_after_a_gap_only_the_answer_that_is_being_given_goes_on() -> None:
    told = Told()
    told.create("over")
    told.create("still")
    over, still = [await anext(told.all.unclaimed) for _ in range(2)]
    content = [{"type": "output_audio", "transcript": "so far"}]
    told.follow("session.snapshot", active_response={"id": "still", "output": [{"content": content}]})
    assert (still.has_gap, still.text, over.has_gap) == (True, "so far", False)
    with pytest.raises(AnswerMissed):
        await over.done()
    with pytest.raises(AnswerMissed):
        await heard(over)
    told.speak("still", b"more")
    told.finish("still")
    assert await heard(await still.done()) == b"more"


async def test_a_gap_can_hide_the_beginning_of_an_answer() -> None:
    told = Told()
    told.follow("session.snapshot", active_response={"id": "new", "status": "in_progress"})
    assert (await anext(told.all.unclaimed)).id == "new"


async def test_the_end_of_the_session_ends_every_wait() -> None:
    told = Told()
    told.create("r1")
    response = await anext(told.all.unclaimed)
    waiting = [asyncio.create_task(coroutine) for coroutine in (response.done(), heard(response))]
    await asyncio.sleep(0)
    told.all.end(SessionEnded("failed"), SessionEnded("failed"))
    for result in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(result, SessionEnded)
    with pytest.raises(SessionEnded):
        await anext(told.all.unclaimed)


async def test_answers_that_are_done_are_held_by_their_owners_only() -> None:
    """Case C-14: nothing of ten thousand answers stays in the client."""
    told = Told()
    for number in range(100):
        told.create(f"r{number}")
        told.finish(f"r{number}")
        await anext(told.all.unclaimed)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Response)]
