"""Where a server is, and the key to it: what is refused at the start, and that the key goes nowhere else."""

from __future__ import annotations

import logging

import pytest
from tests.models.cascade.remote.openai_server import Reply, says, serving

from counterpoint.errors import ConfigurationError
from counterpoint.models.cascade.failing import StageFailed
from counterpoint.models.cascade.plugin import CascadePlugin
from counterpoint.models.cascade.remote.chat import ChatOptions, RemoteLanguageModel
from counterpoint.models.cascade.remote.server import Server, ServerOptions
from counterpoint.models.cascade.stages import Message, Writing

KEY = "sk-very-secret"
VARIABLE = "TEST_LLM_KEY"


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://a/v1", "http://me:pw@a/v1", "http://a/v1?key=k", "http:///v1"]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^model\.llm\.url: an address (begins|holds)") as refused:
        Server("llm", ServerOptions(url=url, model="m"))
    assert refused.value.key == "model.llm.url"


def test_a_key_that_is_not_set_is_refused_by_the_setting_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, " ")
    with pytest.raises(ConfigurationError) as refused:
        Server("asr", ServerOptions(url="http://a/v1", model="m", key_env=VARIABLE))
    assert refused.value.key == "model.asr.key_env"


@pytest.mark.parametrize(
    ("stage", "options", "key"),
    [
        ("llm", {"model": "m"}, "model.llm"),
        ("asr", {"url": "http://a", "model": "m", "voice": "x"}, "model.asr"),
        ("tts", {"url": "http://a", "model": "m", "voices": []}, "model.tts"),
        ("tts", {"url": "http://a", "model": "m", "timeout_s": 0}, "model.tts.timeout_s"),
    ],
)
def test_a_wrong_option_of_a_stage_is_refused_by_name(
    stage: str, options: dict[str, object], key: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        CascadePlugin({stage: options})
    assert refused.value.key == key


@pytest.mark.parametrize("status", [200, 401])
async def test_the_key_goes_to_the_server_and_into_no_error_and_no_log(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even where the server repeats it."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(VARIABLE, KEY)
    refusal = Reply([f'{{"error": "wrong key: {KEY}"}}'.encode()], status=401)
    async with serving(says("So.") if status == 200 else refusal) as remote:
        options = ChatOptions(url=remote.url, model="m", key_env=VARIABLE)
        server = Server("llm", options)
        await server.start()
        model = RemoteLanguageModel(server, options)
        failure = None
        try:
            async for _ in model.stream([Message("user", "hi")], Writing("s")):
                pass
        except StageFailed as failed:
            failure = failed
        await server.stop()
    assert remote.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert (failure is not None) == (status == 401)
    assert KEY not in f"{failure!r} {failure} {failure and failure.__cause__!r} {options} {caplog.text}"
