"""``counterpoint version``.

Owns: printing the version.
Does not own: the version (``counterpoint.__version__``).
Here because: every command has a module.
"""

from __future__ import annotations

import counterpoint


def version() -> None:
    """Print the version."""
    print(counterpoint.__version__)
