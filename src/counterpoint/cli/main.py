"""``counterpoint``: the table of commands, and how a command fails.

Owns: which commands there are; one line on standard error and the exit code for what went wrong.
Does not own: any command (one module each).
Here because: exit codes are a promise of the whole program (wire contract, section 12).

A command's module imports only typer and the standard library at its top, and what it runs inside its
function: ``--help`` and ``version`` stay fast, and extras are asked for only by the commands that use them.
"""

from __future__ import annotations

import sys

import typer

from counterpoint.errors import ConfigurationError, CounterpointError

from .bench import bench
from .conformance import conformance
from .install_voice import install_voice
from .serve import serve
from .simulate import simulate
from .talk import talk
from .version import version

EXIT_FAILED = 1
EXIT_CONFIGURATION = 2

app = typer.Typer(
    name="counterpoint",
    help="The session layer for full-duplex voice models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve)
app.command("bench")(bench)
app.command("conformance")(conformance)
app.command("install-voice")(install_voice)
app.command("simulate")(simulate)
app.command("talk")(talk)
app.command("version")(version)


def main() -> None:
    """Run the command that the arguments name, and exit."""
    try:
        app()
    except CounterpointError as error:
        print(f"counterpoint: {error}", file=sys.stderr)
        sys.exit(EXIT_CONFIGURATION if isinstance(error, ConfigurationError) else EXIT_FAILED)
