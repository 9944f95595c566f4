"""``counterpoint simulate``: a server and its clients on a virtual clock, everything decided by a seed.

Owns: the command's arguments, progress on a terminal, the form of what is printed.
Does not own: the run, its checks, shortening a failure (``testing.runs``).
Here because: a failure that somebody found must be anybody's to see again, with one number.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from counterpoint.testing.runs import Run

#: Longest that a failing run is shortened.
_SHORTEN_S = 60.0


def simulate(
    seed: Annotated[int, typer.Option(help="Decides everything that happens.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Frames delivered and stretches of time.")] = 5000,
    sessions: Annotated[int, typer.Option(min=1, help="Clients at the same time.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print figures as JSON.")] = False,
) -> None:
    """Run a simulated server with every kind of fault, and check it after every step."""
    from counterpoint.testing.runs import shortest
    from counterpoint.testing.runs import simulate as run_seed

    began = time.perf_counter()
    run = run_seed(seed, steps, clients=sessions, progress=_progress(steps))
    seconds = time.perf_counter() - began
    if run.violation is not None:
        run = shortest(run, _SHORTEN_S)
    if as_json:
        print(json.dumps(_figures(run, seconds)))
    else:
        _print_report(run, seconds)
    if run.violation is not None:
        raise typer.Exit(1)


def _progress(steps: int) -> Any:
    """A line that is written over, where somebody sees it."""
    shown = sys.stderr.isatty()

    def progress(made: int) -> None:
        if shown:
            print(f"\r{made:>9} of {steps} steps", end="", file=sys.stderr, flush=True)

    return progress


def _figures(run: Run, seconds: float) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "seed": run.seed,
        "sessions": run.clients,
        "steps": run.steps,
        "seconds": round(seconds, 3),
        "events": run.counts["event"],
        "resumes": run.counts["resume"],
        "gaps": run.counts["gap"],
        "faults": dict(sorted(run.faults.items())),
        "digest": run.digest,
        "violation": None,
    }
    if run.violation is not None:
        figures["violation"] = {"invariant": run.violation.invariant, "reason": run.violation.reason}
        figures["trace"] = run.trace
    return figures


def _print_report(run: Run, seconds: float) -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if run.violation is not None:
        print(f"seed {run.seed}, {run.clients} sessions: {run.violation}")
        print(f"the shortest trace found, {len(run.operations)} operations:")
        for line in run.trace:
            print(f"  {line}")
        return
    print(f"seed {run.seed}: {run.steps} steps in {seconds:.1f} s, no violation")
    print(f"  {run.counts['event']} events, {run.counts['resume']} resumes, {run.counts['gap']} gaps")
    for kind, count in sorted(run.faults.items()):
        print(f"  {count:>7}  {kind}")
    print(f"  digest {run.digest}")
