"""Finding a model by name and making it.

Owns: the entry-point group, the ``module:attribute`` form, and what is checked before a plugin is used.
Does not own: the options' meaning (each plugin), starting it (``runtime``).
Here because: a model that cannot work must be refused when the server starts, in one line that says why.

A name stands for a factory: ``factory(options) -> ModelPlugin``, where ``options`` are the ``model.*``
keys of the configuration. A plugin class that takes them is a factory.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from counterpoint.errors import ConfigurationError

from .contract import Capabilities, ModelPlugin

#: Distributions announce their models in this group of entry points.
GROUP: Final = "counterpoint.plugins"

_KEY: Final = "model"


def load_plugin(name: str, options: Mapping[str, Any]) -> ModelPlugin:
    """The plugin that an installed distribution calls ``name``, or that ``module:attribute`` points at.

    Nothing is loaded or warmed up yet. Raises ``ConfigurationError``: for ``model`` when there is no such
    plugin or it is unusable, for ``model.KEY`` when an option is.
    """
    factory = _load(name, _find(name))
    if not callable(factory):
        raise ConfigurationError(
            _KEY, f"{name} is not callable: a factory takes options and returns a plugin"
        )
    try:
        plugin = factory(options)
        capabilities = plugin.capabilities() if isinstance(plugin, ModelPlugin) else None
    except (TypeError, ValueError) as error:  # not a factory, or capabilities that make no sense
        raise ConfigurationError(_KEY, f"{name} cannot be used: {error}") from error
    if not isinstance(plugin, ModelPlugin):
        raise ConfigurationError(_KEY, f"{name} made a {type(plugin).__name__}, which is not a ModelPlugin")
    if not isinstance(capabilities, Capabilities):
        kind = type(capabilities).__name__
        raise ConfigurationError(_KEY, f"the capabilities of {name} are a {kind}, not Capabilities")
    return plugin


def installed_plugins() -> list[str]:
    """Names of the plugins that installed distributions announce, sorted."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def _find(name: str) -> EntryPoint:
    module, colon, attribute = name.partition(":")
    if colon:
        if not module or not attribute:
            raise ConfigurationError(_KEY, f"{name!r} is neither a name nor module:attribute")
        return EntryPoint(name, name, GROUP)
    found = {entry.value: entry for entry in entry_points(group=GROUP, name=name)}
    if not found:
        names = ", ".join(installed_plugins()) or "none"
        raise ConfigurationError(
            _KEY, f"no plugin is called {name!r}; installed: {names}; or use module:attribute"
        )
    if len(found) > 1:
        raise ConfigurationError(_KEY, f"several plugins are called {name!r}: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _load(name: str, entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except AttributeError as error:
        raise ConfigurationError(_KEY, f"{name} does not exist: {error}") from error
    except Exception as error:
        raise ConfigurationError(_KEY, f"{name} cannot be imported: {error!r}") from error
