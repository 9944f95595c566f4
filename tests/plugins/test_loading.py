"""Finding and checking plugins: every way in which a name can be wrong says so in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.plugins.loading import installed_plugins, load_plugin

HERE = "tests.plugins.test_loading"


class Minimal(ScriptedPlugin):
    """A plugin that an author might have written."""


def fails_in_the_factory(options: Mapping[str, Any]) -> ScriptedPlugin:
    Capabilities(Interaction.FRAME)
    return ScriptedPlugin(options)


class MeaninglessCapabilities(ScriptedPlugin):
    def capabilities(self) -> Capabilities:
        return Capabilities(Interaction.TURN, step_samples=1920)


class CapabilitiesAsDict(ScriptedPlugin):
    def capabilities(self) -> Capabilities:
        return {"interaction": "turn"}  # type: ignore[return-value]


def makes_a_string(options: Mapping[str, Any]) -> str:
    return "a model"


def takes_no_options() -> ScriptedPlugin:
    return ScriptedPlugin({})


not_callable = 5


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution that announces plugins: the lines written into its entry points."""
    info = tmp_path / "somebodys_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-model\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return info / "entry_points.txt"


def test_the_models_that_ship_are_announced() -> None:
    assert {"cascade", "scripted"} <= set(installed_plugins())


def test_a_plugin_of_another_distribution(distribution: Path) -> None:
    distribution.write_text(f"[counterpoint.plugins]\ntheirs = {HERE}:Minimal\n")
    assert "theirs" in installed_plugins()
    assert isinstance(load_plugin("theirs", {}), Minimal)


def test_module_and_attribute() -> None:
    assert isinstance(load_plugin(f"{HERE}:Minimal", {"open_delay_ms": 3}), Minimal)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigurationError, match=r"'parrot'.*cascade, scripted.*module:attribute") as refused:
        load_plugin("parrot", {})
    assert refused.value.key == "model"


def test_one_name_for_two_plugins_is_refused(distribution: Path) -> None:
    distribution.write_text(f"[counterpoint.plugins]\nscripted = {HERE}:Minimal\n")
    with pytest.raises(ConfigurationError, match="several plugins"):
        load_plugin("scripted", {})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (":Minimal", "neither a name nor module:attribute"),
        (f"{HERE}:", "neither a name nor module:attribute"),
        ("no.such.module:Model", "cannot be imported.*no"),
        (f"{HERE}:NoSuchModel", "does not exist.*NoSuchModel"),
        (f"{HERE}:not_callable", "not callable"),
        (f"{HERE}:makes_a_string", "made a str"),
        (f"{HERE}:takes_no_options", "cannot be used.*argument"),
        (f"{HERE}:fails_in_the_factory", "cannot be used: step_samples"),
        (f"{HERE}:MeaninglessCapabilities", "cannot be used: step_samples"),
        (f"{HERE}:CapabilitiesAsDict", "are a dict, not Capabilities"),
    ],
)
def test_what_cannot_be_used_says_why(name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as refused:
        load_plugin(name, {})
    assert refused.value.key == "model"


def test_a_module_that_fails_when_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_model_module.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"cannot be imported.*no licence"):
        load_plugin("broken_model_module:Model", {})


def test_an_options_own_error_names_the_option() -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_plugin("scripted", {"open_delay_ms": "soon"})
    assert refused.value.key == "model.open_delay_ms"
