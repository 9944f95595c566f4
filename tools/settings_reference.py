"""Writes docs/reference/settings.md from the settings themselves.

Owns: the shape of that page.
Does not own: keys, defaults and descriptions: they are read from the classes and their ``#:`` comments.
Here because: a table of settings that is kept by hand is wrong after the second change.

Usage: ``python tools/settings_reference.py`` writes the page.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from pathlib import Path

import msgspec

from counterpoint.serving.settings import ENVIRONMENT_PREFIX, sections

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

HEAD = f"""\
# Settings

<!-- Written by tools/settings_reference.py; change the classes that it reads instead. -->

Every key can be given in three places. The later one wins:

1. a TOML file: `counterpoint serve --config FILE.toml`, one table per section,
2. the environment: `{ENVIRONMENT_PREFIX}SECTION__KEY=value`,
3. the command line: `--set section.key=value`, any number of times.

Booleans are `true` and `false`. A list may be written `["a", "b"]`, or `a,b` outside of a file.
An unknown key, a value of the wrong kind, or values that contradict each other stop the server with exit
code 2 and one line that names the key. Keys under `model.` are passed to the model's plugin as they are.

**0 is off** where the last column says so; elsewhere a number must be above 0.
"""


def render() -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    for section, kind in sections().items():
        descriptions = _descriptions(kind)
        parts.append(f"\n## {section}\n\n| key | default | what it is | 0 is off |\n|---|---|---|---|\n")
        parts.extend(
            f"| `{section}.{field.name}` | {_shown(field.name, field.default)} "
            f"| {descriptions[field.name]} | {'yes' if _may_be_zero(field.type) else ''} |\n"
            for field in msgspec.structs.fields(kind)
        )
    return "".join(parts)


def _descriptions(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The ``#:`` comment of every field of ``kind``, inherited ones included."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if owner is not msgspec.Struct and issubclass(owner, msgspec.Struct):
            found |= _comments(inspect.getsource(owner))
    return found


def _comments(source: str) -> dict[str, str]:
    pattern = re.compile(r"((?:^ +#: .*\n)+)^ +(\w+):", re.MULTILINE)
    return {
        name: " ".join(line.strip().removeprefix("#: ") for line in comment.splitlines())
        for comment, name in pattern.findall(source)
    }


def _shown(name: str, value: object) -> str:
    """A default as one would write it, and bytes also as people read them."""
    if value in ("", ()):
        return "none"
    if name.endswith("bytes") and isinstance(value, int):
        return f"`{value}` ({value // 2**20} MiB)"
    if isinstance(value, tuple):
        return f"`{json.dumps(value)}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{str(value).lower()}`"


def _may_be_zero(kind: object) -> bool:
    constraints = [meta for meta in typing.get_args(kind)[1:] if isinstance(meta, msgspec.Meta)]
    return any(meta.ge == 0 for meta in constraints)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
