"""What a benchmark found, and what was aimed at.

Owns: ``Figure`` and how a list of them is printed.
Does not own: measuring (the ``bench_*`` modules).
Here because: every benchmark answers in the same form, for people and for ``--json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. ``at_most`` and ``at_least`` are aims, not verdicts: machines differ."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the aim was met; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        if self.at_least is not None:
            return self.value >= self.at_least
        return None

    def as_json(self) -> dict[str, Any]:
        aims = {"at_most": self.at_most, "at_least": self.at_least}
        shown = {key: value for key, value in aims.items() if value is not None}
        return {"name": self.name, "value": round(self.value, 4), "unit": self.unit, **shown, "met": self.met}


def table(figures: Sequence[Figure]) -> str:
    """One line a figure: name, value, aim, and whether it was met."""
    width = max((len(figure.name) for figure in figures), default=0)
    return "\n".join(_line(figure, width) for figure in figures)


def _line(figure: Figure, width: int) -> str:
    line = f"{figure.name:<{width}}  {figure.value:>10.4g} {figure.unit:<6}"
    if figure.met is None:
        return line.rstrip()
    aim = f"at most {figure.at_most:g}" if figure.at_most is not None else f"at least {figure.at_least:g}"
    return f"{line} {aim:<16} {'met' if figure.met else 'NOT MET'}"
