"""From what a model says to events: durations, marks, formats, what is text and what is speech."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from counterpoint.plugins.contract import (
    AudioDelta,
    Capabilities,
    Failure,
    Interaction,
    ItemEnd,
    Mark,
    TextDelta,
    ToolCall,
    TurnEnd,
)
from counterpoint.protocol import events as ev
from counterpoint.protocol.commands import TruncateItem
from counterpoint.session.effects import Emit

from .checks import check
from .driver import MANUAL, Driver, ramp, speak

FORMATS: dict[str, tuple[dict[str, Any], int]] = {
    "pcm": ({"type": "audio/pcm", "rate": 24_000}, 48),
    "pcm 16 kHz": ({"type": "audio/pcm", "rate": 16_000}, 32),
    "float": ({"type": "pcm_f32le", "rate": 24_000}, 96),
    "pcmu": ({"type": "audio/pcmu"}, 8),
    "pcma": ({"type": "audio/pcma"}, 8),
}


def answering(fmt: dict[str, Any] | None = None, **options: Any) -> Driver:
    output = {} if fmt is None else {"output": {"format": fmt}}
    driver = Driver(MANUAL | {"audio": {**MANUAL["audio"], **output}}, **options)
    driver.ask()
    return driver


def durations(driver: Driver) -> list[int]:
    entries = [entry for entry in driver.sent if isinstance(entry.event, ev.OutputAudioDelta)]
    return [_duration(entry) for entry in entries]


def _duration(entry: Emit) -> int:
    assert entry.duplex is not None
    assert isinstance(entry.duplex.audio_duration_ms, int)
    return entry.duplex.audio_duration_ms


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_durations_and_the_largest_truncation_agree(name: str) -> None:
    """Cases D-14, F-09, H-07; CASE-INV-5: a length that fits no chunk, in every format."""
    fmt, bytes_per_ms = FORMATS[name]
    driver = answering(fmt)
    rest = random.Random(7)
    audio, at = ramp(1237), 0
    while at < len(audio):
        size = 2 * rest.randrange(1, 3000)
        driver.model(AudioDelta(audio[at : at + size], "word "))
        at += size
    driver.model(TurnEnd())
    item_id = driver.done[0].output[0].id
    assert len(driver.audio_of(item_id)) == 1237 * bytes_per_ms
    assert sum(durations(driver)) == 1237
    (end,) = [entry for entry in driver.sent if isinstance(entry.event, ev.OutputAudioDone)]
    assert _duration(end) == 1237
    driver.send(TruncateItem(item_id=item_id, content_index=0, audio_end_ms=1238))
    driver.send(TruncateItem(item_id=item_id, content_index=0, audio_end_ms=1237))
    assert (len(driver.errors), len(driver.of(ev.ItemTruncated))) == (1, 1)
    check(driver.sent)


def test_the_natural_end_loses_no_sample() -> None:
    """Case D-14."""
    driver = answering()
    driver.model(AudioDelta(ramp(1237), "all "), TurnEnd())
    assert driver.audio_of(driver.done[0].output[0].id) == ramp(1237)


def test_marks_are_of_the_part_in_the_clients_milliseconds() -> None:
    """Invariant 114: shifted by what was said of that response; the model counts at its own rate."""
    capabilities = Capabilities(interaction=Interaction.TURN, input_rate=24_000, output_rate=16_000)
    driver = answering(capabilities=capabilities)
    second = b"\0" * 32_000
    driver.model(AudioDelta(second, "one two ", (Mark(8_000, 3), Mark(16_000, 8))))
    driver.model(AudioDelta(second, "three ", (Mark(16_000, 6),)), TurnEnd())
    found = [
        (mark.audio_ms, mark.text_chars)
        for entry in driver.sent
        if entry.duplex is not None and entry.duplex.audio_text_marks is not msgspec.UNSET
        for mark in entry.duplex.audio_text_marks
    ]
    assert found == [(500, 3), (1000, 8), (pytest.approx(2000, abs=2), 14)]


def test_marks_of_another_message_start_at_its_own_beginning() -> None:
    driver = answering()
    driver.model(AudioDelta(ramp(500), "one ", (Mark(12_000, 4),)), ItemEnd())
    driver.model(AudioDelta(ramp(500), "two ", (Mark(12_000, 4),)), TurnEnd())
    marks = [
        entry.duplex.audio_text_marks
        for entry in driver.sent
        if entry.duplex is not None and entry.duplex.audio_text_marks is not msgspec.UNSET
    ]
    assert marks == [(ev.TextMark(500, 4),)] * 2


def test_audio_of_a_text_answer_is_its_text() -> None:
    driver = Driver()
    driver.ask(output_modalities=("text",))
    driver.model(AudioDelta(ramp(100), "spoken "), TextDelta("written"), TurnEnd())
    assert driver.of(ev.OutputTextDone)[0].text == "spoken written"
    assert driver.of(ev.OutputAudioDelta) == []


def test_no_audio_event_without_audio() -> None:
    """Case D-12."""
    driver = answering()
    driver.model(TextDelta("only words"), TurnEnd())
    assert driver.of(ev.OutputAudioDone) == []
    assert driver.of(ev.OutputTranscriptDone)[0].transcript == "only words"
    check(driver.sent)


def test_empty_output_says_nothing() -> None:
    driver = answering()
    driver.model(TextDelta(""), AudioDelta(b""), ItemEnd(), TurnEnd())
    assert not [name for name in driver.types if name.endswith(".delta")]
    check(driver.sent)


def test_a_call_without_arguments_has_no_delta() -> None:
    driver = answering()
    driver.model(ToolCall(0, "now", ""), TurnEnd())
    assert driver.of(ev.ArgumentsDelta) == []
    assert driver.of(ev.ArgumentsDone)[0].arguments == ""
    check(driver.sent)


def test_what_waits_behind_a_call_that_never_ends_is_said_when_the_turn_does() -> None:
    driver = answering()
    driver.model(ToolCall(0, "f", "{", final=False), speak("after ", 100), ToolCall(1, "g", "{}"), TurnEnd())
    assert [item.status.value for item in driver.done[0].output] == ["completed"] * 3
    check(driver.sent)


def test_a_call_that_a_failing_model_left_open_is_incomplete() -> None:
    driver = answering()
    driver.model(ToolCall(0, "f", "{", final=False), Failure())
    assert driver.of(ev.ArgumentsDone) == []
    assert driver.done[0].output[0].status.value == "incomplete"
    check(driver.sent)
