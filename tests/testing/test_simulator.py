"""The simulator: what it finds is there, what it finds it finds again, and the server comes through it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from counterpoint.testing.invariants.violation import Violation
from counterpoint.testing.operations import Dice, Kind, Operation, draw
from counterpoint.testing.runs import replay, simulate

#: A run from a seed in a process of its own.
_DIGEST = """
from counterpoint.testing.runs import simulate
run = simulate({seed}, {steps})
print(run.digest, run.steps, run.violation)
"""


@pytest.mark.parametrize("seed", range(1, 7))
def test_the_server_comes_through(seed: int) -> None:
    """Groups A, B, C, K and M under every fault (invariants 8-14, 31-33, 90-100, 121-127, 137-145)."""
    run = simulate(seed, 2000)
    assert run.violation is None, "\n".join([str(run.violation), *run.trace[-20:]])
    assert run.steps >= 2000


def test_a_run_has_what_it_is_meant_to_have() -> None:
    """A simulator that does nothing finds nothing."""
    counts = sum((simulate(seed, 3000).counts for seed in (11, 12, 13)), start=simulate(10, 3000).counts)
    for kind in ("event", "gap", "resume", "session"):
        assert counts[kind] > 3, kind


def test_every_fault_happens() -> None:
    faults = simulate(14, 1).faults
    for seed in range(14, 20):
        faults += simulate(seed, 4000).faults
    expected = """takeover, slow consumer, clock jump, lease store away, state lost by a client,
    reply to a resume lost, command on a replaced connection, task of a connection cancelled,
    connection reset, connection half-open, connection closed with 1000, connection closed with 1001,
    script fail_at_chunk, script hang, script stall_first_ms, script ignore_cancel_ms,
    script cleanup_delay_ms, script hang_on_close, script fail_open, script open_delay_ms"""
    assert not set(" ".join(expected.split()).split(", ")) - set(faults)


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    """Byte for byte, whatever order sets of strings have there."""
    told = {_told(hash_seed, seed=21, steps=2500) for hash_seed in ("0", "1", "4242")}
    assert len(told) == 1
    assert told != {_told("0", seed=22, steps=2500)}


def _told(hash_seed: str, *, seed: int, steps: int) -> str:
    return subprocess.run(
        [sys.executable, "-c", _DIGEST.format(seed=seed, steps=steps)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_operations_are_the_whole_run() -> None:
    first = simulate(23, 1500)
    again = replay(23, first.operations)
    assert (again.digest, again.steps, again.story) == (first.digest, first.steps, first.story)


def test_any_part_of_a_run_is_a_run() -> None:
    """Otherwise nothing could be left out."""
    operations = simulate(24, 1500).operations
    for part in (operations[::2], operations[1::3], operations[400:], []):
        assert replay(24, part).violation is None


def test_a_number_makes_the_same_choices_whatever_came_before() -> None:
    dice = Dice(2**40 + 12345)
    rolls = [dice.roll(sides) for sides in (2, 7, 100)]
    again = Dice(2**40 + 12345)
    assert rolls == [again.roll(sides) for sides in (2, 7, 100)]
    assert all(0 <= roll < sides for roll, sides in zip(rolls, (2, 7, 100), strict=True))


def test_every_kind_of_operation_is_drawn() -> None:
    drawn = draw(1, 4)
    kinds = {next(drawn).kind for _ in range(20_000)}
    assert kinds == set(Kind)


def test_a_trace_says_what_an_operation_is() -> None:
    assert str(Operation(Kind.WAIT, amount=20, turns=2)) == "time passes: 20 ms; 2 turns of the loop"
    assert str(Operation(Kind.READ, 1, 2, 8)) == (
        "client 1: reads frames: up to 8 (its last connection but 2)"
    )


def test_two_sightings_of_one_fault_are_of_one_kind() -> None:
    first = Violation("CASE-INV-2", "response.done of resp_12ab-4, which is over")
    second = Violation("CASE-INV-2", "response.done of resp_99ff-z1, which is over")
    other = Violation("CASE-INV-2", "['resp_12ab-4', 'resp_12ab-5'] never ended")
    assert first.kind == second.kind != other.kind


def test_the_command_prints_figures() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "counterpoint", "simulate", "--seed", "3", "--steps", "300", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    figures = json.loads(done.stdout)
    assert figures["seed"] == 3
    assert figures["steps"] >= 300
    assert figures["violation"] is None
    assert set(figures) >= {"events", "resumes", "gaps", "faults", "digest"}
    assert done.stderr == "", "progress is for terminals"
