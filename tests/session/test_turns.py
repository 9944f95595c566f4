"""What the user's turns lead to: interruption, queueing, overlap policies."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.limits import Limits
from counterpoint.plugins.contract import Capabilities, Interaction, TurnEnd, UserTranscript
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AckPlayback,
    AppendAudio,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateResponse,
    RetrieveItem,
)
from counterpoint.protocol.items import InputAudio, Message
from counterpoint.session.effects import CancelModel, Forget, Prepare

from .checks import check
from .driver import MANUAL, Driver, speak, tone, type_of, vad

LONG = "one two three four five six seven eight nine ten "


def spoken_turn(driver: Driver, ms: int = 600) -> None:
    driver.say(ms, 0.9)
    driver.say(600, 0.0)


def answering(patch: dict[str, Any] | None = None, ms: int = 4000, **options: Any) -> Driver:
    """A session in the middle of a spoken answer to a spoken turn."""
    driver = Driver(vad() if patch is None else patch, **options)
    spoken_turn(driver)
    driver.model(speak(LONG, ms))
    return driver


# ---------------------------------------------------------------------- turns in sequence


def test_five_turns_get_five_answers() -> None:
    """Case D-07: each waits for the answer before it."""
    driver = Driver(vad())
    for _ in range(5):
        spoken_turn(driver)
        driver.answer(ms=100)
        driver.wait(0.2)
    assert len(driver.of(ev.InputCommitted)) == len(driver.done) == 5
    assert [response.status for response in driver.done] == ["completed"] * 5
    check(driver.sent)


def test_five_turns_over_each_others_answers_get_five_answers() -> None:
    """Case D-07: each cancels the answer before it."""
    driver = Driver(vad())
    for _ in range(5):
        spoken_turn(driver)
        driver.model(speak(LONG, 4000))
    assert [response.status for response in driver.done] == ["cancelled"] * 4
    assert len(driver.requests) == 5
    assert driver.machine.epoch == 4
    check(driver.sent)


def test_create_response_false_only_commits() -> None:
    driver = Driver(vad(create_response=False))
    spoken_turn(driver)
    assert driver.types[-1] == "conversation.item.done"
    assert driver.requests == driver.prepared == []


def test_a_transcription_session_answers_nothing() -> None:
    """Case I-12."""
    driver = Driver({"type": "transcription"} | vad())
    spoken_turn(driver)
    assert len(driver.of(ev.InputCommitted)) == 1
    assert driver.requests == []


# ---------------------------------------------------------------------- interruption by speech


def test_speech_interrupts_and_is_the_next_turn() -> None:
    """Invariant 100, case E-03."""
    driver = answering()
    driver.say(1200, 0.8)
    driver.say(600, 0.0)
    second = driver.of(ev.InputCommitted)[1].item_id
    driver.send(RetrieveItem(item_id=second))
    item = driver.of(ev.ItemRetrieved)[0].item
    assert isinstance(item, Message)
    part = item.content[0]
    assert isinstance(part, InputAudio)
    assert part.audio is not None
    assert tone(1200, 0.8) in part.audio
    assert driver.pushed(2) == part.audio
    roles = [role for role, _ in driver.history()]
    assert roles in (["user", "user"], ["user", "assistant", "user"])
    check(driver.sent)


def test_speech_started_comes_before_the_end_of_the_answer() -> None:
    """Invariant 92."""
    driver = answering()
    driver.say(300, 0.9)
    names = driver.types[driver.types.index("response.created") :]
    assert names.index("input_audio_buffer.speech_started") < names.index("response.done")
    assert driver.done[0].status_details is not None
    assert driver.done[0].status_details.reason == "turn_detected"


def test_interrupt_response_false_lets_the_answer_go_on_and_queues_the_next() -> None:
    """Case E-08; invariants 83, 84."""
    driver = answering(vad(interrupt_response=False))
    spoken_turn(driver)
    spoken_turn(driver)
    assert driver.done == []
    assert len(driver.of(ev.SpeechStarted)) == len(driver.of(ev.InputCommitted)) == 3
    driver.model(TurnEnd())
    assert len(driver.requests) == 2
    check(driver.sent)


def test_explicit_cancel_works_whatever_interrupt_response_says() -> None:
    """Case E-08."""
    driver = answering(vad(interrupt_response=False))
    driver.send(CancelResponse())
    assert [response.status for response in driver.done] == ["cancelled"]


def test_new_speech_drops_the_answers_that_wait() -> None:
    """Case E-09: the turns stay, nobody answers them any more."""
    driver = answering(vad(interrupt_response=False))
    spoken_turn(driver)
    assert driver.machine.open_turns == 1
    driver.say(300, 0.9)
    assert driver.machine.open_turns == 0
    driver.model(TurnEnd())
    assert len(driver.requests) == 1
    driver.say(600, 0.0)
    assert len(driver.requests) == 2
    assert [role for role, _ in driver.history()].count("user") == 3
    check(driver.sent)


def test_a_queued_answer_sees_the_conversation_up_to_its_own_turn() -> None:
    """Invariant 84: two deferred commits are two answers, in order, each to its turn."""
    driver = Driver(MANUAL, duplex=True)
    driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio())
    driver.model(speak("first answer ", 100))
    for _ in range(2):
        driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio())
    assert len(driver.requests) == 1
    driver.model(TurnEnd())
    driver.answer("second answer")
    driver.answer("third answer")
    users = [event.item_id for event in driver.of(ev.InputCommitted)]
    asked = [[item.id for item in request.history if item.role == "user"] for request in driver.requests]
    assert asked == [users[:1], users[:2], users[:3]]
    assert [request.input for request in driver.requests] == [1, 2, 3]
    (snapshot,) = driver.machine.snapshot(0)
    roles = [item.role.value for item in snapshot.conversation.items if isinstance(item, Message)]
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant"]
    check(driver.sent)


def test_waiting_turns_are_bounded() -> None:
    """Wire, section 4: limits.max_pending_turns. Whoever could try again was refused before this."""
    driver = Driver(MANUAL, duplex=True, limits=Limits(max_pending_turns=2))
    for _ in range(4):
        driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio())
    assert driver.machine.open_turns == 2
    assert len(driver.of(ev.InputCommitted)) == 4
    for _ in range(3):
        driver.model(TurnEnd())
    assert len(driver.done) == 3


def test_a_commit_that_waits_for_the_detector_is_an_open_turn() -> None:
    """Or more could be accepted than there is room for when they are carried out."""
    driver = Driver(vad(), detects=False)
    driver.say(200, 0.9)
    driver.send(CommitAudio(), ClearAudio(), CommitAudio())
    assert driver.machine.open_turns == 2


# ---------------------------------------------------------------------- commits by hand


@pytest.mark.parametrize(
    ("duplex", "patch", "command", "answers"),
    [
        (False, MANUAL, CommitAudio(), False),
        (True, MANUAL, CommitAudio(), True),
        (True, MANUAL, CommitAudio(response_create=False), False),
        (True, MANUAL | {"extra_body": {"auto_response": False}}, CommitAudio(), False),
        (True, vad(), CommitAudio(), False),
        (True, MANUAL | {"type": "transcription"}, CommitAudio(), False),
    ],
    ids=["stock", "duplex", "told not to", "switched off", "has a detector", "transcription"],
)
def test_which_commits_start_a_response(
    duplex: bool, patch: dict[str, Any], command: CommitAudio, answers: bool
) -> None:
    """(invariant 82; wire contract, section 4)"""
    driver = Driver(patch, duplex=duplex)
    driver.say(500, 0.9)
    driver.send(command)
    assert len(driver.of(ev.InputCommitted)) == 1
    assert bool(driver.requests) is answers


def test_loud_audio_after_a_manual_commit_does_not_interrupt() -> None:
    """Case L-06."""
    driver = Driver(MANUAL, duplex=True)
    driver.send(AppendAudio(audio=tone(200, 0.5)), CommitAudio())
    driver.model(speak("answer ", 500))
    driver.say(500, 0.9)
    driver.model(TurnEnd())
    assert [response.status for response in driver.done] == ["completed"]
    assert driver.of(ev.SpeechStarted) == []


# ---------------------------------------------------------------------- playback goes on


def test_speech_over_playback_that_outlives_its_response_cuts_it() -> None:
    """Case E-04 (b), wire section 6."""
    driver = answering(ms=8000)
    driver.model(TurnEnd())
    assert driver.done[0].status == "completed"
    item_id = driver.done[0].output[0].id
    driver.send(AckPlayback(item_id=item_id, played_ms=1000))
    first = len(driver.sent)
    driver.say(200, 0.9)
    assert driver.types[first:] == [
        "input_audio_buffer.speech_started",
        "output_audio_buffer.cleared",
        "conversation.item.truncated",
    ]
    truncated = driver.of(ev.ItemTruncated)[0]
    assert (truncated.item_id, truncated.audio_end_ms) == (item_id, 1000)
    assert driver.machine.epoch == 0
    driver.say(600, 0.0)
    answers = [text for role, text in driver.history() if role == "assistant"]
    assert answers == ["one "]
    check(driver.sent)


def test_speech_after_playback_cuts_nothing() -> None:
    driver = answering(ms=1000)
    driver.model(TurnEnd())
    driver.wait(2.0)
    driver.say(200, 0.9)
    assert driver.types[-1] == "input_audio_buffer.speech_started"


def test_barge_in_over_playback_cuts_it_too() -> None:
    driver = answering(ms=4000)
    driver.model(TurnEnd())
    driver.wait(1.0)
    driver.send(BargeIn())
    assert driver.types[-2:] == ["output_audio_buffer.cleared", "conversation.item.truncated"]


def test_with_nothing_to_act_on_the_extensions_do_nothing() -> None:
    driver = Driver()
    assert driver.send(BargeIn()) == []
    driver.send(CancelInput())
    assert driver.types == ["input_audio_buffer.cleared"]
    assert driver.errors == []


def test_barge_in_is_refused_where_the_model_cannot_be_interrupted() -> None:
    """Invariant 96: speech is listened to, an explicit demand is an error."""
    deaf = Capabilities(interaction=Interaction.TURN, input_rate=24_000, barge_in=False)
    driver = answering(capabilities=deaf)
    driver.say(400, 0.9)
    assert driver.done == []
    assert len(driver.of(ev.SpeechStarted)) == 2
    driver.send(BargeIn(event_id="b"))
    assert [(error.code, error.event_id) for error in driver.errors] == [(ErrorCode.UNSUPPORTED, "b")]
    assert driver.done == []


# ---------------------------------------------------------------------- cancels and the detector


def test_a_cancel_does_not_wait_for_the_detector() -> None:
    """Wire, section 9."""
    driver = answering(detects=True)
    driver.detects = False
    driver.send(AppendAudio(audio=tone(100, 0.0)), CommitAudio(), CancelResponse())
    assert [response.status for response in driver.done] == ["cancelled"]


def test_a_cancel_meant_for_an_answer_that_waits_in_line_comes_after_it() -> None:
    """Cancel follows create in the client's order, though both wait for a detection."""
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(400, 0.9)), CommitAudio(), CreateResponse(), CancelResponse())
    assert driver.errors == []
    driver.detect()
    assert [response.status for response in driver.done] == ["cancelled"]
    assert driver.errors == []


