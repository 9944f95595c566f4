"""Async tests of delivery run on a virtual loop: waiting takes no time, waiting without end is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from counterpoint.testing.virtual_time import VirtualLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}
