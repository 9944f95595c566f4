"""The end of a session: once, with one event, after the cleanup."""

from __future__ import annotations

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Failure, Scope
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import CLOSED_REASONS, EXPIRED_REASONS, ErrorCode
from counterpoint.protocol.commands import (
    AppendAudio,
    CloseSession,
    CommitAudio,
    CreateResponse,
    UpdateSession,
)
from counterpoint.session.effects import CloseModel, Emit, EndSession, Push, Reply, Respond
from counterpoint.session.inputs import (
    CleanedUp,
    CloseRequested,
    CommandRefused,
    ModelOpenFailed,
    ModelRaised,
    StageOutput,
)

from .checks import check
from .driver import MANUAL, Driver, speak, tone, vad


@pytest.mark.parametrize("reason", [*CLOSED_REASONS, *EXPIRED_REASONS])
def test_every_reason_ends_with_its_one_event_after_the_cleanup(reason: str) -> None:
    """Invariants 124, 138; wire, section 2."""
    driver = Driver()
    effects = driver.post(CloseRequested(reason))
    driver.only(CloseModel, effects)
    assert driver.sent == []
    assert driver.machine.describe()["state"] == "closing"
    end = driver.clean_up()
    assert (end.reason, end.close_code) == (reason, CLOSED_REASONS.get(reason, 1000))
    (last,) = driver.events
    expected: type[ev.Event] = ev.SessionExpired if reason in EXPIRED_REASONS else ev.SessionClosed
    assert isinstance(last, expected)
    assert last.reason == reason  # type: ignore[union-attr]  # both kinds have one
    assert driver.machine.describe()["state"] == "closed"


def test_a_session_ends_once_whatever_else_happens() -> None:
    """Invariant 145."""
    driver = Driver()
    driver.send(CloseSession())
    driver.post(CloseRequested("admin"))
    driver.post(CleanedUp(False))
    driver.post(CleanedUp(True))
    driver.post(CloseRequested("failed"))
    assert [event.reason for event in driver.of(ev.SessionClosed)] == ["client_closed"]
    assert len([effect for effect in driver.effects if isinstance(effect, EndSession)]) == 1
    assert len([effect for effect in driver.effects if isinstance(effect, CloseModel)]) == 1


@pytest.mark.parametrize(
    ("reason", "status"),
    [("client_closed", "cancelled"), ("failed", "failed"), ("idle_ttl_expired", "cancelled")],
)
def test_running_responses_end_with_the_session(reason: str, status: str) -> None:
    driver = Driver()
    driver.ask()
    driver.model(speak("one ", 100))
    driver.ask(out_of_band=True)
    driver.post(CloseRequested(reason))
    assert [response.status for response in driver.done] == [status, status]
    driver.clean_up()
    check(driver.sent)


def test_nothing_is_submitted_once_the_session_closes() -> None:
    """Invariant 32, case C-10."""
    driver = Driver(MANUAL, duplex=True)
    for _ in range(2):
        driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio())
    driver.send(CloseSession())
    first = len(driver.effects)
    driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio(), CreateResponse())
    driver.post(StageOutput(driver.requests[0].fence, speak("late ", 100)))
    driver.clean_up()
    late = driver.effects[first:]
    assert not [effect for effect in late if isinstance(effect, Push | Respond)]
    assert len(driver.requests) == 1, "the answer that waited is not started"


def test_commands_to_a_closing_session_are_answered() -> None:
    """Case C-11."""
    driver = Driver()
    driver.send(CloseSession())
    driver.send(AppendAudio(event_id="a", audio=b"\0\0"), UpdateSession(event_id="u", patch={}))
    driver.post(CommandRefused(ProtocolError(ErrorCode.INVALID_EVENT, "no", event_id="x")))
    assert [(error.code, error.event_id) for error in driver.errors] == [
        (ErrorCode.SESSION_CLOSED, "a"),
        (ErrorCode.SESSION_CLOSED, "u"),
        (ErrorCode.INVALID_EVENT, "x"),
    ]


def test_commands_that_waited_for_the_detector_are_answered_too() -> None:
    """Case C-11: an append took effect, or got an error."""
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(400, 0.9)), CommitAudio(event_id="c"))
    driver.send(AppendAudio(event_id="a", audio=tone(20, 0.9)), CloseSession())
    assert [(error.code, error.event_id) for error in driver.errors] == [
        (ErrorCode.SESSION_CLOSED, "c"),
        (ErrorCode.SESSION_CLOSED, "a"),
    ]
    driver.detect()
    driver.clean_up()
    assert driver.types == ["session.closed"]


def test_commands_that_waited_when_the_session_failed_are_answered_too() -> None:
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(400, 0.9)), CommitAudio(event_id="c"))
    driver.post(ModelRaised(driver.machine.state.fence(), "push"))
    assert [(error.code, error.event_id) for error in driver.errors] == [
        (ErrorCode.INTERNAL_ERROR, None),
        (ErrorCode.SESSION_CLOSED, "c"),
    ]


def test_a_model_that_does_not_open_ends_the_session() -> None:
    """Case C-02; wire, section 1."""
    driver = Driver(opened=False)
    driver.post(ModelOpenFailed("no room"))
    assert [error.code for error in driver.errors] == [ErrorCode.SESSION_OPEN_FAILED]
    assert driver.clean_up().close_code == 1011


@pytest.mark.parametrize("operation", ["push", "update"])
def test_work_that_everything_depends_on_and_raises_ends_the_session(operation: str) -> None:
    """Invariant 28: the failed response.done, one error, session.closed (failed)."""
    driver = Driver()
    driver.ask()
    effects = driver.post(ModelRaised(driver.machine.state.fence(), operation))
    events = [effect.event for effect in effects if isinstance(effect, Emit | Reply)]
    assert isinstance(events[0], ev.ResponseDone)
    assert isinstance(events[1], ev.Error)
    assert events[0].response.status == "failed"
    assert events[1].error.code == ErrorCode.INTERNAL_ERROR
    assert driver.clean_up().reason == "failed"


@pytest.mark.parametrize("operation", ["prepare", "cancel", "abort", "forget", "truncate"])
def test_work_that_nothing_depends_on_may_raise(operation: str) -> None:
    """Case E-10: the epoch has advanced, so what comes late is dropped."""
    driver = Driver()
    driver.ask()
    assert driver.post(ModelRaised(driver.machine.state.fence(), operation)) == []


def test_a_model_side_that_is_lost_ends_the_session() -> None:
    driver = Driver()
    driver.ask()
    driver.model(Failure(scope=Scope.SESSION, retryable=False))
    assert [response.status for response in driver.done] == ["failed"]
    assert driver.clean_up().reason == "failed"


def test_a_reason_that_is_none_is_a_fault_of_the_caller() -> None:
    driver = Driver()
    with pytest.raises(ValueError, match="boredom"):
        driver.post(CloseRequested("boredom"))


def test_a_session_that_is_over_has_no_deadline() -> None:
    driver = Driver(vad())
    driver.ask()
    driver.send(CloseSession())
    assert driver.machine.next_deadline() is None
    driver.clean_up()
    assert driver.post(CleanedUp(True)) == []
