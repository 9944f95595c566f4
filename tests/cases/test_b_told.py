"""Group B of the known cases: whoever is replaced hears of it, at whatever moment it happens."""

from __future__ import annotations

import asyncio
import contextlib
import random

from .client import MANUAL, Caller, append, tone
from .world import World

SESSIONS, TAKEOVERS_EACH = 4, 50


async def test_two_hundred_replaced_connections_are_all_told(world: World) -> None:
    """Takeover (wire contract, section 3): ``session.replaced`` and 4001, while audio goes both ways."""
    await world.serve({"limits.max_sessions": SESSIONS, "transport.close_timeout_s": 10})
    await asyncio.gather(*(_replace_again_and_again(world, random.Random(seed)) for seed in range(SESSIONS)))


async def _replace_again_and_again(world: World, chance: random.Random) -> None:
    caller = await world.call({"audio_ms": 60_000, "chunk_ms": 20, "pace": "realtime"}, session=MANUAL)
    await caller.ask()
    speaking = asyncio.create_task(_speak(caller))
    for generation in range(1, TAKEOVERS_EACH + 1):
        await asyncio.sleep(chance.choice((0.0, 0.001, 0.02)) * chance.random())
        old = caller.connection
        await caller.resume()
        assert (await old.ended()).code == 4001, f"connection {generation}"
        replaced = old.events[-1]
        assert (replaced["type"], replaced["attachment_generation"]) == ("session.replaced", generation)
    speaking.cancel()
    await caller.hang_up()


async def _speak(caller: Caller) -> None:
    """Audio as fast as a microphone gives it, on whatever connection is the newest."""
    while True:
        with contextlib.suppress(ConnectionError):
            await caller.send(append(tone(20, 0.5)))
            await caller.send({"type": "input_audio_buffer.clear"})
        await asyncio.sleep(0.01)
