"""Tests of the client run on a virtual loop, except where a socket is the subject."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping

import pytest

from counterpoint.testing.virtual_time import VirtualLoop

SOCKETS = ("test_how_to", "test_server", "test_transport")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"sockets": asyncio.new_event_loop} if item.path.stem in SOCKETS else {"virtual": VirtualLoop}


@pytest.fixture(autouse=True)
def chance() -> None:
    """The waits between attempts are drawn alike in every run."""
    random.seed(1)
