"""A server and callers for each test of the WebRTC door."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from .caller import Callers, calling


@pytest.fixture
async def door() -> AsyncIterator[Callers]:
    async with calling() as door:
        yield door
