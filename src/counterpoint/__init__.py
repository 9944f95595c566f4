"""Counterpoint: the session layer for full-duplex voice models.

Owns: the version.
Does not own: anything else; see ``docs/explanation/design.md`` for the layers and where each thing lives.
Here because: a package needs one name that every layer can import.
"""

__version__ = "0.1.0"
