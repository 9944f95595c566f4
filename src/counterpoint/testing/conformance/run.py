"""Runs all checks against one server.

Owns: asking what is offered, running checks side by side, judging the recordings, the findings.
Does not own: any check or rule, how findings are shown (``cli.conformance``).
Here because: the command and the tests of this repository run the same examination.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from types import ModuleType

import aiohttp

from counterpoint.errors import CounterpointError
from counterpoint.testing.streams.rules import RULES, check_session
from counterpoint.testing.streams.stream import Stream, Violation, joined

from .check import Check, Needs
from .checks import (
    dialects,
    handshake,
    interruption,
    lifetime,
    listening,
    mistakes,
    playback,
    responses,
    resume,
    session,
)
from .outcome import Failed, NotOffered
from .talk import refusal, script
from .target import Offer, Target

_MODULES: tuple[ModuleType, ...] = (
    handshake,
    session,
    resume,
    listening,
    responses,
    interruption,
    playback,
    mistakes,
    lifetime,
    dialects,
)

#: Every check, in the order of the contract.
CHECKS: tuple[Check, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Check)
)

#: Checks at a time. Most of them wait most of the time.
_SIDE_BY_SIDE = 6

#: One check; some wait for a timeout of the server.
_CHECK_S = 120.0


class Outcome(enum.StrEnum):
    OK = "ok"
    FAILED = "FAILED"
    SKIPPED = "skipped"  #: the server does not offer it, or it did not come up


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one check or rule. ``detail``: what is wrong, or why it was skipped."""

    name: str
    section: str
    says: str
    outcome: Outcome
    detail: str = ""


async def examine(
    url: str, api_key: str | None = None, checks: Iterable[Check] = CHECKS
) -> AsyncIterator[Finding]:
    """Findings about the server at ``url``, in order, as they are made.

    Raises ``CounterpointError`` if there is no server, or it lets nobody in.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=10)) as http:
        target = Target(http, url, api_key)
        target.offer = await _offer(target)
        slots = asyncio.Semaphore(_sessions_at_once(target.offer))
        beside, alone = _apart(checks)
        running = [asyncio.create_task(_run(check, target, slots), name=check.name) for check in beside]
        try:
            for task in running:
                yield await task
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        for check in alone:
            yield await _run(check, target, slots)
        for finding in _judge(target.streams):
            yield finding


def _apart(checks: Iterable[Check]) -> tuple[list[Check], list[Check]]:
    """Those that run beside others, and those that run alone after them."""
    every = list(checks)
    return [check for check in every if not check.alone], [check for check in every if check.alone]


async def _offer(target: Target) -> Offer:
    try:
        async with target.session(extended=True) as (peer, shown):
            if "capabilities" not in shown:
                return Offer()
            offer = Offer(shown["capabilities"])
            try:
                unknown = {"type": "session.update", "session": script(no_such_key=1)}
                error = await refusal(peer, unknown)
            except Failed:
                return offer
            scripted = error.get("param") == "session.extra_body.script.no_such_key"
            return Offer(shown["capabilities"], scripted)
    except Failed as failure:
        raise CounterpointError(f"no session at {target.url}: {failure}") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise CounterpointError(f"no server at {target.url}: {error}") from error


def _sessions_at_once(offer: Offer) -> int:
    """Two sessions is the most that one check holds."""
    most = (offer.capabilities or {}).get("max_sessions")
    return max(1, min(_SIDE_BY_SIDE, most // 2)) if isinstance(most, int) else _SIDE_BY_SIDE


async def _run(check: Check, target: Target, slots: asyncio.Semaphore) -> Finding:
    offer = target.offer
    offered = {
        Needs.API: True,
        Needs.EXTENSIONS: offer.capabilities is not None,
        Needs.SCRIPT: offer.scripted,
    }
    if not offered[check.needs]:
        return _finding(check, Outcome.SKIPPED, f"the server does not offer {check.needs.value}")
    async with slots:
        try:
            async with asyncio.timeout(_CHECK_S):
                await check.run(target)
        except NotOffered as reason:
            return _finding(check, Outcome.SKIPPED, str(reason))
        except Failed as failure:
            return _finding(check, Outcome.FAILED, str(failure))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return _finding(check, Outcome.FAILED, f"an event has not the form it should have: {error!r}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _finding(check, Outcome.FAILED, f"the connection failed: {error!r}")
    return _finding(check, Outcome.OK)


def _finding(check: Check, outcome: Outcome, detail: str = "") -> Finding:
    return Finding(check.name, check.section, check.says, outcome, detail)


def _judge(streams: list[Stream]) -> list[Finding]:
    """The rules over everything that was recorded."""
    sessions = _by_session(streams)
    found: dict[str, list[Violation]] = {rule.name: [] for rule in RULES}
    for connections in sessions:
        for violation in check_session(connections):
            found[violation.rule.name].append(violation)
    findings: list[Finding] = []
    for rule in RULES:
        seen = sum(rule.seen(joined(connections)) for connections in sessions)
        broken = found[rule.name]
        if broken:
            detail = f"{broken[0].reason}; {len(broken)} times in {seen} events"
            findings.append(Finding(rule.name, rule.section, rule.says, Outcome.FAILED, detail))
        elif seen:
            findings.append(Finding(rule.name, rule.section, rule.says, Outcome.OK))
        else:
            detail = "nothing came up that it is about"
            findings.append(Finding(rule.name, rule.section, rule.says, Outcome.SKIPPED, detail))
    return findings


def _by_session(streams: list[Stream]) -> list[list[Stream]]:
    """The connections of each session together; one that got no session stands alone."""
    sessions: dict[object, list[Stream]] = {}
    for stream in streams:
        first = next(stream.of("session.created", "session.resumed"), None)
        session_id = first["session"].get("id") if first is not None else None
        sessions.setdefault(session_id or id(stream), []).append(stream)
    return list(sessions.values())
