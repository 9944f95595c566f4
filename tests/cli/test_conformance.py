"""``counterpoint conformance``: one line per check, JSON, exit codes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from typer.testing import CliRunner

from counterpoint.cli.main import app
from counterpoint.testing.conformance import run
from counterpoint.testing.conformance.run import Finding, Outcome

FINDINGS = (
    Finding("created-unasked", "1", "session.created comes first", Outcome.OK),
    Finding("resume-replays", "3", "a resume sends what was missed", Outcome.SKIPPED, "not offered"),
)
BAD = Finding("epochs-rise", "9", "epochs rise", Outcome.FAILED, "epoch 1 comes after epoch 2")


def conformance(
    monkeypatch: pytest.MonkeyPatch, *found: Finding, arguments: tuple[str, ...] = ()
) -> tuple[int, str]:
    async def examine(url: str, api_key: str | None) -> AsyncIterator[Finding]:
        assert (url, api_key) == ("ws://host/v1/realtime", "sk-1")
        for finding in found:
            yield finding

    monkeypatch.setattr(run, "examine", examine)
    done = CliRunner().invoke(app, ["conformance", "ws://host/v1/realtime", "--api-key", "sk-1", *arguments])
    return done.exit_code, done.stdout


def test_one_line_per_check_and_exit_code_0(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = conformance(monkeypatch, *FINDINGS)
    assert code == 0
    first, second, last = said.splitlines()
    assert first.split() == ["ok", "1", "created-unasked", "session.created", "comes", "first"]
    assert second.split() == ["skipped", "3", "resume-replays", "not", "offered"]
    assert last == "1 ok, 0 FAILED, 1 skipped"


def test_a_failure_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = conformance(monkeypatch, *FINDINGS, BAD)
    assert code == 1
    assert "FAILED   9  epochs-rise" in said
    assert "epoch 1 comes after epoch 2" in said


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = conformance(monkeypatch, *FINDINGS, BAD, arguments=("--json",))
    assert code == 1
    report = json.loads(said)
    assert (report["url"], report["passed"]) == ("ws://host/v1/realtime", False)
    assert report["checks"][2]["outcome"] == "FAILED"
