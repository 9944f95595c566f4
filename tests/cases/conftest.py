"""The known cases run on the loop of the product, each in a world of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from .world import World, new_world


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Servers and clients of one test; afterwards nothing of them may be left."""
    async with new_world() as world:
        yield world
