"""A server with the scripted model, and callers of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from counterpoint.testing.server import running_server

from .caller import Callers, callers


@pytest.fixture
async def door() -> AsyncIterator[Callers]:
    settings = {"transport.close_timeout_s": 0.5, "transport.handshake_timeout_s": 5}
    async with running_server(settings) as server, callers(server) as made:
        yield made
