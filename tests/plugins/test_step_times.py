"""The 95th percentile of recent steps."""

from __future__ import annotations

from counterpoint.plugins.step_times import WINDOW_S, StepTimes


def test_few_steps_make_no_percentile() -> None:
    times = StepTimes()
    for step in range(19):
        times.add(step * 0.08, 0.01)
    assert times.p95_ms(2.0) is None


def test_one_slow_step_in_a_hundred_does_not_count_and_ten_do() -> None:
    times = StepTimes()
    for step in range(100):
        times.add(step * 0.08, 0.05 if step == 50 else 0.01)
    assert times.p95_ms(8.0) == 10.0
    for step in range(10):
        times.add(8.0 + step * 0.08, 0.05)
    assert times.p95_ms(9.0) == 50.0


def test_steps_of_sessions_that_are_gone_are_forgotten() -> None:
    times = StepTimes()
    for _ in range(50):
        times.add(1.0, 0.2)
    assert times.p95_ms(1.0 + WINDOW_S) == 200.0
    assert times.p95_ms(1.1 + WINDOW_S) is None
