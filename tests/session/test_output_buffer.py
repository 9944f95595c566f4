"""``output_audio_buffer``: what a connection that plays by itself makes its client hear of."""

from __future__ import annotations

from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import CancelResponse, ClearOutput
from counterpoint.session.inputs import Detached, Played

from .checks import check
from .driver import Driver, speak

WORDS = "one two three four five six seven eight nine ten "


def speaking(ms: int = 1000) -> tuple[Driver, str]:
    """An answer under way, of which so much was handed over, and its item."""
    driver = Driver()
    driver.ask()
    driver.model(speak(WORDS, ms))
    return driver, driver.of(ev.OutputItemAdded)[0].item.id or ""


def buffer_events(driver: Driver) -> list[str]:
    return [kind.removeprefix("output_audio_buffer.") for kind in driver.types if "audio_buffer" in kind]


def test_an_answer_starts_once_and_stops_when_all_of_it_was_played() -> None:
    driver, item_id = speaking()
    driver.post(Played(item_id, 0))
    driver.post(Played(item_id, 1000))
    assert buffer_events(driver) == ["started"], "more may come"
    driver.model(speak("and more ", 500))
    driver.answer(ms=100)
    driver.post(Played(item_id, 1500))
    assert buffer_events(driver) == ["started"]
    driver.post(Played(item_id, 1600))
    assert buffer_events(driver) == ["started", "stopped"]
    check(driver.sent)


def test_an_answer_that_was_played_before_its_end_stops_with_it() -> None:
    driver, item_id = speaking()
    driver.post(Played(item_id, 1000))
    driver.answer(text="", ms=0)
    driver.post(Played(item_id, 1000))
    assert driver.types.index("response.done") < driver.types.index("output_audio_buffer.stopped")


def test_an_interruption_clears_what_sounds_and_later_positions_change_nothing() -> None:
    driver, item_id = speaking()
    driver.post(Played(item_id, 300))
    driver.send(CancelResponse())
    driver.post(Played(item_id, 1000))
    assert buffer_events(driver) == ["started", "cleared"]
    (played,) = driver.machine.played(driver.now).values()
    assert played == 300 * 24
    check(driver.sent)


def test_a_clear_is_told_once() -> None:
    driver, item_id = speaking()
    driver.post(Played(item_id, 300))
    driver.send(ClearOutput())
    assert buffer_events(driver) == ["started", "cleared"]


def test_the_players_word_replaces_the_guess() -> None:
    """Time passes and the player does not move: nothing more was heard."""
    driver, item_id = speaking()
    driver.post(Played(item_id, 200))
    driver.wait(5)
    assert set(driver.machine.played(driver.now).values()) == {200 * 24}


def test_after_the_player_is_gone_another_one_starts_anew() -> None:
    driver, item_id = speaking()
    driver.post(Played(item_id, 200))
    driver.post(Detached())
    driver.post(Played(item_id, 200))
    assert buffer_events(driver) == ["started", "started"]


def test_an_unknown_item_is_ignored() -> None:
    driver, _item_id = speaking()
    driver.post(Played("nope", 200))
    assert buffer_events(driver) == []