def test_input_cancel_cancels_at_once_and_clears_in_its_place() -> None:
    driver = answering()
    driver.detects = False
    driver.send(AppendAudio(audio=tone(400, 0.9)), CancelInput())
    assert [response.status for response in driver.done] == ["cancelled"]
    driver.detect()
    assert driver.types[-1] == "input_audio_buffer.cleared"
    assert driver.machine.held_input_bytes == 0


# ---------------------------------------------------------------------- overlap policies


def policy(name: str, **settings: Any) -> dict[str, Any]:
    return vad() | {"overlap_policy": name} | settings


def decisions(driver: Driver) -> list[tuple[str, str]]:
    return [(event.action, event.reason) for event in driver.of(ev.OverlapDecision)]


def test_listen_only_never_interrupts() -> None:
    driver = answering(policy("listen_only"))
    spoken_turn(driver, 2000)
    assert driver.done == []
    assert len(driver.of(ev.InputCommitted)) == 2
    assert {action for action, _ in decisions(driver)} == {"listen"}
    driver.model(TurnEnd())
    assert len(driver.requests) == 2


def test_barge_in_on_speech_overrules_interrupt_response() -> None:
    driver = answering(vad(interrupt_response=False) | {"overlap_policy": "barge_in_on_speech"})
    driver.say(300, 0.9)
    assert [response.status for response in driver.done] == ["cancelled"]
    assert [action for action, _ in decisions(driver)] == ["barge_in"]


