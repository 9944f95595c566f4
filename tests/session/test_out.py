"""The effects of a step, and what rides on events."""

from __future__ import annotations

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Listen
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CancelResponse, ClearAudio
from counterpoint.protocol.ids import IdSource
from counterpoint.session.effects import Emit, Reply
from counterpoint.session.out import Out
from counterpoint.session.state import RunState

from .driver import TURN_MODEL, Driver, config


def new_out() -> tuple[Out, RunState]:
    state = RunState("sess", TURN_MODEL, duplex=False, config=config(), now=0.0)
    return Out(state, IdSource("a")), state


def test_events_carry_the_epoch_of_the_moment_they_are_written() -> None:
    out, state = new_out()
    out.emit(ev.InputCleared())
    state.epoch = 5
    out.emit(ev.InputCleared())
    first, second = out.take()
    assert isinstance(first, Emit)
    assert isinstance(second, Emit)
    assert (first.epoch, second.epoch) == (0, 5)
    assert second.duplex == ev.Duplex(epoch=5, turn_id=1)
    assert out.take() == []


def test_the_duplex_object_rides_on_official_events_only() -> None:
    driver = Driver()
    driver.ask()
    driver.model(Listen())
    assert [entry.duplex is None for entry in driver.sent] == [False, True, False]


def test_an_error_about_a_numbered_event_is_a_session_event() -> None:
    """Wire, sections 1 and 2."""
    out, _state = new_out()
    out.refuse(ProtocolError(ErrorCode.UNSUPPORTED, "no"), CancelResponse(event_id="a"))
    out.refuse(ProtocolError(ErrorCode.UNSUPPORTED, "no"), CancelResponse(event_id="b", client_event_seq=4))
    out.refuse(ProtocolError(ErrorCode.UNSUPPORTED, "no", event_id="own"), ClearAudio(event_id="c"))
    first, second, third = out.take()
    assert isinstance(first, Reply)
    assert isinstance(second, Emit)
    assert isinstance(third, Reply)
    ids = [
        effect.event.error.event_id for effect in (first, second, third) if isinstance(effect.event, ev.Error)
    ]
    assert ids == ["a", "b", "own"]
