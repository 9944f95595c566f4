"""Group J of the known cases: words come whole, in their part, and under the item that they belong to."""

from __future__ import annotations

import pytest

from .client import MANUAL, append, respond, tone
from .wire import Event
from .world import World

CANCEL: Event = {"type": "response.cancel"}
COMMIT: Event = {"type": "input_audio_buffer.commit", "response_create": False}
HEARD = "conversation.item.input_audio_transcription"


@pytest.mark.parametrize("started", [False, True])
async def test_j02_a_part_has_one_transcript_also_when_it_is_cut(world: World, started: bool) -> None:
    """Case J-02. Cut before its first word, or behind some: the end holds what was said of it."""
    await world.serve()
    script: Event = {"text": "One is. Two is. Three is. Four is. Five is.", "audio_ms": 10_000}
    caller = await world.call(script if started else script | {"stall_first_ms": 60_000})
    response_id = await caller.ask()
    if started:
        for _ in range(3):
            await caller.expect("response.output_audio_transcript.delta")
    await caller.send(CANCEL)
    assert (await caller.done(response_id))["status"] == "cancelled"
    done = caller.events("response.output_audio_transcript.done", response_id)
    assert len(done) == len(caller.events("response.content_part.added", response_id)) == int(started)
    for event in done:
        assert event["transcript"] == caller.transcript(response_id)
        assert script["text"].startswith(event["transcript"])


async def test_j03_late_and_failed_transcripts_keep_to_their_items(world: World) -> None:
    """Case J-03. The first comes last, the second fails, and no turn waits for another's."""
    await world.serve()
    scripts: list[Event] = [
        {"input_transcript": "one", "transcript_delay_ms": 500},
        {"fail_transcript": True},
        {"input_transcript": "three"},
    ]
    audio: Event = {"input": {"turn_detection": None, "transcription": {"model": "any"}}}
    caller = await world.call(
        *(script | {"audio_ms": 20, "pace": "burst"} for script in scripts), session=MANUAL | {"audio": audio}
    )
    for _ in scripts:
        await caller.send(append(tone(200, 0.5)), COMMIT, respond())
        await caller.done()
    last = await caller.expect(f"{HEARD}.completed", transcript="one")
    committed = caller.events("input_audio_buffer.committed")
    spoken = [event["item_id"] for event in committed]
    assert last["item_id"] == spoken[0]
    assert [event["item_id"] for event in caller.events(f"{HEARD}.failed")] == [spoken[1]]
    told = [(event["item_id"], event["transcript"]) for event in caller.events(f"{HEARD}.completed")]
    assert told == [(spoken[2], "three"), (spoken[0], "one")]


async def test_j04_a_part_closes_before_its_item_and_the_item_before_the_answer(world: World) -> None:
    """Case J-04. Nothing of a part comes behind its end."""
    await world.serve()
    caller = await world.call({"audio_ms": 1000, "words": 20, "pace": "burst"})
    response_id = (await caller.answer())["id"]
    kinds = [event["type"] for _, event in sorted(caller.record.events.items())]
    ends = ["response.content_part.done", "response.output_item.done", "response.done"]
    for kind in ("response.output_audio.done", "response.output_audio_transcript.done"):
        assert kinds.count(kind) == 1
        assert kinds.index(kind) < kinds.index(ends[0])
    assert [kind for kind in kinds if kind in ends] == ends
    newest = max(i for i, kind in enumerate(kinds) if kind == "response.output_audio_transcript.delta")
    assert newest < kinds.index("response.output_audio_transcript.done")
    assert len(caller.audio(response_id)) == len(tone(1000, 0))
