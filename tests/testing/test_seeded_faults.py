"""Each of ten known faults, put into the server, is found by the simulator and told as a short trace."""

from __future__ import annotations

import pytest

from counterpoint.testing.runs import shortest, simulate

from .faults import FAULTS, Fault, wrong_lease_generation_given_back

#: Seeds of 5,000 steps within which each must be found; how fast each is: docs/explanation/simulator.md.
MOST_SEEDS = 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert any(simulate(seed, 5000).violation is not None for seed in range(1, MOST_SEEDS + 1))


def test_what_is_told_is_short_and_fails_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_lease_generation_given_back(monkeypatch)
    run = simulate(1, 5000)
    assert run.violation is not None
    least = shortest(run, 20.0)
    assert least.violation is not None
    assert least.violation.kind == run.violation.kind
    assert len(least.operations) <= min(5, len(run.operations))
    assert len(least.trace) == len(least.operations)
