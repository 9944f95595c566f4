"""``counterpoint install-voice``: fetch the speech models that the default model uses.

Owns: the command's arguments, and its progress on the terminal.
Does not own: what is installed and from where (``models.voice.install``).
Here because: the models are too large to come along with the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def install_voice(
    directory: Annotated[
        Path | None, typer.Option(help="Where the models go. Default: the user's data directory.")
    ] = None,
) -> None:
    """Install the embedded voice's models, if they are not there yet."""
    from counterpoint.models.voice.install import install

    install(directory, print)
