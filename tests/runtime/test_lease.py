"""The lease: which of the reaper, a disconnect and a resume is right, at exactly which time."""

from __future__ import annotations

import pytest

from counterpoint.errors import ResumeRefused
from counterpoint.limits import LeaseLimits
from counterpoint.runtime.lease import Lease


def lease(idle: float = 300.0, grace: float = 30.0, now: float = 0.0) -> Lease:
    return Lease(LeaseLimits(idle_ttl_s=idle, disconnect_grace_s=grace), now)


class TestIdle:
    def test_it_expires_exactly_then(self) -> None:
        """(invariant 142)"""
        held = lease(now=100.0)
        assert held.deadline() == 400.0
        assert (held.expired(399.999), held.expired(400.0)) == (None, "idle_ttl_expired")

    def test_activity_renews_it(self) -> None:
        held = lease()
        held.touch(200.0)
        assert (held.expired(499.0), held.expired(500.0)) == (None, "idle_ttl_expired")

    def test_zero_turns_it_off(self) -> None:
        held = lease(idle=0.0)
        assert (held.deadline(), held.expired(1e9)) == (None, None)

    def test_no_expiry_while_operations_are_in_flight(self) -> None:
        """(invariant 31)"""
        held = lease()
        held.begin()
        held.begin()
        held.end(10.0)
        assert (held.deadline(), held.expired(1e9)) == (None, None)
        held.end(1000.0)
        assert held.deadline() == 1300.0

    @pytest.mark.parametrize(
        ("server", "own", "expected"),
        [
            (300.0, 10.0, 10.0),
            (300.0, 900.0, 300.0),
            (300.0, None, 300.0),
            (0.0, 10.0, 10.0),
            (0.0, None, None),
        ],
    )
    def test_a_session_may_shorten_it_and_not_lengthen_it(
        self, server: float, own: float | None, expected: float | None
    ) -> None:
        held = lease(idle=server)
        held.limit_idle(own)
        assert held.deadline() == expected

    def test_a_session_may_take_its_own_limit_back(self) -> None:
        held = lease()
        held.limit_idle(10.0)
        held.limit_idle(None)
        assert held.deadline() == 300.0


class TestGrace:
    def test_it_expires_exactly_then(self) -> None:
        held = lease()
        assert held.detach(1, 100.0)
        assert (held.expired(129.999), held.expired(130.0)) == (None, "disconnect_grace_expired")

    def test_a_second_report_does_not_restart_it(self) -> None:
        held = lease()
        held.detach(1, 100.0)
        assert not held.detach(1, 120.0)
        assert held.deadline() == 130.0

    def test_operations_in_flight_do_not_hold_it_off(self) -> None:
        held = lease()
        held.begin()
        held.detach(1, 100.0)
        assert held.expired(130.0) == "disconnect_grace_expired"

    def test_output_of_a_response_that_goes_on_does_not_hold_it_off(self) -> None:
        held = lease()
        held.detach(1, 100.0)
        held.touch(129.0)
        assert held.deadline() == 130.0

    def test_who_left_has_all_of_it_even_where_idleness_is_shorter(self) -> None:
        held = lease(idle=5.0)
        held.detach(1, 4.0)
        assert held.deadline() == 34.0

    def test_a_report_about_an_older_generation_comes_too_late(self) -> None:
        """(invariant 141)"""
        held = lease()
        held.resume(1, 10.0)
        assert not held.detach(1, 11.0)
        assert held.attached

    def test_zero_means_that_a_disconnect_ends_the_session(self) -> None:
        held = lease(grace=0.0)
        assert not held.resumable
        held.detach(1, 10.0)
        assert held.expired(10.0) == "disconnect_grace_expired"


class TestResume:
    def test_it_swaps_the_generation_and_attaches(self) -> None:
        held = lease()
        held.detach(1, 10.0)
        assert held.resume(1, 20.0) == 2
        assert (held.attached, held.deadline()) == (True, 320.0)

    def test_it_takes_over_from_a_connection_that_is_attached(self) -> None:
        held = lease()
        assert (held.resume(1, 1.0), held.resume(2, 2.0)) == (2, 3)

    def test_of_two_with_one_expectation_the_second_loses(self) -> None:
        """(invariant 141)"""
        held = lease()
        held.resume(1, 1.0)
        assert _refusal(held, 1) == "session_resume_conflict"
        assert held.generation == 2

    def test_where_resume_is_off_it_is_refused(self) -> None:
        assert _refusal(lease(grace=0.0), 1) == "unsupported_session_resume"

    def test_a_session_that_ended_is_not_resumed(self) -> None:
        held = lease()
        held.finish()
        assert _refusal(held, 1) == "session_resume_expired"

    def test_the_generation_of_a_restored_session_goes_on(self) -> None:
        held = Lease(LeaseLimits(), 0.0, generation=7)
        assert held.resume(7, 1.0) == 8


class TestEnd:
    def test_one_ends_it_whoever_is_first(self) -> None:
        """(invariant 138)"""
        held = lease()
        assert [held.finish(), held.finish()] == [True, False]

    def test_after_it_nothing_expires_and_nothing_changes(self) -> None:
        held = lease()
        held.finish()
        held.touch(10.0)
        assert not held.detach(1, 10.0)
        assert (held.deadline(), held.expired(1e9), held.attached) == (None, None, False)


def _refusal(held: Lease, expected: int) -> str:
    with pytest.raises(ResumeRefused) as refused:
        held.resume(expected, 5.0)
    return refused.value.code
