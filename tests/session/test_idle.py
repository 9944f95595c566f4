"""``idle_timeout_ms``: a silence after an answer that lasts too long is answered."""

from __future__ import annotations

from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import AckPlayback
from counterpoint.session.inputs import Attached, Detached

from .checks import check
from .driver import Driver, vad


def answered(ms: int = 2000) -> Driver:
    """Right behind an answer whose audio lasts for ``ms``."""
    driver = Driver(vad(idle_timeout_ms=5000))
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.answer("hello", ms)
    return driver


def test_silence_is_measured_from_the_end_of_playback() -> None:
    driver = answered(2000)
    driver.wait(6.9)
    assert driver.of(ev.InputTimeout) == []
    driver.wait(0.2)
    (timeout,) = driver.of(ev.InputTimeout)
    assert (timeout.audio_start_ms, timeout.audio_end_ms) == (0, 1200)
    assert driver.types[-5:] == [
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    assert driver.of(ev.InputCommitted)[-1].item_id == timeout.item_id
    assert driver.history()[-1] == ("user", "")
    check(driver.sent)


def test_it_happens_again_after_the_next_answer_and_not_before() -> None:
    driver = answered(1000)
    driver.wait(60)
    assert len(driver.of(ev.InputTimeout)) == 1
    driver.answer("still there?", 1000)
    driver.wait(6.1)
    assert len(driver.of(ev.InputTimeout)) == 2


def test_speech_stops_the_clock() -> None:
    driver = answered(1000)
    driver.wait(4.0)
    driver.say(600, 0.9)
    driver.wait(0.5)
    assert driver.of(ev.InputTimeout) == []
    driver.wait(60)
    assert driver.of(ev.InputTimeout) == [], "the turn has not been answered yet"


def test_sessions_that_answer_nothing_by_themselves_stay_silent() -> None:
    driver = Driver(vad(idle_timeout_ms=5000, create_response=False))
    driver.ask()
    driver.answer("hello", 500)
    driver.wait(60)
    assert driver.of(ev.InputTimeout) == []


def test_before_the_first_answer_nobody_is_hurried() -> None:
    driver = Driver(vad(idle_timeout_ms=5000))
    driver.wait(60)
    assert driver.sent == []


def test_playback_that_the_client_reports_counts() -> None:
    driver = answered(2000)
    driver.send(AckPlayback(item_id=driver.done[0].output[0].id, played_ms=500))
    driver.wait(3)
    driver.send(AckPlayback(item_id=driver.done[0].output[0].id, played_ms=2000))
    driver.wait(6.4)
    assert len(driver.of(ev.InputTimeout)) == 1


def test_a_client_that_is_away_is_not_silent() -> None:
    """Wire, section 3: ``idle_timeout_ms`` stops while detached."""
    driver = answered(1000)
    driver.wait(2)
    driver.post(Detached())
    driver.wait(20)
    driver.post(Attached(True))
    driver.wait(4.9)
    assert driver.of(ev.InputTimeout) == []
    driver.wait(0.2)
    assert len(driver.of(ev.InputTimeout)) == 1
