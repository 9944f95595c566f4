"""The scripted model as a plugin: options, validation, capabilities."""

from __future__ import annotations

import msgspec
import pytest

from counterpoint.errors import ConfigurationError, ProtocolError
from counterpoint.models.scripted.call_log import CAPACITY, CallLog
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.plugins.contract import Fence, Interaction, ModelPlugin
from counterpoint.plugins.loading import load_plugin
from counterpoint.protocol.config import AudioConfig, AudioOutput, SessionConfig
from counterpoint.testing.virtual_time import run


def test_it_is_found_by_its_name() -> None:
    plugin: ModelPlugin = ScriptedPlugin({})
    assert isinstance(load_plugin("scripted", {"open_delay_ms": "20", "fail_open": "true"}), type(plugin))
    assert plugin.capabilities().interaction is Interaction.TURN
    assert plugin.capabilities().input_rate == plugin.capabilities().output_rate == 24_000


@pytest.mark.parametrize("option", ["audio_ms", "colour"])
def test_an_option_that_it_does_not_have_is_refused_by_name(option: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ScriptedPlugin({option: 1})
    assert refused.value.key == f"model.{option}"


def test_a_bad_script_is_refused_before_it_is_in_force() -> None:
    with pytest.raises(ProtocolError) as refused:
        ScriptedPlugin({}).validate(SessionConfig(extra_body={"script": {"pace": "slow"}}), None)
    assert refused.value.param == "session.extra_body.script.pace"


def test_an_unknown_voice_is_replaced_by_the_one_in_force() -> None:
    config = SessionConfig(audio=AudioConfig(output=AudioOutput(voice="marin", speed=1.2)))
    valid = ScriptedPlugin({}).validate(config, None)
    assert valid.audio.output == msgspec.structs.replace(config.audio.output, voice="default")


def test_the_log_is_bounded() -> None:
    async def main() -> None:
        log = CallLog()
        for turn in range(CAPACITY + 10):
            log.add("append", Fence("s", 0, turn))
        assert len(log.entries()) == CAPACITY
        assert log.entries()[0]["request_id"] == "s/0/10"

    run(main())
