"""Fuzzing: the server answers whatever it is sent, and a fault in it is brought down to its cause."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.models.scripted.plugin import ScriptedPlugin
from counterpoint.models.scripted.session import ScriptedSession
from counterpoint.plugins.contract import StepInput
from counterpoint.protocol import codec
from counterpoint.protocol.decoding import READERS
from counterpoint.session.out import Out
from counterpoint.testing.fuzz.frames import Frames
from counterpoint.testing.fuzz.mutation import garbage, mutated
from counterpoint.testing.fuzz.run import Report, fuzz, replay


@pytest.mark.timeout(300)
def test_a_short_run_finds_nothing() -> None:
    """The long one is ``make fuzz``."""
    report = fuzz(seed=1, frames=20_000)
    assert report.complaint == "", f"{report.complaint}\n{report.shortest}"
    assert report.frames >= 20_000
    assert len(report.errors) > 15, "hardly anything was refused"
    assert report.events > report.frames


def test_the_same_seed_sends_the_same_frames() -> None:
    runs = [fuzz(seed=3, frames=500) for _ in range(2)]
    assert runs[0] == runs[1]


def test_valid_frames_are_valid_and_of_every_kind() -> None:
    frames = Frames(random.Random(5))
    accepted: set[str] = set()
    codes: set[str] = set()
    for event in itertools.islice(iter(frames.valid, None), 3000):
        try:
            codec.decode(json.dumps(event), extended=True)
        except ProtocolError as refusal:
            codes.add(refusal.code)
        else:
            accepted.add(event["type"])
    assert accepted == READERS.keys()
    assert codes == {"unknown_event", "unsupported"}, "the others are well-formed"


def test_what_is_broken_is_mostly_refused_and_sometimes_not() -> None:
    rng = random.Random(7)
    frames = Frames(rng)
    refused = 0
    for _ in range(3000):
        try:
            codec.decode(mutated(frames.valid(), rng))
        except ProtocolError:
            refused += 1
    assert 1500 < refused < 2900
    assert any(isinstance(garbage(rng), bytes) for _ in range(20))


# --------------------------------------------------------------------------- a server with a fault


class Clumsy(ScriptedPlugin):
    """Its sessions do not survive an input of an odd number of samples."""

    def create_session(self, session_id: str) -> ScriptedSession:
        made = super().create_session(session_id)
        push = made.push

        async def clumsy(step: StepInput) -> None:
            if len(step.audio) // 2 % 2:
                raise RuntimeError("an odd number of samples")
            await push(step)

        made.push = clumsy  # type: ignore[method-assign]
        return made


def until_found(seed: int = 1, **options: Any) -> Report:
    report = fuzz(seed, 20_000, **options)
    assert report.complaint
    assert report.case is not None
    assert report.shortest is not None
    return report


@pytest.mark.logs_traceback
def test_a_session_that_ends_is_found_and_shortened_to_what_ended_it() -> None:
    report = until_found(plugin=lambda: Clumsy({}))
    assert report.complaint.startswith("connection-closed")
    assert report.shortest is not None
    assert report.case is not None
    assert len(report.shortest.frames) < len(report.case.frames)
    assert any("input_audio_buffer.append" in str(frame) for frame in report.shortest.frames)
    assert len(report.shortest.frames) <= 4
    found = replay(report.shortest, lambda: Clumsy({}))
    assert any(complaint.startswith("connection-closed") for complaint in found), "it can be brought back"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The machine's way of refusing, broken as the test says."""
    refuse = Out.refuse

    def broken_refuse(out: Out, error: ProtocolError, command: Any) -> None:
        request.param(refuse, out, error, command)

    monkeypatch.setattr(Out, "refuse", broken_refuse)


def silent(refuse: Any, out: Out, error: ProtocolError, command: Any) -> None:
    pass


def twice(refuse: Any, out: Out, error: ProtocolError, command: Any) -> None:
    refuse(out, error, command)
    refuse(out, error, command)


def talkative(refuse: Any, out: Out, error: ProtocolError, command: Any) -> None:
    refuse(out, ProtocolError(error.code, 'File "/home/me/counterpoint/session.py", line 3'), command)


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [(silent, "no-effect"), (twice, "answered-twice"), (talkative, "error-reveals-nothing")],
    indirect=["broken"],
)
def test_an_answer_that_is_missing_doubled_or_tells_too_much_is_found(broken: None, complaint: str) -> None:
    report = until_found()
    assert report.complaint.partition(":")[0] == complaint
    assert report.shortest is not None
    assert len(report.shortest.frames) <= 3
