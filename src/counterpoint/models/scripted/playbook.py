"""Which script serves which response of a session.

Owns: the scripts in force and how many answers and inputs they have served.
Does not own: what the keys of a script are (``script``).
Here because: "one per response, with the last repeating" is the only state that a script has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .script import Lifecycle, Script, lifecycle_of, read_scripts


class Playbook:
    """The scripts of one session. Other scripts start from their first; the same ones sent again go on."""

    def __init__(self) -> None:
        self._scripts: tuple[Script, ...] = ()
        self._answers = 0
        self._inputs = 0

    def read(self, extra: Mapping[str, Any]) -> None:
        """Take the scripts of ``extra_body``. Raises ``ProtocolError`` for the key at fault."""
        scripts = read_scripts(extra)
        if scripts != self._scripts:
            self._scripts = scripts
            self._answers = self._inputs = 0

    def next_for_answer(self, nth: int = 1) -> Script | None:
        """The script of the next response; None where there is no script.

        ``nth``: it is at least that many; the ones before it may have been called off on their way here.
        """
        self._answers = max(self._answers + 1, nth)
        return _pick(self._scripts, self._answers)

    def next_for_input(self) -> Script | None:
        """The script of the next committed input, for its transcript: the n-th input by the n-th script."""
        self._inputs += 1
        return _pick(self._scripts, self._inputs)

    def lifecycle(self, default: Lifecycle) -> Lifecycle:
        return lifecycle_of(self._scripts, default)


def _pick(scripts: Sequence[Script], number: int) -> Script | None:
    return scripts[min(number, len(scripts)) - 1] if scripts else None
