"""Puts a machine into each state of which the conversation's table speaks.

Owns: ``STATES``.
Does not own: what is expected there (``docs/reference/conversation.toml``).
Here because: several tests begin in the same states.

Every conversation begins alike: something spoken (``heard``, input 1), something typed (``user``), and an
answer that was interrupted; so in each state there is a past that late news can be about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from counterpoint.plugins.contract import Capabilities, Fence, Interaction, Listen, TextDelta, TurnEnd
from counterpoint.protocol.audio import SESSION_RATE
from counterpoint.protocol.commands import AppendAudio, AppendText, BargeIn, CloseSession, CommitAudio
from counterpoint.protocol.events import OutputAudioDelta
from counterpoint.session.inputs import StageOutput

from .driver import Driver, speak, tone, user_text, vad

NATIVE = Capabilities(
    Interaction.FRAME, input_rate=SESSION_RATE, step_samples=1920, tools=True, truncate=False
)

_BY_HAND: dict[str, Any] = {
    "audio": {"input": {"turn_detection": None, "transcription": {"model": "any"}}},
}


def _told(**options: Any) -> Driver:
    """The user has said something and typed something; no answer was asked for."""
    driver = Driver(_BY_HAND, duplex=True, **options)
    driver.send(AppendAudio(audio=tone(200, 0.9)), CommitAudio(response_create=False))
    driver.send(user_text("hi", "user"))
    return driver


def opening() -> Driver:
    return _told(opened=False)


def idle() -> Driver:
    driver = _told()
    driver.ask()
    driver.model(speak("never mind ", 200))
    driver.send(BargeIn())
    return driver


def hearing() -> Driver:
    driver = idle()
    driver.update(**vad())
    driver.say(300, 0.9)
    return driver


def asked() -> Driver:
    driver = idle()
    driver.ask()
    return driver


def responding() -> Driver:
    driver = asked()
    driver.model(speak("one two ", 500))
    return driver


def draining() -> Driver:
    """The model is done; of its two pieces of audio one was handed over."""
    driver = asked()
    driver.eager = False
    driver.model(speak("one ", 250), speak("two ", 250), TurnEnd())
    while not isinstance(driver.hand_over(1)[0].event, OutputAudioDelta):
        pass
    return driver


def queued() -> Driver:
    """A turn was committed while an answer is given: its own answer is next."""
    driver = responding()
    driver.send(AppendText(text="and then?"), CommitAudio())
    return driver


def playing() -> Driver:
    driver = responding()
    driver.model(TurnEnd())
    return driver


def aside() -> Driver:
    driver = idle()
    driver.ask(out_of_band=True, output_modalities=("text",))
    driver.model(TextDelta("a note "))
    return driver


def listening() -> Driver:
    driver = _told(capabilities=NATIVE)
    native_says(driver, speak("never mind ", 200))
    driver.send(BargeIn())
    native_says(driver, Listen())
    return driver


def speaking() -> Driver:
    driver = listening()
    native_says(driver, speak("one two ", 500))
    return driver


def closing() -> Driver:
    driver = responding()
    driver.send(CloseSession())
    return driver


def closed() -> Driver:
    driver = closing()
    driver.clean_up()
    return driver


def native_says(driver: Driver, *events: Any) -> None:
    """Nobody asked: such output carries the epoch alone."""
    for event in events:
        driver.post(StageOutput(Fence("sess_test", driver.machine.epoch), event))


STATES: dict[str, Callable[[], Driver]] = {
    state.__name__: state
    for state in (
        opening,
        idle,
        hearing,
        asked,
        responding,
        draining,
        queued,
        playing,
        aside,
        listening,
        speaking,
        closing,
        closed,
    )
}
