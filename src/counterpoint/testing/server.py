"""A real server in the process of a test, on a free port of loopback.

Owns: ``running_server``: settings by their dotted keys, a plugin by name or as an object.
Does not own: the server (``serving.app``), faults on the way to it (``testing.proxy``).
Here because: a test of a client needs one line for a server, and must not learn how settings are read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping

from counterpoint.plugins.contract import ModelPlugin
from counterpoint.serving.app import Server, running
from counterpoint.serving.settings import Settings
from counterpoint.stages.placement import load_placed


@contextlib.asynccontextmanager
async def running_server(
    settings: Mapping[str, object] | None = None,
    *,
    model: str = "scripted",
    plugin: ModelPlugin | None = None,
) -> AsyncIterator[Server]:
    """A server with ``settings`` by their dotted keys (``{"limits.max_sessions": 2}``), closed at the end.

    It serves ``plugin``, or else the one called ``model``, under that name. Raises ``ConfigurationError``.
    """
    loaded = Settings.load(overrides=[f"{key}={_text(value)}" for key, value in (settings or {}).items()])
    served = plugin or load_placed(model, loaded.model)
    async with running(loaded, host="127.0.0.1", port=0, plugin=served, model=model) as server:
        yield server


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
