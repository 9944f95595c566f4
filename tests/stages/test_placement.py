"""A user says where a plugin runs, and is told by name what is wrong with that."""

from __future__ import annotations

import sys

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.stages.placed_plugin import PlacedPlugin
from counterpoint.stages.placement import load_placed


def test_without_a_word_a_plugin_is_the_servers_own() -> None:
    assert isinstance(load_placed("scripted", {}), ScriptedPlugin)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_elsewhere_it_says_the_same_of_itself(executor: str) -> None:
    placed = load_placed("scripted", {"executor": executor, "replicas": "2"})
    assert isinstance(placed, PlacedPlugin)
    assert placed.capabilities() == ScriptedPlugin({}).capabilities()


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"executor": "moon"}, "model.executor"),
        ({"replicas": 0}, "model.replicas"),
        ({"executor": "thread", "no_such": 1}, "model.no_such"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_placed("scripted", options)
    assert refused.value.key == key


def test_without_its_package_ray_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "counterpoint.stages.ray_actor", raising=False)
    with pytest.raises(ConfigurationError, match=r"model\.executor: ray is not installed"):
        load_placed("scripted", {"executor": "ray"})
