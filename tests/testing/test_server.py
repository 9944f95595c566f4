"""A test of a client gets a real server in one line."""

from __future__ import annotations

import aiohttp
import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.testing.server import running_server


async def first_event(url: str, **query: str) -> dict[str, object]:
    async with aiohttp.ClientSession() as http, http.ws_connect(url, params=query) as connection:
        event: dict[str, object] = await connection.receive_json()
        return event


async def test_a_server_runs_with_settings_by_their_keys() -> None:
    settings = {"limits.max_sessions": 3, "debug.state_route": True, "models.aliases": "my-*"}
    async with running_server(settings) as server:
        event = await first_event(server.url, model="my-model", duplex="1")
        session = event["session"]
        assert isinstance(session, dict)
        assert session["model"] == "my-model"
        assert session["capabilities"]["max_sessions"] == 3
        assert server.settings.debug.state_route


async def test_a_plugin_of_the_test_is_served() -> None:
    plugin = ScriptedPlugin({})
    async with running_server(plugin=plugin) as server:
        assert (await first_event(server.url))["type"] == "session.created"
    assert plugin.call_log[0]["call"] == "open"


async def test_a_wrong_setting_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigurationError, match=r"limits\.max_session: no such key"):
        async with running_server({"limits.max_session": 3}):
            pass
