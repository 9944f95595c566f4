"""The longest life of a session, and its announcement (case A-15)."""

from __future__ import annotations

import pytest

from counterpoint.limits import Limits
from counterpoint.protocol import events as ev
from counterpoint.session.inputs import CloseRequested

from .driver import Driver, speak


@pytest.mark.parametrize(("most", "notice"), [(15.0, 1.5), (3600.0, 30.0), (300.0, 30.0), (299.0, 29.9)])
def test_the_end_is_announced_and_then_comes(most: float, notice: float) -> None:
    driver = Driver(limits=Limits(max_session_s=most))
    driver.wait(most - notice - 0.01)
    assert driver.sent == []
    driver.wait(0.02)
    (expiring,) = driver.of(ev.SessionExpiring)
    assert expiring.reason == "max_duration"
    assert expiring.in_ms == pytest.approx(notice * 1000, abs=20)
    driver.wait(notice)
    assert driver.clean_up().reason == "max_duration"
    assert isinstance(driver.events[-1], ev.SessionExpired)


def test_a_response_that_runs_does_not_prolong_it() -> None:
    driver = Driver(limits=Limits(max_session_s=10))
    driver.ask()
    driver.wait(9.99)
    driver.model(speak("one ", 100))
    driver.wait(0.02)
    assert [response.status for response in driver.done] == ["cancelled"]
    driver.clean_up()


def test_zero_is_for_ever() -> None:
    driver = Driver()
    assert driver.machine.next_deadline() is None


def test_a_session_that_ended_otherwise_announces_nothing() -> None:
    driver = Driver(limits=Limits(max_session_s=10))
    driver.post(CloseRequested("admin"))
    driver.clean_up()
    driver.wait(60)
    assert driver.types == ["session.closed"]
