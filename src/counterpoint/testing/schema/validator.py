"""Holds a value against a JSON schema, as far as the schemas of this package go.

Owns: ``problems``; the few words of JSON Schema that these schemas are written in.
Does not own: the schemas.
Here because: the conformance check is part of the product, and a full validator would be a dependency of
everybody who installs it. What is not understood is an error, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_KNOWN = frozenset({"type", "const", "enum", "anyOf", "$ref", "properties", "required", "items"}) | {
    "additionalProperties",
    "minimum",
}

_NULL = {"type": "null"}

#: An identifier needs no quotes in a path.
_PLAIN = re.compile(r"\w+")


class Validator:
    """``root`` is the document that references lead into. ``strict``: an object that names its keys has no
    others."""

    def __init__(self, root: Schema, *, strict: bool) -> None:
        self._root = root
        self._strict = strict
        #: Schemas that hold no word which is not known, by identity: they are part of ``root`` or constants.
        self._understood: set[int] = set()

    def problems(self, schema: Schema, value: Any, path: str = "") -> Iterator[str]:
        """What is wrong with ``value``, each with the place; nothing if it is valid."""
        if id(schema) not in self._understood:
            self._understand(schema)
        if "$ref" in schema:
            yield from self.problems(self._referred(schema["$ref"]), value, path)
        elif "anyOf" in schema:
            yield from self._closest(schema["anyOf"], value, path)
        elif "const" in schema and value != schema["const"]:
            yield f"{_place(path)} is {_short(value)}, not {_short(schema['const'])}"
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{_place(path)} is {_short(value)}, not one of {', '.join(map(_short, schema['enum']))}"
        elif "type" in schema and not _has_type(value, schema["type"]):
            yield f"{_place(path)} is {_short(value)}, not of type {schema['type']}"
        elif isinstance(value, dict):
            yield from self._object(schema, value, path)
        elif isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self.problems(schema["items"], item, f"{path}[{index}]")
        elif "minimum" in schema and value < schema["minimum"]:
            yield f"{_place(path)} is {value}, less than {schema['minimum']}"

    def _understand(self, schema: Schema) -> None:
        if unknown := schema.keys() - _KNOWN:
            raise ValueError(f"the validator does not know {', '.join(sorted(unknown))}")
        self._understood.add(id(schema))

    def _referred(self, reference: str) -> Schema:
        found: Any = self._root
        for key in reference.removeprefix("#/").split("/"):
            found = found[key]
        schema: Schema = found
        return schema

    def _closest(self, alternatives: list[Schema], value: Any, path: str) -> list[str]:
        """Nothing if one alternative fits, else what is wrong with the one that fits best."""
        if value is None and _NULL in alternatives:
            return []
        tried: list[list[str]] = []
        for alternative in alternatives:
            found = list(self.problems(alternative, value, path))
            if not found:
                return []
            tried.append(found)
        # The kind of a thing is in `type` or `role`: one that differs there is not what was meant.
        return min(tried, key=lambda found: (_is_other_kind(found, path), len(found)))

    def _object(self, schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
        named: Mapping[str, Schema] = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                yield f"{_place(_join(path, key))} is missing"
        other = schema.get("additionalProperties")
        for key, item in value.items():
            if key in named:
                yield from self.problems(named[key], item, _join(path, key))
            elif other is not None:
                yield from self.problems(other, item, _join(path, key))
            elif self._strict and named:
                yield f"{_place(_join(path, key))} is not part of it"


def _has_type(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            raise ValueError(f"the validator does not know the type {kind}")


def _is_other_kind(found: list[str], path: str) -> bool:
    own = {_place(path), _place(_join(path, "type")), _place(_join(path, "role"))}
    return any(problem.split(" is ")[0] in own and "not part of it" not in problem for problem in found)


def _join(path: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key


def _place(path: str) -> str:
    return path or "the event"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
