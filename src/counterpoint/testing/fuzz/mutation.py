"""Breaking frames: a value, a key, the text, or everything.

Owns: ``mutated``, ``garbage``.
Does not own: valid frames (``frames``).
Here because: what breaks a server is a small step from what it expects.
"""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

Frame = str | bytes

#: Values that have broken something somewhere.
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    0.5,
    -0.0,
    1e308,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    10**40,
    "",
    "null",
    "0",
    "root",
    "none",
    "\x00",
    "\u202e",
    "\ud7ff",
    "a" * 600,
    "../../etc/passwd",
    "%s%n{0}",
    "realtime",
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"type": "realtime"},
    {"__class__": "x"},
    "AAAA",
    "AAA",
    "data:;base64,AAAA",
)

_TEXT_EDITS = (
    "cut",
    "flip",
    "insert",
    "double",
    "repeat",
    "nan",
    "surrogate",
    "deep",
    "space",
    "wrap",
    "binary",
)
_INSERTS = (
    "\x00",
    "\\u0000",
    "\\ud800",
    "NaN",
    "-Infinity",
    "1e999",
    '"',
    "{",
    "]",
    ",",
    "\\",
    "\ufeff",
    "é",
)


#: A key, with its colon.
_KEYS = re.compile(r'"\w+":')


def mutated(event: dict[str, Any], rng: random.Random) -> Frame:
    """``event`` as a frame with one to three things wrong."""
    event = copy.deepcopy(event)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(event, rng)
    text = json.dumps(event, ensure_ascii=rng.random() < 0.5)
    return _edit(text, rng) if rng.random() < 0.25 else text


def _change(event: dict[str, Any], rng: random.Random) -> None:
    places = list(_containers(event))
    place = rng.choice(places)
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if not keys:
        if isinstance(place, dict):
            place["extra"] = copy.deepcopy(rng.choice(_VALUES))
        else:
            place.append(copy.deepcopy(rng.choice(_VALUES)))
        return
    key = rng.choice(keys)
    match rng.randrange(5):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[f"{key}_"] = place.pop(key)
        case 2 if isinstance(place, dict):
            place[key] = place[rng.choice(keys)]
        case 3:
            place[key] = [place[key]]
        case _:
            place[key] = copy.deepcopy(rng.choice(_VALUES))


def _containers(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


def _edit(text: str, rng: random.Random) -> Frame:
    at = rng.randrange(len(text) + 1)
    match rng.choice(_TEXT_EDITS):
        case "cut":
            return text[:at]
        case "flip" if at < len(text):
            return text[:at] + chr(ord(text[at]) ^ (1 << rng.randrange(7))) + text[at + 1 :]
        case "insert":
            return text[:at] + rng.choice(_INSERTS) + text[at:]
        case "double":
            return text + text
        case "repeat":
            key = rng.choice(_KEYS.findall(text) or ['"type":'])
            return text.replace(key, f"{key} null, {key}" if rng.random() < 0.5 else f'{key} "x", {key}', 1)
        case "nan":
            return text.replace(": ", ": NaN, ", 1) if rng.random() < 0.5 else text[:-1] + ', "x": NaN}'
        case "surrogate":
            return text.replace('": "', '": "\\ud83d', 1)
        case "deep":
            depth = rng.choice((10, 63, 64, 65, 5000))
            return text[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"
        case "binary":
            return text.encode()
        case "space":
            return "\n\t " + text + " \r\n"
        case _:
            return f"[{text}]"


def garbage(rng: random.Random) -> Frame:
    """What has nothing to do with an event."""
    size = rng.choice((0, 1, 2, 10, 300))
    if rng.random() < 0.4:
        return rng.randbytes(size)
    alphabet = rng.choice(('{}[]":,\\ntrue0.e-', "".join(map(chr, range(32, 0x250)))))
    return "".join(rng.choice(alphabet) for _ in range(size))
