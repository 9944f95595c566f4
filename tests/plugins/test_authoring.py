"""Options and voices of plugins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.plugins.authoring import read_options, with_known_voice
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol.config import AudioConfig, AudioOutput, SessionConfig


class Options(msgspec.Struct, frozen=True):
    threads: int = 1
    warm: bool = True
    device: str | None = None


class NoOptions(msgspec.Struct, frozen=True):
    """Nothing to configure."""


def config_with(voice: str) -> SessionConfig:
    return SessionConfig(audio=AudioConfig(output=AudioOutput(voice=voice, speed=0.5)))


def test_options_may_be_values_or_their_text() -> None:
    assert read_options({"threads": 2, "warm": False}, Options) == Options(2, warm=False)
    assert read_options({"threads": "2", "warm": "false"}, Options) == Options(2, warm=False)


@pytest.mark.parametrize(
    ("given", "key", "reason"),
    [
        ({"colour": 1}, "model.colour", "it has threads, warm, device"),
        ({"threads": "many"}, "model.threads", "int"),
        ({"warm": "perhaps"}, "model.warm", "bool"),
        ({"device": {"name": "cpu"}}, "model.device", "str"),
    ],
)
def test_an_option_that_does_not_fit_is_named(given: dict[str, Any], key: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        read_options(given, Options)
    assert refused.value.key == key


def test_a_model_without_options_takes_none() -> None:
    with pytest.raises(ConfigurationError, match="it has none"):
        read_options({"threads": 1}, NoOptions)


def test_a_voice_that_the_model_has_stays() -> None:
    capabilities = Capabilities(Interaction.TURN, voices=("alto", "bass"))
    assert with_known_voice(config_with("bass"), capabilities) == config_with("bass")


def test_another_voice_becomes_the_models_first() -> None:
    capabilities = Capabilities(Interaction.TURN, voices=("alto", "bass"))
    assert with_known_voice(config_with("marin"), capabilities) == config_with("alto")


def test_a_model_that_does_not_speak_leaves_the_voice_alone() -> None:
    capabilities = Capabilities(Interaction.TURN, audio_output=False, voices=())
    assert with_known_voice(config_with("marin"), capabilities) == config_with("marin")
