"""Writes docs/reference/conformance.md from the checks themselves.

Owns: the shape of that page.
Does not own: checks and rules: each says for itself what it is about.
Here because: the list of promises that are checked must be the list that is run.

Usage: ``python tools/conformance_reference.py`` writes the page.
"""

from __future__ import annotations

from pathlib import Path

from counterpoint.testing.conformance.check import Needs
from counterpoint.testing.conformance.run import CHECKS
from counterpoint.testing.streams.rules import RULES

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "conformance.md"

HEAD = """\
# Conformance

<!-- Written by tools/conformance_reference.py; change the checks that it reads instead. -->

`counterpoint conformance URL` asks a server these questions and prints one line for each; it ends with exit
code 1 if the answer to one of them is no. Any server of the Realtime API can be asked. Checks that need the
session extensions, or the scripted model (`counterpoint serve --model scripted`), are skipped where these
are not offered.

*Checks* drive the server. *Rules* look at all events that came meanwhile, on every connection;
`counterpoint.testing.streams` applies them to any recording, in a test of your own as well.

The sections are those of the wire contract: 0 what stock and extended connections see, 1 endpoint and
handshake, 2 session lifetime, 3 resume, 4 input, 5 responses, 6 interruption, 7 playback, 8 errors,
9 ordering.
"""

_NEEDS = {Needs.API: "", Needs.EXTENSIONS: "extensions", Needs.SCRIPT: "scripted model"}


def render() -> str:
    """The whole page as Markdown."""
    checks = sorted(CHECKS, key=lambda check: check.section)
    rules = sorted(RULES, key=lambda rule: rule.section)
    return "\n".join(
        [
            HEAD,
            "## Checks\n\n| section | name | what must be | needs |\n|---|---|---|---|",
            *(f"| {c.section} | `{c.name}` | {c.says} | {_NEEDS[c.needs]} |" for c in checks),
            "\n## Rules\n\n| section | name | what must be |\n|---|---|---|",
            *(f"| {r.section} | `{r.name}` | {r.says} |" for r in rules),
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
