"""The examination: we pass, another server is not blamed for being other, a fault is found by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import CounterpointError
from counterpoint.testing.conformance.check import Needs
from counterpoint.testing.conformance.run import CHECKS, Finding, Outcome, examine
from counterpoint.testing.server import running_server
from counterpoint.testing.streams.rules import RULES

from .disguise import Event, Rewrite, disguised

#: What an official connection is told beside the official API.
ADDED = ("server_event_seq", "resume_token", "attachment_generation")


async def findings(url: str, *names: str, api_key: str | None = None) -> dict[str, Finding]:
    checks = [check for check in CHECKS if not names or check.name in names]
    return {finding.name: finding async for finding in examine(url, api_key, checks)}


def failed(found: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.detail for name, finding in found.items() if finding.outcome is Outcome.FAILED}


def test_every_check_and_rule_has_a_name_of_its_own() -> None:
    names = [check.name for check in CHECKS] + [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    sections = {check.section for check in CHECKS} | {rule.section for rule in RULES}
    assert sections == set("0123456789")


@pytest.mark.logs_traceback
async def test_our_server_passes(tmp_path: Path) -> None:
    """Every check runs, and none is skipped (cases I-01, I-02, I-08, I-10)."""
    keys = tmp_path / "keys"
    keys.write_text(f"{hashlib.sha256(b'sk-good').hexdigest()} tester\n")
    settings = {"transport.handshake_timeout_s": 1, "access.keys_file": str(keys)}
    async with running_server(settings) as server:
        found = await findings(server.url, api_key="sk-good")
    assert failed(found) == {}
    assert [name for name, finding in found.items() if finding.outcome is Outcome.SKIPPED] == []
    assert len(found) == len(CHECKS) + len(RULES)


def official_only(event: Event) -> list[Event]:
    """An official server: none of our additions."""
    return [{key: value for key, value in event.items() if key not in ADDED}]


async def test_a_server_without_extensions_is_asked_for_none() -> None:
    async with running_server() as server, disguised(server.url, official_only, extensions=False) as url:
        found = await findings(url)
    assert failed(found) == {}
    for check in CHECKS:
        skipped = found[check.name].outcome is Outcome.SKIPPED
        assert skipped == (
            check.needs is not Needs.API or check.name in ("key-in-every-place", "no-key-refused")
        )


def on(kind: str, change: Callable[[Event], list[Event]]) -> Rewrite:
    return lambda event: change(event) if event["type"] == kind else [event]


def error_with(**changes: Any) -> Rewrite:
    return on("error", lambda event: [{**event, "error": {**event["error"], **changes}}])


def stock_only(change: Callable[[Event], Event]) -> Rewrite:
    return on("session.created", lambda event: [event if "state" in event["session"] else change(event)])


def _with_threshold(event: Event, threshold: float) -> Event:
    event["session"]["audio"]["input"]["turn_detection"]["threshold"] = threshold
    return event


#: What a server does wrong, and the checks that must notice.
FAULTS: dict[str, tuple[Rewrite, tuple[str, ...]]] = {
    "says no code that clients know": (
        error_with(code="oops"),
        ("nothing-to-cancel", "short-commit-refused", "unknown-event-named"),
    ),
    "says another message": (error_with(message="No."), ("nothing-to-cancel",)),
    "does not say which event was wrong": (error_with(event_id=None), ("unknown-event-named",)),
    "says what went wrong inside": (
        error_with(message="Traceback: ValueError"),
        ("error-reveals-nothing",),
    ),
    "answers twice": (
        on("error", lambda event: [event, {**event, "event_id": "other"}]),
        ("one-error-per-event",),
    ),
    "answers nothing": (on("error", lambda event: []), ("unknown-event-named", "malformed-frames-refused")),
    "acknowledges no update": (on("session.updated", lambda event: []), ("update-acknowledged",)),
    "tells stock clients of its state": (
        stock_only(lambda event: {**event, "duplex": {"epoch": 0}}),
        ("stock-sees-official-only",),
    ),
    "forgets a number": (
        on("session.updated", lambda event: [{**event, "server_event_seq": event["server_event_seq"] + 1}]),
        ("numbers-dense",),
    ),
    "finds turns in another way": (
        on("session.created", lambda event: [_with_threshold(event, 0.9)]),
        ("detection-defaults",),
    ),
    "has no words of the beta": (
        on("session.updated", lambda event: [{**event, "session": {**event["session"], "audio": {}}}]),
        ("beta-shape-accepted",),
    ),
    "takes tools that it does not serve": (
        error_with(code="invalid_event"),
        ("remote-tools-refused",),
    ),
    "adds items twice": (
        on("conversation.item.added", lambda event: [event, {**event, "event_id": "again"}]),
        ("numbers-rise",),
    ),
}

CHECKED = (
    "created-unasked",
    "update-acknowledged",
    "items-made-and-read",
    "extra-body-by-key",
    "nothing-to-cancel",
    "short-commit-refused",
    "unknown-event-named",
    "malformed-frames-refused",
    "detection-defaults",
    "beta-shape-accepted",
    "remote-tools-refused",
)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found_by_name(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.testing.conformance.peer.PATIENCE_S", 1.0)
    rewrite, names = FAULTS[fault]
    async with running_server() as server, disguised(server.url, rewrite) as url:
        found = failed(await findings(url, *CHECKED))
    assert set(names) <= found.keys()


async def test_a_wrong_close_code_is_found() -> None:
    async with running_server() as server, disguised(server.url, recode=lambda _: 1000) as url:
        found = await findings(url, "unknown-model-refused")
    assert found["unknown-model-refused"].detail == "the close code is 1000"


async def test_where_there_is_no_server_there_is_one_error() -> None:
    with pytest.raises(CounterpointError, match="no server at"):
        await findings("ws://127.0.0.1:9/v1/realtime")
