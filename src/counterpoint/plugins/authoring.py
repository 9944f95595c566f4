"""What every plugin does alike when it is configured.

Owns: reading a plugin's options into a typed value, settling on a voice that the model has.
Does not own: where options come from (``serving.settings``), what they mean (each plugin).
Here because: in every plugin a wrong option must name its key, and an unknown voice must not fail a session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from counterpoint.errors import ConfigurationError
from counterpoint.protocol.config import SessionConfig

from .contract import Capabilities

Options = TypeVar("Options", bound=msgspec.Struct)


def read_options(options: Mapping[str, Any], into: type[Options]) -> Options:
    """``options`` (the ``model.*`` keys of the configuration) as a value of the struct ``into``.

    Values may be text, as the environment and the command line have them. Raises ``ConfigurationError``
    for ``model.KEY`` when a key is unknown or its value does not fit.
    """
    known = into.__struct_fields__
    for key in options:
        if key not in known:
            available = f"it has {', '.join(known)}" if known else "it has none"
            raise ConfigurationError(f"model.{key}", f"the model has no such option; {available}")
    try:
        return msgspec.convert(dict(options), into, strict=False)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at ")
        key = re.sub(r"[^\w.]", "", path.partition(".")[2])
        raise ConfigurationError(f"model.{key}", reason) from None


def with_known_voice(config: SessionConfig, capabilities: Capabilities) -> SessionConfig:
    """``config`` with a voice that the model has: the one asked for, else the model's first."""
    output = config.audio.output
    if output.voice in capabilities.voices or not capabilities.voices:
        return config
    output = msgspec.structs.replace(output, voice=capabilities.voices[0])
    return msgspec.structs.replace(config, audio=msgspec.structs.replace(config.audio, output=output))
