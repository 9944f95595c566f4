"""An answer that is begun in the pause: used when it is asked for, and thrown away when the turn goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.models.cascade.fakes import commit, fakes, loud, silent, speak, spoken
from tests.models.support import SESSION, now, step, user

from counterpoint.plugins.contract import (
    AudioDelta,
    Fence,
    UserTranscript,
    UserTranscriptFailed,
)
from counterpoint.testing.virtual_time import run


def test_a_prepared_answer_is_used_and_comes_at_once() -> None:
    """Everything that was made in the pause is there when it is asked for."""

    async def main() -> None:
        stages = fakes()
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(1)
        assert outlet.said == []
        asked_at = now()
        await commit(session)
        await session.respond(spoken(1, epoch=3))
        await outlet.until(lambda: bool(outlet.of(AudioDelta)))
        assert now() == asked_at
        await outlet.ended(1)
        assert stages.model.calls.started == 2  # the beginning was read when the session opened
        assert len(stages.model.prompts) == stages.transcriber.calls.started == 1
        assert outlet.text() == "Well, that is good. So it is."
        assert all(fence == Fence(SESSION, 3, 1) for _, fence, event in outlet.said if event_of_answer(event))
        await session.close()

    run(main())


def event_of_answer(event: object) -> bool:
    return not isinstance(event, UserTranscript | UserTranscriptFailed)


def test_more_speech_throws_the_prepared_answer_away() -> None:
    async def main() -> None:
        stages = fakes(["I would like"], "Too early. Far too early.", "Now it is right.")
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(0.3)
        await session.push(step(1, loud(20)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert stages.running == 0
        await session.prepare(spoken())
        await commit(session)
        await session.respond(spoken())
        await outlet.ended(1)
        assert outlet.text() == "Now it is right."
        assert stages.transcriber.calls.started == 2
        await session.close()

    run(main())


def test_silence_after_a_pause_keeps_the_prepared_answer() -> None:
    async def main() -> None:
        stages = fakes()
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        for _ in range(10):
            await session.push(step(1, silent(20)))
        await commit(session, transcribe=True)
        await session.respond(spoken())
        await outlet.ended(1)
        assert stages.transcriber.calls.started == len(stages.model.prompts) == 1
        await session.close()

    run(main())


def test_a_second_pause_prepares_anew_what_was_said_between() -> None:
    """Also when what was said was too quiet for loudness to tell: only speech leads to another pause."""

    async def main() -> None:
        stages = fakes("hello", "Old.", "New.")
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(0.5)
        await session.push(step(1, silent(20)))
        await session.prepare(spoken())
        await commit(session)
        await session.respond(spoken())
        await outlet.ended(1)
        assert outlet.text() == "New."
        await session.close()

    run(main())


@pytest.mark.parametrize(
    "changes",
    [
        {"instructions": "be brief"},
        {"voice": "bass"},
        {"modalities": ("text",)},
        {"history": (user("u0", "before"), user("u1", input=1))},
    ],
)
def test_another_request_than_the_prepared_one_starts_afresh(changes: dict[str, Any]) -> None:
    async def main() -> None:
        stages = fakes("hello", "For the first.", "For the second.")
        session, outlet = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(0.5)
        await commit(session)
        await session.respond(spoken(1, **changes))
        await outlet.ended(1)
        assert outlet.text() == "For the second."
        assert stages.transcriber.calls.started == 1
        await session.close()
        assert stages.running == 0

    run(main())


def test_an_utterance_that_is_forgotten_takes_its_answer_along() -> None:
    async def main() -> None:
        stages = fakes()
        session, _ = await stages.session()
        await speak(session)
        await session.prepare(spoken())
        await asyncio.sleep(0.1)
        await session.forget(1)
        await asyncio.sleep(0.01)
        assert stages.running == 0
        assert stages.transcriber.begun[0].cancelled
        await session.forget(1)
        await session.close()

    run(main())