def test_graded_listens_to_a_short_acknowledgement_as_if_it_never_was() -> None:
    """Invariant 85: no speech_started, no item, no response."""
    driver = answering(policy("graded"))
    spoken_turn(driver, 500)
    assert len(driver.of(ev.SpeechStarted)) == len(driver.of(ev.InputCommitted)) == 1
    assert driver.of(ev.SpeechStopped)[1:] == []
    assert driver.only(Forget).input == 2
    driver.model(TurnEnd())
    assert [response.status for response in driver.done] == ["completed"]
    assert len(driver.requests) == 1
    check(driver.sent)


def test_graded_announces_longer_speech_with_its_onset_and_queues_it() -> None:
    driver = answering(policy("graded"))
    onset = driver.machine.input_audio_ms
    driver.say(1000, 0.9)
    driver.say(600, 0.0)
    started = driver.of(ev.SpeechStarted)[1]
    assert started.audio_start_ms <= onset
    assert driver.done == []
    assert len(driver.of(ev.InputCommitted)) == 2
    assert driver.machine.open_turns == 1


def test_graded_interrupts_after_enough_speech() -> None:
    driver = answering(policy("graded"))
    driver.say(1100, 0.9)
    assert driver.done == []
    driver.say(200, 0.9)
    assert [response.status for response in driver.done] == ["cancelled"]
    assert [action for action, _ in decisions(driver)] == ["listen", "listen", "barge_in"]
    driver.say(600, 0.0)
    assert len(driver.requests) == 2
    check(driver.sent)


