"""Reads docs/reference/conversation.toml, and writes docs/reference/conversation.md from it.

Owns: how the table is read, the shape of the page.
Does not own: what is expected: it is written by hand in the table, and ``tests/session/test_table.py`` holds
the product against it.
Here because: what people read of the conversation and what is tested must be the same words.

Usage: ``python tools/conversation_reference.py`` writes the page.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "docs" / "reference" / "conversation.toml"
PAGE = TABLE.with_suffix(".md")

HEAD = """\
# The conversation, state by state

<!-- Written by tools/conversation_reference.py; change conversation.toml instead. -->

What a session answers, whatever it is told and whenever. The table behind this page is written by hand from
the wire contract, whose sections are named, and a test drives a session into every state and holds it
against every line.

Effects come in the order in which they are listed. *model: cancel* and the like are what the model is asked,
not events. Each *model: cancel* begins a new epoch. `$answer` is the newest item that the model said in the
conversation, `$response` the newest response.

## States
"""


@dataclass(frozen=True)
class Row:
    """One thing that a session can be told, and what follows from it in each state."""

    name: str
    why: str
    #: Of the wire contract; None: it says nothing of this.
    section: int | None
    otherwise: str
    #: By groups of states, as they are written.
    exceptions: dict[str, str]
    #: Of a command: the forms of it that are answered alike, and what is sent before them.
    send: tuple[dict[str, Any], ...] = ()
    before: dict[str, Any] | None = None
    #: Of an output: what it means, as the end of "the model ...".
    does: str = ""


class Table:
    """The file, read. Raises ``ValueError`` where it contradicts or repeats itself."""

    def __init__(self, text: str) -> None:
        raw = tomllib.loads(text)
        self.states: dict[str, str] = raw["states"]
        self.over: dict[str, Any] = raw["over"]
        self.connection: dict[str, Any] = raw["connection"]
        self.stale: dict[str, Any] = raw["stale"]
        self.sequences: dict[str, list[str]] = raw["sequences"]
        self.commands = [self._row(**row) for row in raw["command"]]
        self.outputs = [self._row(**row) for row in raw["output"]]

    def expected(self, row: Row, state: str) -> list[str]:
        """The effects of ``row`` in ``state``, one by one."""
        if state in self.over["states"]:
            effects = self.over["commands" if row.send else "outputs"]
        else:
            effects = next(
                (effects for states, effects in row.exceptions.items() if state in states.split()),
                row.otherwise,
            )
        return self.spelled_out(effects)

    def spelled_out(self, effects: str) -> list[str]:
        """A list of effects without ``<names>``."""
        found: list[str] = []
        for effect in effects.split(", ") if effects else ():
            name = effect.strip("<>")
            found += self.spelled_out(", ".join(self.sequences[name])) if name != effect else [effect]
        return found

    def _row(
        self,
        *,
        name: str,
        why: str,
        otherwise: str,
        section: int | None = None,
        send: list[dict[str, Any]] | None = None,
        before: dict[str, Any] | None = None,
        does: str = "",
        **exceptions: str,
    ) -> Row:
        named = [state for states in exceptions for state in states.split()]
        odd = {state for state in named if state not in self.states or named.count(state) > 1}
        odd |= {states for states, effects in exceptions.items() if effects == otherwise}
        if odd:
            raise ValueError(f"{name}: no state, named twice, or no exception: {sorted(odd)}")
        return Row(name, why, section, otherwise, exceptions, tuple(send or ()), before, does)


def read() -> Table:
    """The table as it stands in the repository."""
    return Table(TABLE.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------ the page


def render() -> str:
    """The whole page as Markdown."""
    table = read()
    return "\n".join(
        [
            HEAD,
            "| state | what it is |\n|---|---|",
            *(f"| {name} | {text} |" for name, text in table.states.items()),
            _over(table.over),
            _general(table.connection, _listed(table.connection["commands"])),
            "\nSome events always come together:\n\n| short | in full |\n|---|---|",
            *(f"| *{name}* | {_effects(', '.join(full))} |" for name, full in table.sequences.items()),
            "\n## What a client sends",
            *(_command(row) for row in table.commands),
            "\n## What a model says\n\nUnder the fence of the newest answer, or of the model's own turn.",
            *(_output(row) for row in table.outputs),
            "\n## What a model says too late",
            _general(
                table.stale, f"{_listed(table.stale['outputs'])} of {' or '.join(table.stale['under'])}"
            ),
            "",
        ]
    )


def _over(over: dict[str, Any]) -> str:
    rest = "The tables below are about the other states."
    answer = f"every command is answered by {_effects(over['commands'])}"
    subject = f"When a session is {_listed(over['states'])}, {answer}"
    return f"{_general(over, subject)} {rest}"


def _late(stale: dict[str, Any]) -> str:
    return f"{_listed(stale['outputs'])} of {' or '.join(stale['under'])}"


def _general(rule: dict[str, Any], subject: str) -> str:
    return f"\n{subject}: {rule['why']} (section {rule['section']})."


def _command(row: Row) -> str:
    forms = [f"`{json.dumps(form)}`" for form in row.send]
    before = f", after `{json.dumps(row.before)}`" if row.before else ""
    return f"\n### {row.name}\n\n{', or '.join(forms)}{before}\n\n{_answers(row)}"


def _output(row: Row) -> str:
    return f"\n### {row.name}\n\nThe model {row.does}.\n\n{_answers(row)}"


def _answers(row: Row) -> str:
    lines = [f"| {', '.join(states.split())} | {_effects(what)} |" for states, what in row.exceptions.items()]
    rest = "every other state" if lines else "every state"
    lines.append(f"| {rest} | {_effects(row.otherwise)} |")
    source = f" (section {row.section})" if row.section else ""
    reason = f"{row.why[0].upper()}{row.why[1:]}{source}."
    return "\n".join([reason, "\n| in | effects |\n|---|---|", *lines])


def _effects(effects: str) -> str:
    return ", ".join(map(_effect, effects.split(", "))) if effects else "nothing"


def _effect(effect: str) -> str:
    if name := re.fullmatch("<(.*)>", effect):
        return f"*{name[1]}*"
    if effect.startswith("model."):
        return f"*model: {effect.removeprefix('model.')}*"
    event, *details = effect.split(" ")
    return " ".join([f"`{event}`", *(f"`{detail}`" for detail in details)])


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
