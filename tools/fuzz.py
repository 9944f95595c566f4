"""Sends frames that nobody would write to the server in this tree, from a seed.

Owns: the command line: how many frames, which seed, what is printed.
Does not own: the fuzzer (``counterpoint.testing.fuzz``).
Here because: it runs for minutes, and a server that is installed needs it no more than its tests.

Usage: ``python tools/fuzz.py [--seed N] [--frames N]``. Exit code 1: a failure, and the frames that show it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

import structlog

from counterpoint.testing.fuzz.run import Report, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=1_000_000)
    asked = parser.parse_args()
    # The fuzzer watches the standard library's log, for tracebacks; it is not shown.
    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    logging.getLogger().addHandler(logging.NullHandler())
    began = shown = time.monotonic()

    def progress(report: Report) -> None:
        nonlocal shown
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{report.frames} frames, {report.sessions} sessions", file=sys.stderr, flush=True)

    report = fuzz(asked.seed, asked.frames, progress=progress)
    seconds = time.monotonic() - began
    print(f"seed {asked.seed}: {report.frames} frames in {report.sessions} sessions, {seconds:.0f} s")
    print(
        f"answered by {report.events} events, {sum(report.errors.values())} of them errors: {report.errors}"
    )
    if not report.complaint:
        return 0
    case = report.shortest
    assert case is not None
    print(f"\nsession {case.seed} failed: {report.complaint}")
    print(f"opened as {case.opening}; these frames bring it back:")
    for step in case.steps:
        for frame in step.frames:
            print(f"  {frame!r}")
        if step.wait_ms:
            print(f"  ... {step.wait_ms} ms")
    return 1


if __name__ == "__main__":
    sys.exit(main())