def test_graded_knows_an_acknowledgement_by_its_words_however_long_it_takes() -> None:
    driver = answering(policy("graded"))
    driver.say(200, 0.9)
    fence = driver.machine.state.fence()
    driver.model(
        UserTranscript(2, "mm-hmm, ", final=False), UserTranscript(2, "yeah", final=False), fence=fence
    )
    driver.say(1500, 0.9)
    driver.say(600, 0.0)
    assert ("listen", "acknowledgement") in decisions(driver)
    assert driver.done == []
    assert len(driver.of(ev.InputCommitted)) == 1


def test_a_hidden_utterance_cannot_be_committed_by_hand() -> None:
    driver = answering(policy("graded"))
    driver.say(300, 0.9)
    driver.send(CommitAudio())
    assert [error.code for error in driver.errors] == [ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY]


def test_no_policy_no_decision() -> None:
    driver = answering()
    driver.say(300, 0.9)
    assert decisions(driver) == []
    assert driver.only(CancelModel).new.epoch == 1


def test_nothing_is_prepared_while_an_answer_is_given() -> None:
    driver = answering(policy("listen_only"))
    before = len(driver.prepared)
    spoken_turn(driver, 600)
    assert len([effect for effect in driver.effects if isinstance(effect, Prepare)]) == before


def test_every_event_of_an_interruption_carries_the_new_epoch() -> None:
    """Wire, section 9."""
    driver = answering()
    driver.say(300, 0.9)
    started = next(
        entry for entry in driver.sent if isinstance(entry.event, ev.SpeechStarted) and entry.epoch == 1
    )
    after = driver.sent[driver.sent.index(started) :]
    assert {entry.epoch for entry in after} == {1}
    assert type_of(after[-1].event) == "response.done"
