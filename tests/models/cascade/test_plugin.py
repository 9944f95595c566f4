"""The cascade as a plugin: what it needs, what it offers, and that it stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterpoint.errors import ConfigurationError, PluginError
from counterpoint.models.cascade import assembly as module
from counterpoint.models.cascade.plugin import CascadePlugin
from counterpoint.models.voice import files
from counterpoint.plugins.contract import Interaction, ModelPlugin
from counterpoint.plugins.detection import SpeechDetector, TurnModel
from counterpoint.plugins.loading import load_plugin
from counterpoint.protocol.config import AudioConfig, AudioOutput, SessionConfig


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> CascadePlugin:
    """Made where the voice counts as installed, and not started."""
    monkeypatch.setattr(module, "require_runtime", lambda: None)
    monkeypatch.setattr(module, "find_files", lambda directory: None)
    return CascadePlugin({})


def test_where_the_voice_is_not_installed_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RUNTIME_MODULES", ("no_such_speech_runtime",))
    with pytest.raises(
        ConfigurationError, match=r"no_such_speech_runtime not installed.*counterpoint install-voice"
    ):
        load_plugin("cascade", {})
    monkeypatch.setattr(files, "RUNTIME_MODULES", ())
    with pytest.raises(ConfigurationError, match="install"):
        load_plugin("cascade", {"directory": str(tmp_path)})


def test_an_option_that_it_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="directory, llm") as refused:
        load_plugin("cascade", {"voice": "bass"})
    assert refused.value.key == "model.voice"


def test_it_says_what_it_can_do(unloaded: CascadePlugin) -> None:
    plugin: ModelPlugin = unloaded
    capabilities = plugin.capabilities()
    assert isinstance(plugin, ModelPlugin)
    assert capabilities.interaction is Interaction.TURN
    assert (capabilities.input_rate, capabilities.output_rate) == (16_000, 24_000)
    assert capabilities.voices[0] == "mezzo"
    assert not capabilities.tools


def test_an_unknown_voice_becomes_the_one_in_force(unloaded: CascadePlugin) -> None:
    asked = SessionConfig(audio=AudioConfig(output=AudioOutput(voice="marin")))
    assert unloaded.validate(asked, None).audio.output.voice == "mezzo"
    asked = SessionConfig(audio=AudioConfig(output=AudioOutput(voice="bass")))
    assert unloaded.validate(asked, None).audio.output.voice == "bass"


async def test_with_every_stage_elsewhere_the_voice_need_not_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "RUNTIME_MODULES", ("no_such_speech_runtime",))
    server = {"url": "http://127.0.0.1:1/v1", "model": "m"}
    with pytest.raises(ConfigurationError, match="install"):
        CascadePlugin({"llm": server, "asr": server})
    plugin = CascadePlugin({"llm": server, "asr": server, "tts": server | {"voices": ["amy"]}})
    assert plugin.capabilities().tools
    assert plugin.capabilities().voices == ("amy",)
    await plugin.start()
    assert plugin.load().healthy
    assert plugin.detectors() == ()
    await plugin.stop()
    assert not plugin.load().healthy


async def test_nothing_is_served_before_it_has_started(unloaded: CascadePlugin) -> None:
    assert not unloaded.load().healthy
    with pytest.raises(PluginError):
        unloaded.create_session("s")
    with pytest.raises(PluginError):
        unloaded.detectors()
    await unloaded.stop()


@pytest.mark.voice
@pytest.mark.slow
async def test_it_starts_serves_and_stops() -> None:
    """No thread of it is left."""
    plugin = load_plugin("cascade", {})
    await plugin.start()
    silero, turn_model = plugin.detectors()
    assert isinstance(silero, SpeechDetector)
    assert isinstance(turn_model, TurnModel)
    assert plugin.load().healthy
    await plugin.create_session("s").close()
    assert plugin.load().sessions == 0
    await plugin.stop()
