"""``counterpoint conformance``: does a server keep the promises of the Realtime API, and of the extensions?

Owns: the command's arguments, one line for each finding, the exit code.
Does not own: the examination (``testing.conformance``).
Here because: whoever runs or writes a server wants the answer without writing a client.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpoint.testing.conformance.run import Finding


def conformance(
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as ws://127.0.0.1:8099/v1/realtime.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    api_key: Annotated[
        str | None, typer.Option(envvar="OPENAI_API_KEY", show_envvar=False, help="Key to connect with.")
    ] = None,
) -> None:
    """Check a Realtime server, ours or another: one line per check, exit code 1 if one failed.

    What a server does not offer is skipped: the session extensions, or what only the scripted model shows.
    """
    import asyncio
    import dataclasses

    findings = asyncio.run(_examine(url, api_key, lines=not as_json))
    failed = sum(finding.outcome == "FAILED" for finding in findings)
    if as_json:
        checks = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"url": url, "passed": not failed, "checks": checks}))
    else:
        counts = {name: sum(f.outcome == name for f in findings) for name in ("ok", "FAILED", "skipped")}
        print(", ".join(f"{count} {name}" for name, count in counts.items()))
    raise typer.Exit(1 if failed else 0)


async def _examine(url: str, api_key: str | None, *, lines: bool) -> list[Finding]:
    from counterpoint.testing.conformance.run import examine

    findings: list[Finding] = []
    async for finding in examine(url, api_key):
        findings.append(finding)
        if lines:
            print(_line(finding), flush=True)
    return findings


def _line(finding: Finding) -> str:
    line = f"{finding.outcome:<8} {finding.section}  {finding.name:<30} {finding.detail or finding.says}"
    return line.rstrip()
