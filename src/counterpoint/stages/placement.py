"""Where a plugin runs, as a user says it.

Owns: the options ``executor``, ``replicas`` and those of Ray, which every plugin has.
Does not own: the plugin's own options, the executors themselves.
Here because: moving a model into a process or onto a cluster is a matter of configuration.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from counterpoint.errors import ConfigurationError
from counterpoint.plugins.authoring import read_options
from counterpoint.plugins.contract import ModelPlugin
from counterpoint.plugins.loading import load_plugin

from .link import Place
from .placed_plugin import PlacedPlugin
from .process import ProcessPlace
from .thread import ThreadPlace


class Where(enum.Enum):
    SERVER = "server"  #: on the server's own event loop
    THREAD = "thread"
    PROCESS = "process"
    RAY = "ray"


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Of ``model.*``, the keys that are not the plugin's own."""

    executor: Where = Where.SERVER
    #: Places that the model runs in, each with all of its slots.
    replicas: Annotated[int, msgspec.Meta(ge=1)] = 1
    #: Address of a Ray cluster; without one, a cluster is started on this machine.
    ray_address: str | None = None
    #: Processors and graphics processors that Ray reserves for a replica.
    ray_cpus: float = 1.0
    ray_gpus: float = 0.0


def load_placed(name: str, options: Mapping[str, Any]) -> ModelPlugin:
    """The plugin ``name``, where ``options`` want it to run. Raises ``ConfigurationError``."""
    keys = Placement.__struct_fields__
    placement = read_options({key: value for key, value in options.items() if key in keys}, Placement)
    rest = {key: value for key, value in options.items() if key not in keys}
    place = _place(placement)
    if place is None:
        return load_plugin(name, rest)
    return PlacedPlugin(name, rest, place, placement.replicas)


def _place(placement: Placement) -> Place | None:
    match placement.executor:
        case Where.SERVER:
            return None
        case Where.THREAD:
            return ThreadPlace()
        case Where.PROCESS:
            return ProcessPlace()
        case Where.RAY:
            try:
                from .ray_actor import RayPlace
            except ImportError as missing:
                reason = f"{missing.name} is not installed; pip install '.[ray]'"
                raise ConfigurationError("model.executor", reason) from missing
            return RayPlace(placement.ray_address, cpus=placement.ray_cpus, gpus=placement.ray_gpus)
