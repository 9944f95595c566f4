"""An interruption at every point of an answer: what was handed over stays, and nothing else was ever said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from counterpoint.plugins.contract import ItemEnd, ModelEvent, ToolCall, TurnEnd
from counterpoint.protocol import events as ev
from counterpoint.protocol.catalog import Fence as Dies
from counterpoint.protocol.catalog import kind_of
from counterpoint.protocol.commands import (
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearOutput,
    CloseSession,
    Command,
)
from counterpoint.protocol.items import FunctionCall, ItemStatus
from counterpoint.session.effects import CancelModel, Discard, Emit, Progress

from .checks import check
from .driver import Driver, ramp, speak, type_of, user_text, vad

SCRIPTS: dict[str, list[ModelEvent]] = {
    "two messages": [
        speak("one ", 100),
        speak("two ", 100, 2400),
        ItemEnd(),
        speak("three ", 100, 4800),
        TurnEnd(),
    ],
    "speech and a call": [
        speak("wait ", 100),
        ToolCall(0, "f", '{"a":', final=False),
        ToolCall(0, "f", "1}"),
        TurnEnd(),
    ],
    "still generating": [speak("one ", 100), speak("two ", 100, 2400)],
    "inside a call": [ToolCall(0, "f", '{"a":', final=False)],
    "nothing yet": [],
}

CANCELS: dict[str, Callable[[], Command]] = {
    "response.cancel": CancelResponse,
    "barge_in": BargeIn,
    "input.cancel": CancelInput,
    "output_audio_buffer.clear": ClearOutput,
    "session.close": CloseSession,
}


def answered(script: list[ModelEvent]) -> Driver:
    """A session whose answer is written and of which nothing was handed over."""
    driver = Driver(eager=False)
    driver.ask()
    driver.model(*script)
    return driver


def points(script: list[ModelEvent]) -> range:
    """Every number of entries that may have been handed over, short of all (that is the end of playback)."""
    ended = bool(script) and isinstance(script[-1], TurnEnd)
    return range(len(answered(script).pending) + (0 if ended else 1))


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("cancel", CANCELS)
def test_an_interruption_at_any_point_keeps_exactly_what_was_handed_over(name: str, cancel: str) -> None:
    """Invariants 90, 92, 98; cases J-02, D-12; CASE-INV-2 and -4 at every point."""
    script = SCRIPTS[name]
    for handed in points(script):
        driver = answered(script)
        before = driver.hand_over(handed)
        driver.send(CANCELS[cancel]())
        after = driver.hand_over()
        check(driver.sent)
        assert not [entry for entry in after if type_of(entry.event).endswith(".delta")]
        assert [response.status for response in driver.done] == ["cancelled"]
        assert_output(driver, before)
        assert driver.machine.epoch == 1


def assert_output(driver: Driver, before: list[Emit]) -> None:
    """Items announced before the interruption, and only they; complete where they were said to be."""
    announced = [entry.event.item.id for entry in before if isinstance(entry.event, ev.OutputItemAdded)]
    ended = [entry.event.item.id for entry in before if isinstance(entry.event, ev.OutputItemDone)]
    output = driver.done[0].output
    assert [item.id for item in output] == announced
    for item in output:
        expected = ItemStatus.COMPLETED if item.id in ended else ItemStatus.INCOMPLETE
        assert item.status is expected
        if not isinstance(item, FunctionCall):
            audio = b"".join(
                e.event.pcm
                for e in before
                if isinstance(e.event, ev.OutputAudioDelta) and e.event.item_id == item.id
            )
            assert driver.audio_of(item.id) == audio


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_conversation_holds_what_response_done_says(name: str) -> None:
    for handed in points(SCRIPTS[name]):
        driver = answered(SCRIPTS[name])
        driver.hand_over(handed)
        driver.send(CancelResponse())
        driver.hand_over()
        (snapshot,) = driver.machine.snapshot(0)
        for item, shown in zip(snapshot.conversation.items, driver.done[0].output, strict=True):
            assert item.id == shown.id
            if not isinstance(item, FunctionCall):
                assert item == shown


def test_effects_of_an_interruption_come_in_their_order() -> None:
    """Wire, section 6: abort, purge, (speech_started), terminals; the epoch is the new one."""
    driver = Driver(vad(), eager=False)
    driver.say(400, 0.0)
    driver.say(600, 0.9)
    driver.say(600, 0.0)
    driver.model(speak("one two three ", 2000))
    driver.hand_over()
    first = len(driver.effects)
    driver.say(200, 0.9)
    effects = driver.effects[first:]
    start = next(index for index, effect in enumerate(effects) if isinstance(effect, CancelModel))
    cancel, discard, *rest = effects[start:]
    assert isinstance(cancel, CancelModel)
    assert (cancel.old.epoch, cancel.new.epoch) == (0, 1)
    assert isinstance(discard, Discard)
    emits = [effect for effect in rest if isinstance(effect, Emit)]
    assert [type_of(emit.event) for emit in emits] == [
        "input_audio_buffer.speech_started",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert {emit.epoch for emit in emits} == {1}
    assert all(emit.duplex is not None and emit.duplex.epoch == 1 for emit in emits)


def test_nothing_of_the_older_epoch_is_taken_after_it() -> None:
    """Invariants 90, 91: also what the model sends before it obeys."""
    driver = answered(SCRIPTS["still generating"])
    driver.send(CancelResponse())
    late = driver.model(speak("late ", 100), ItemEnd(), ToolCall(0, "f", "{}"), TurnEnd())
    assert late == []


def test_an_announced_item_without_content_stays_as_an_empty_one() -> None:
    """Case F-02, the first half: part announced, no delta handed over."""
    driver = answered(SCRIPTS["still generating"])
    driver.hand_over(4)
    assert driver.types[-1] == "response.content_part.added"
    driver.send(CancelResponse())
    driver.hand_over()
    assert driver.types[4:] == [
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert driver.only(ev.OutputTranscriptDone, driver.events).transcript == ""


def test_what_a_client_may_not_miss_is_not_purged() -> None:
    """Announcements of an announced item, and response.created, are handed over after the interruption."""
    driver = answered(SCRIPTS["still generating"])
    driver.hand_over(2)
    driver.send(CancelResponse())
    left = [entry.event for entry in driver.pending]
    assert [type_of(event) for event in left[:2]] == [
        "conversation.item.added",
        "response.content_part.added",
    ]
    driver.hand_over()
    check(driver.sent)


def test_a_cancel_before_the_first_output_ends_the_response_with_nothing() -> None:
    """Case D-05."""
    driver = answered([])
    driver.send(CancelResponse())
    driver.ask()
    driver.hand_over()
    assert driver.types == ["response.created", "response.done", "response.created"]
    assert driver.done[0].output == ()
    assert driver.errors == []


def test_an_item_that_a_later_item_was_placed_behind_does_not_vanish() -> None:
    """CASE-INV-10: the later item was announced as coming after it."""
    driver = answered(SCRIPTS["still generating"])
    driver.send(user_text("meanwhile", "item_later"))
    driver.send(CancelResponse())
    driver.hand_over()
    check(driver.sent)
    (kept,) = driver.done[0].output
    later = next(event for event in driver.of(ev.ItemAdded) if event.item.id == "item_later")
    assert later.previous_item_id == kept.id
    assert driver.audio_of(kept.id) == b""


def test_only_what_was_heard_stays_in_the_history() -> None:
    """Invariant 94, case F-03: 2 s were handed over, 1 s was played."""
    driver = Driver()
    driver.ask()
    driver.model(speak("one two three four five six seven eight nine ten ", 2000))
    driver.wait(1.0)
    driver.send(BargeIn())
    driver.ask()
    ((role, text),) = driver.history()
    assert role == "assistant"
    assert text is not None
    assert 4 <= len(text.split()) <= 5


def test_dies_of_the_catalog_and_the_rules_of_items_agree() -> None:
    """The log discards by the catalog, and the machine writes what is missing then."""
    driver = answered(SCRIPTS["two messages"] + SCRIPTS["inside a call"])
    for entry in driver.pending:
        assert entry.tag is not None
        purged = kind_of(entry.event).fence is Dies.EPOCH
        assert purged == (entry.tag.progress >= Progress.DELTA)


def test_every_entry_of_an_interrupted_answer_counts_once() -> None:
    """Handing over again, or for a response that is over, changes nothing."""
    driver = answered(SCRIPTS["still generating"])
    before = driver.hand_over(5)
    driver.send(CancelResponse())
    driver.hand_over()
    for entry in before:
        assert entry.tag is not None
        assert driver.machine.accepted(entry.tag, driver.now) is None
    assert len(driver.done) == 1


def test_audio_of_a_cut_item_is_a_prefix_of_what_was_generated() -> None:
    """CASE-INV-6."""
    driver = answered(SCRIPTS["two messages"])
    driver.hand_over(6)
    driver.send(CancelResponse())
    driver.hand_over()
    audio = driver.audio_of(driver.done[0].output[0].id)
    assert audio == ramp(100)
