"""Writes the official events as JSON schemas, from the models of the ``openai`` package.

Owns: which models are taken, what is left out of their schemas, the shape of the file.
Does not own: checking events against it (``counterpoint.testing.schema``).
Here because: the official vocabulary changes with every release of that package, and a schema that is kept by
hand is the schema of last year.

Usage: ``python tools/realtime_schema.py`` writes the file; a test says when it is out of date.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import openai
from openai.types.beta import realtime as beta
from openai.types.realtime import ClientSecretCreateResponse, RealtimeClientEvent, RealtimeServerEvent
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

PAGE = Path(__file__).parent.parent / "src" / "counterpoint" / "testing" / "schema" / "official.json"

SOURCE = f"Models of the Python package openai {openai.__version__}, which is licensed under Apache-2.0."

#: What a validator does not look at.
_LEFT_OUT = ("title", "description", "default")

#: Names that several modules have come with that of their module; the packages around it say nothing.
_MODULE = re.compile(r"openai__types__(beta__)?realtime__")

Models = dict[str, type[BaseModel]]


def render() -> str:
    """The whole file: JSON with one event, or one definition, a line."""
    official = _groups(
        "defs",
        client=_models(RealtimeClientEvent),
        server=_models(RealtimeServerEvent),
        values={"client_secret": ClientSecretCreateResponse},
    )
    older = _groups(
        "beta_defs",
        beta_client=_models(beta.RealtimeClientEvent),
        beta_server=_models(beta.RealtimeServerEvent),
    )
    parts = [f'"source": {json.dumps(SOURCE)}']
    parts += [f"{json.dumps(name)}: {{\n{_lines(group)}\n}}" for name, group in (official | older).items()]
    return _MODULE.sub("", "{\n" + ",\n".join(parts) + "\n}\n")


def _lines(group: dict[str, Any]) -> str:
    return ",\n".join(f" {json.dumps(name)}: {json.dumps(group[name])}" for name in sorted(group))


def _groups(defs: str, **groups: Models) -> dict[str, dict[str, Any]]:
    """The schemas of the models of each group, and what they refer to as another group called ``defs``."""
    every = {model: None for group in groups.values() for model in group.values()}
    where, found = models_json_schema(
        [(model, "validation") for model in every], ref_template=f"#/{defs}/{{model}}"
    )
    named = {name: _trimmed(schema) for name, schema in found["$defs"].items()}
    tops = {model: str(where[model, "validation"]["$ref"]).rpartition("/")[2] for model in every}
    schemas = {
        name: {kind: named[tops[model]] for kind, model in group.items()} for name, group in groups.items()
    }
    return {**schemas, defs: {name: named[name] for name in named.keys() - tops.values()}}


def _models(union: Any) -> Models:
    """The members of a union of events, by the value of ``type``."""
    found: Models = {}
    for member in _members(union):
        (kind,) = get_args(member.model_fields["type"].annotation)
        found[kind] = member
    return found


def _members(union: Any) -> list[type[BaseModel]]:
    if get_origin(union) is Annotated:
        return _members(get_args(union)[0])
    arguments = get_args(union)
    return [member for argument in arguments for member in _members(argument)] if arguments else [union]


def _trimmed(schema: Any) -> Any:
    """``schema`` without prose. Objects may have other keys: the models say so, and it need not be said."""
    if isinstance(schema, list):
        return [_trimmed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    trimmed: dict[str, Any] = {}
    for key, part in schema.items():
        if key == "properties":
            trimmed[key] = {name: _trimmed(value) for name, value in part.items()}
        elif key not in _LEFT_OUT and not (key == "additionalProperties" and part is True):
            trimmed[key] = _trimmed(part)
    return trimmed


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
