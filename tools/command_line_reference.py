"""Writes docs/reference/command-line.md from the commands themselves.

Owns: the shape of that page, and the meaning of exit codes as told to people.
Does not own: commands and options: they are read from the program's own help.
Here because: a page of options that is kept by hand is wrong after the second change.

Usage: ``python tools/command_line_reference.py`` writes the page.
"""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from counterpoint.cli.main import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "command-line.md"

HEAD = """\
# Command line

<!-- Written by tools/command_line_reference.py; change the commands that it reads instead. -->

| exit code | meaning |
|---|---|
| 0 | done, or stopped as asked |
| 2 | bad configuration or usage; one line on standard error names the key or the option |
| 1 | anything else; standard error says what |

What a command is for goes to standard output; logs and complaints go to standard error.
"""

#: The help is laid out for this many columns, whatever the terminal has in which the page is written.
WIDTH = {"COLUMNS": "80"}


def render() -> str:
    """The whole page as Markdown."""
    names = [command.name for command in app.registered_commands]
    return HEAD + "".join(_section(name) for name in names if name)


def _section(command: str) -> str:
    help_ = CliRunner().invoke(app, [command, "--help"], prog_name="counterpoint", env=WIDTH).output
    return f"\n## {command}\n\n```\n{help_.strip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
