"""The validator finds what a full one finds, and says where."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.protocol.examples import EVENTS

from counterpoint.protocol import codec, projection
from counterpoint.protocol.catalog import kind_of
from counterpoint.testing.schema.events import official
from counterpoint.testing.schema.validator import Validator

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "inf", "type": "string"}]},
        "parts": {"type": "array", "items": {"$ref": "#/defs/Part"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
}
ROOT = {
    "defs": {
        "Part": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
                    "required": ["type", "text"],
                },
                {
                    "type": "object",
                    "properties": {"type": {"const": "audio"}, "rate": {"enum": [8000, 24000]}},
                    "required": ["type"],
                },
            ]
        }
    }
}


def problems(value: Any, *, strict: bool = False) -> list[str]:
    return list(Validator(ROOT, strict=strict).problems(SCHEMA, value))


@pytest.mark.parametrize(
    "value",
    [
        {"name": "a"},
        {"name": "a", "size": 3},
        {"name": "a", "size": "inf", "other": None},
        {"name": "a", "parts": [{"type": "text", "text": ""}, {"type": "audio", "rate": 8000}]},
        {"name": "a", "labels": {"anything": "text"}},
    ],
)
def test_what_fits_has_no_problem(value: Any) -> None:
    assert problems(value) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "the event is [], not of type object"),
        ({}, "name is missing"),
        ({"name": None}, "name is None, not of type string"),
        ({"name": "a", "size": True}, "size is True, not of type integer"),
        ({"name": "a", "size": -1}, "size is -1, less than 0"),
        (
            {"name": "a", "parts": [{"type": "audio", "rate": 5}]},
            "parts[0].rate is 5, not one of 8000, 24000",
        ),
        ({"name": "a", "parts": [{"type": "text"}]}, "parts[0].text is missing"),
        ({"name": "a", "labels": {"a b": 1}}, "labels['a b'] is 1, not of type string"),
    ],
)
def test_a_problem_says_where_it_is(value: Any, problem: str) -> None:
    assert problem in problems(value)


def test_strict_refuses_what_is_not_listed() -> None:
    value = {"name": "a", "extra": 1, "labels": {"any": "text"}}
    assert problems(value) == []
    assert problems(value, strict=True) == ["extra is not part of it"]


def test_what_it_does_not_know_is_an_error_and_not_ignored() -> None:
    with pytest.raises(ValueError, match="maxLength"):
        list(Validator({}, strict=False).problems({"maxLength": 3}, "text"))


_VALUES: tuple[Any, ...] = (None, True, 7, -1.5, "text", "in_progress", [], {}, [1], {"type": "message"})


def _mutated(value: Any, rng: random.Random) -> Any:
    """A copy of ``value`` in which one thing, anywhere, is gone, other, or added."""
    changed = copy.deepcopy(value)
    places = list(_containers(changed))
    place = places[rng.randrange(len(places))]
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if keys and rng.random() < 0.7:
        key = keys[rng.randrange(len(keys))]
        if rng.random() < 0.3:
            del place[key]
        else:
            place[key] = copy.deepcopy(_VALUES[rng.randrange(len(_VALUES))])
    elif isinstance(place, dict):
        place["added"] = 1
    return changed


def _containers(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


@pytest.mark.parametrize("group", ["server", "beta_server"])
def test_it_agrees_with_a_full_validator(group: str) -> None:
    """On every event that we can say and ten thousand that are broken somewhere."""
    rng = random.Random(17)
    beta = group == "beta_server"
    shown = []
    for event in EVENTS:
        body = codec.encode_body(event, "event_1")
        frame = projection.session_frame(kind_of(event), body, b"", 1, extended=False, beta=beta)
        if frame is not None:
            shown.append(frame)
    full = {
        kind: Draft202012Validator(
            {**schema, "defs": official()["defs"], "beta_defs": official()["beta_defs"]}
        )
        for kind, schema in official()[group].items()
    }
    ours = Validator(official(), strict=False)
    refused = 0
    for _ in range(120):
        for frame in shown:
            event = _mutated(json.loads(frame), rng)
            kind = event.get("type")
            if not isinstance(kind, str) or kind not in full:
                continue
            expected = full[kind].is_valid(event)
            found = list(ours.problems(official()[group][kind], event))
            assert (not found) == expected, (event, found)
            refused += not expected
    assert refused > 500
