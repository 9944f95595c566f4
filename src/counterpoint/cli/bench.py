"""``counterpoint bench``: measure this machine.

Owns: which benchmarks there are, running them one after the other, printing what they found.
Does not own: any measurement (the ``bench_*`` modules).
Here because: timings belong into a benchmark and not into tests; ratios of things measured in one run can be
compared between machines, absolute times cannot.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .figures import Figure, table

#: Module of each benchmark; it has ``measure(progress) -> list[Figure]``.
_BENCHMARKS = {"echo": ".bench_echo", "delivery": ".bench_delivery", "voice": ".bench_voice"}


def bench(
    what: Annotated[
        list[str] | None, typer.Argument(metavar=f"[{'|'.join(_BENCHMARKS)}]...", help="Default: all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure this machine: ratios against a baseline of the same run, and what was aimed at."""
    chosen = what or list(_BENCHMARKS)
    unknown = [name for name in chosen if name not in _BENCHMARKS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(_BENCHMARKS)}", param_hint="WHAT")
    found: dict[str, Sequence[Figure]] = {}
    for name in chosen:
        _say(f"{name} ...")
        module = importlib.import_module(_BENCHMARKS[name], __package__)
        found[name] = module.measure(_say)
        if not as_json:
            print(f"\n{name}\n{table(found[name])}\n")
    if as_json:
        print(json.dumps({name: [figure.as_json() for figure in figures] for name, figures in found.items()}))


def _say(line: str) -> None:
    """Progress, on standard error: standard output is for the figures."""
    print(line, file=sys.stderr, flush=True)
