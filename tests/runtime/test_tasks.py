"""Tasks are held, named, heard when they fail, and gone when asked to go."""

import asyncio

from counterpoint.runtime.tasks import Tasks
from counterpoint.testing.virtual_time import run


def test_a_failure_reaches_whoever_asked_to_hear_of_it() -> None:
    heard: list[str] = []

    async def fail() -> None:
        raise ValueError("no")

    async def main() -> None:
        tasks = Tasks("owner")
        tasks.spawn("failing", fail(), on_error=lambda error: heard.append(str(error)))
        await tasks.join()
        await asyncio.sleep(0)
        assert len(tasks) == 0

    run(main())
    assert heard == ["no"]


def test_cancel_waits_for_what_it_cancelled_and_says_if_something_outlived_it() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(100)
                return
            except asyncio.CancelledError:
                continue

    async def main() -> tuple[bool, bool]:
        tasks = Tasks("owner")
        tasks.spawn("meek", asyncio.sleep(100))
        meek = await tasks.cancel(timeout=1)
        tasks.spawn("stubborn", stubborn())
        await asyncio.sleep(0)
        return meek, await tasks.cancel(timeout=1)

    assert run(main()) == (True, False)
