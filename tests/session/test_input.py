"""Audio in: what becomes an utterance, what of it the model gets, what the budget says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.limits import Limits
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import ALAW_8K, ULAW_8K, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import (
    AppendAudio,
    AppendText,
    ClearAudio,
    CommitAudio,
    CreateResponse,
    RetrieveItem,
)
from counterpoint.protocol.items import InputAudio, InputImage, InputText, Message
from counterpoint.session.effects import Detect, Forget, Push, Reply
from counterpoint.session.inputs import Attached, CommandRefused, Detached, TurnChecked

from .checks import check
from .driver import MANUAL, Driver, tone, vad


def content_of(driver: Driver, item_id: str) -> tuple[object, ...]:
    driver.send(RetrieveItem(item_id=item_id))
    item = driver.of(ev.ItemRetrieved)[-1].item
    assert isinstance(item, Message)
    return item.content


def audio_of(driver: Driver, item_id: str) -> bytes:
    part = content_of(driver, item_id)[0]
    assert isinstance(part, InputAudio)
    return part.audio or b""


# ---------------------------------------------------------------------- by hand


def test_a_manual_commit_makes_one_item_of_everything_before_it() -> None:
    """Invariant 89, case L-06: later audio waits for the next commit, and nothing is detected."""
    driver = Driver()
    first, second = tone(300, 0.9), tone(200, 0.4)
    driver.send(AppendAudio(audio=first[:1000]), AppendAudio(audio=first[1000:]), CommitAudio())
    driver.send(AppendAudio(audio=second), CommitAudio())
    assert (
        driver.types
        == [
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.done",
        ]
        * 2
    )
    committed = driver.of(ev.InputCommitted)
    assert [audio_of(driver, event.item_id) for event in committed] == [first, second]
    assert [event.previous_item_id for event in committed] == [None, committed[0].item_id]
    assert driver.requests == []
    check(driver.sent)


def test_the_model_hears_input_as_it_comes() -> None:
    driver = Driver()
    audio = tone(300, 0.5)
    driver.send(AppendAudio(audio=audio[:4800]))
    assert driver.pushed(1) == audio[:4800]
    driver.send(AppendAudio(audio=audio[4800:]), CommitAudio())
    assert driver.pushed(1) == audio
    steps = [effect.step for effect in driver.effects if isinstance(effect, Push)]
    assert [step.final for step in steps] == [False, False, True]


def test_the_model_gets_its_own_rate_to_the_sample() -> None:
    """Case H-09."""
    driver = Driver(capabilities=Capabilities(interaction=Interaction.TURN, input_rate=16_000))
    for piece in range(0, 48_000, 998):
        driver.send(AppendAudio(audio=tone(1000, 0.5)[piece : piece + 998]))
    driver.send(CommitAudio())
    assert len(driver.pushed(1)) == 2 * 16_000


@pytest.mark.parametrize(
    ("fmt", "second"),
    [
        (AudioFormat(Encoding.PCM16, 16_000), 32_000),
        (AudioFormat(Encoding.PCM16, 44_100), 88_200),
        (AudioFormat(Encoding.FLOAT32, 24_000), 96_000),
        (ULAW_8K, 8_000),
        (ALAW_8K, 8_000),
    ],
    ids=str,
)
def test_a_second_is_a_second_in_every_format(fmt: AudioFormat, second: int) -> None:
    """Cases H-07, H-09: on the clock, in the item, and for the model."""
    driver = Driver()
    for _ in range(10):
        driver.send(AppendAudio(audio=bytes(second // 10), format=fmt))
    driver.send(CommitAudio())
    assert driver.machine.input_audio_ms == 1000
    assert len(audio_of(driver, driver.of(ev.InputCommitted)[0].item_id)) == 48_000
    assert len(driver.pushed(1)) == 48_000


@pytest.mark.parametrize("ms", [0, 99])
def test_too_little_is_no_turn(ms: int) -> None:
    """Case H-04, invariant 81."""
    driver = Driver(duplex=True)
    if ms:
        driver.send(AppendAudio(audio=tone(ms, 0.5)))
    driver.send(CommitAudio(event_id="c"))
    (error,) = driver.errors
    assert (error.code, error.event_id) == (ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY, "c")
    assert driver.sent == []
    assert driver.requests == []
    driver.send(AppendAudio(audio=tone(100 - ms, 0.5)), CommitAudio())
    assert len(driver.of(ev.InputCommitted)) == 1
    driver.send(CommitAudio())
    assert len(driver.errors) == 2


def test_100_ms_are_counted_at_the_clients_rate() -> None:
    driver = Driver()
    driver.send(AppendAudio(audio=bytes(1600), format=AudioFormat(Encoding.PCM16, 8_000)), CommitAudio())
    assert driver.errors == []


def test_an_odd_byte_waits_for_the_next_append_and_dies_with_a_commit() -> None:
    """Invariant 36; wire, section 4."""
    driver = Driver()
    audio = tone(200, 0.5)
    driver.send(AppendAudio(audio=audio[:4801]), AppendAudio(audio=audio[4801:] + b"\x01"), CommitAudio())
    driver.send(AppendAudio(audio=audio), CommitAudio())
    assert [audio_of(driver, event.item_id) for event in driver.of(ev.InputCommitted)] == [audio, audio]


def test_an_empty_append_is_nothing() -> None:
    """Case H-03."""
    driver = Driver(vad())
    assert driver.send(AppendAudio(audio=b"")) == []


def test_nan_is_refused_and_leaves_the_buffer_as_it_was() -> None:
    driver = Driver()
    fmt = AudioFormat(Encoding.FLOAT32, 24_000)
    driver.send(AppendAudio(audio=tone(100, 0.5)))
    driver.send(AppendAudio(audio=b"\xff\xff\xff\x7f", format=fmt, event_id="bad"))
    assert [(error.code, error.event_id) for error in driver.errors] == [(ErrorCode.INVALID_AUDIO, "bad")]
    driver.send(CommitAudio())
    assert audio_of(driver, driver.of(ev.InputCommitted)[0].item_id) == tone(100, 0.5)


def test_clear_drops_what_was_not_committed() -> None:
    driver = Driver()
    driver.send(AppendAudio(audio=tone(300, 0.5)), AppendText(text="x"), ClearAudio())
    assert driver.types == ["input_audio_buffer.cleared"]
    assert driver.only(Forget).input == 1
    driver.send(CommitAudio())
    assert [error.code for error in driver.errors] == [ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY]
    assert driver.machine.input_audio_ms == 300


def test_text_is_committed_with_the_open_item_or_alone() -> None:
    driver = Driver(duplex=True)
    driver.send(AppendText(text="look"), CommitAudio())
    first = driver.of(ev.InputCommitted)[0].item_id
    assert content_of(driver, first) == (InputText("look"),)
    assert driver.requests[0].history[0].text == "look"
    driver.send(AppendAudio(audio=tone(200, 0.5)), AppendText(text="and listen"))
    driver.send(CommitAudio(response_create=False))
    second = driver.of(ev.InputCommitted)[1].item_id
    assert content_of(driver, second)[1] == InputText("and listen")


def test_images_are_committed_with_the_open_item() -> None:
    driver = Driver()
    driver.send(
        AppendAudio(audio=tone(200, 0.5), video_frames=("data:image/png;base64,AA==",)), CommitAudio()
    )
    content = content_of(driver, driver.of(ev.InputCommitted)[0].item_id)
    assert content[1] == InputImage("data:image/png;base64,AA==")


def test_what_the_model_cannot_take_is_refused_before_anything_is_kept() -> None:
    """Invariant 40, case I-08."""
    deaf = Capabilities(interaction=Interaction.TURN, audio_input=False)
    driver = Driver(capabilities=deaf)
    driver.send(AppendAudio(audio=tone(200, 0.5)), AppendAudio(audio=b"", video_frames=("x",)))
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.UNSUPPORTED, "audio"),
        (ErrorCode.UNSUPPORTED, "video_frames"),
    ]
    assert driver.machine.held_input_bytes == 0


# ---------------------------------------------------------------------- with a detector


def test_a_spoken_turn() -> None:
    driver = Driver(vad())
    driver.say(1008, 0.0)
    driver.say(800, 0.9)
    driver.say(600, 0.0)
    assert driver.types == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    started, stopped = driver.of(ev.SpeechStarted)[0], driver.of(ev.SpeechStopped)[0]
    committed = driver.of(ev.InputCommitted)[0]
    assert started.item_id == stopped.item_id == committed.item_id
    assert started.audio_start_ms == pytest.approx(1008 - 300, abs=32)
    assert 1808 + 500 <= stopped.audio_end_ms <= 1808 + 500 + 32
    audio = audio_of(driver, committed.item_id)
    assert len(audio) / 48 == pytest.approx(stopped.audio_end_ms - started.audio_start_ms, abs=1)
    assert driver.pushed(1) == audio
    check(driver.sent)


def test_a_spoken_turn_does_not_depend_on_how_audio_is_cut() -> None:
    """Invariant 105."""

    def turn(cuts: random.Random | None) -> tuple[list[str], bytes, list[int]]:
        driver = Driver(vad())
        audio = tone(500, 0.0) + tone(700, 0.9) + tone(300, 0.1) + tone(200, 0.8) + tone(700, 0.0)
        at = 0
        while at < len(audio):
            size = 4800 if cuts is None else cuts.randrange(1, 9000)
            driver.send(AppendAudio(audio=audio[at : at + size]))
            at += size
        times = [event.audio_start_ms for event in driver.of(ev.SpeechStarted)]
        return driver.types, driver.pushed(1), times

    plain = turn(None)
    assert plain[0]
    for seed in range(20):
        assert turn(random.Random(seed)) == plain


def test_speech_from_the_first_sample_starts_at_zero() -> None:
    """Case L-04."""
    driver = Driver(vad())
    driver.say(400, 0.9)
    assert driver.of(ev.SpeechStarted)[0].audio_start_ms == 0


def test_noise_and_bursts_open_no_turn() -> None:
    """Cases E-07, L-09."""
    driver = Driver(vad(min_speech_ms=200))
    driver.say(60, 0.9)
    driver.say(300, 0.0)
    driver.say(5000, 0.3)
    assert driver.sent == []
    driver.say(400, 0.9)
    assert driver.types == ["input_audio_buffer.speech_started"]


def test_an_answer_is_prepared_in_the_pause_and_asked_for_after_it() -> None:
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.say(200, 0.0)
    assert len(driver.prepared) == 1
    driver.say(400, 0.0)
    assert driver.requests == driver.prepared
    assert driver.requests[0].input == 1


def test_nothing_is_pushed_between_the_guess_and_its_end() -> None:
    """A push would discard what was prepared; all of the utterance arrives nevertheless."""
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.say(200, 0.0)
    pushes = len([effect for effect in driver.effects if isinstance(effect, Push)])
    driver.say(200, 0.0)
    assert len([effect for effect in driver.effects if isinstance(effect, Push)]) == pushes
    driver.say(100, 0.9)
    assert len([effect for effect in driver.effects if isinstance(effect, Push)]) > pushes
    driver.say(600, 0.0)
    committed = driver.of(ev.InputCommitted)[0]
    assert driver.pushed(1) == audio_of(driver, committed.item_id)
    assert len(driver.prepared) == 2


def test_the_turn_model_ends_a_turn_early() -> None:
    semantic = {"type": "semantic_vad", "eagerness": "high", "detector": "amp"}
    driver = Driver({"audio": {"input": {"turn_detection": semantic}}}, turn_model=True)
    driver.say(800, 0.9)
    driver.say(320, 0.0)
    check_turn = driver.checks.popleft()
    assert len(check_turn.pcm) // 48 == pytest.approx(1000, abs=32)
    driver.post(TurnChecked(check_turn.check, 0.9))
    (stopped,) = driver.of(ev.SpeechStopped)
    committed = driver.of(ev.InputCommitted)[0]
    assert driver.pushed(1) == audio_of(driver, committed.item_id) == check_turn.pcm
    assert stopped.audio_end_ms == len(check_turn.pcm) // 48


def test_the_clients_own_word_counts_more_than_the_detector() -> None:
    driver = Driver(vad())
    for _ in range(10):
        driver.send(AppendAudio(audio=tone(64, 0.9), is_speech=False))
    assert driver.sent == []
    for _ in range(10):
        driver.send(AppendAudio(audio=tone(64, 0.0), is_speech=True))
    assert driver.types == ["input_audio_buffer.speech_started"]


def test_a_commit_outside_of_an_utterance_is_empty() -> None:
    """Case H-05: the client's stop after the detector has committed already."""
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.say(800, 0.0)
    driver.send(CommitAudio())
    assert [error.code for error in driver.errors] == [ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY]
    assert len(driver.of(ev.InputCommitted)) == 1
    assert len(driver.requests) == 1


def test_a_clients_commit_inside_an_utterance_ends_it_and_answers_nothing() -> None:
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.send(CommitAudio())
    assert driver.types == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert len(audio_of(driver, driver.of(ev.InputCommitted)[0].item_id)) == len(tone(800, 0.9))
    driver.say(400, 0.9)
    assert driver.of(ev.SpeechStarted)[1].audio_start_ms >= 800


def test_clear_resets_detection_on_the_same_clock() -> None:
    """Case H-12."""
    driver = Driver(vad())
    driver.say(1000, 0.0)
    driver.say(150, 0.9)
    driver.send(ClearAudio())
    driver.say(2000, 0.0)
    driver.say(200, 0.9)
    assert driver.of(ev.SpeechStopped) == []
    assert driver.of(ev.SpeechStarted)[-1].audio_start_ms == pytest.approx(3150 - 300, abs=32)
    assert driver.machine.input_audio_ms == 3350


def test_speech_whose_audio_stops_ends_after_the_stall() -> None:
    """Case L-05."""
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.wait(0.9)
    assert driver.of(ev.SpeechStopped) == []
    driver.wait(0.2)
    assert [event.audio_end_ms for event in driver.of(ev.SpeechStopped)] == [800]
    assert len(driver.requests) == 1
    driver.wait(30)
    driver.say(400, 0.9)
    assert driver.of(ev.SpeechStarted)[1].audio_start_ms >= 800


def test_a_detached_client_has_not_stopped_speaking() -> None:
    """Wire, section 3: input is suspended."""
    driver = Driver(vad())
    driver.say(800, 0.9)
    driver.post(Detached())
    driver.wait(20)
    assert driver.of(ev.SpeechStopped) == []
    driver.post(Attached(True))
    driver.wait(0.9)
    assert driver.of(ev.SpeechStopped) == []
    driver.wait(0.2)
    assert len(driver.of(ev.SpeechStopped)) == 1


def test_a_turn_that_is_too_long_is_two() -> None:
    driver = Driver(vad(), limits=Limits(max_turn_s=2))
    driver.say(5000, 0.9)
    driver.say(600, 0.0)
    items = [audio_of(driver, event.item_id) for event in driver.of(ev.InputCommitted)]
    assert [len(audio) // 48 for audio in items[:2]] == [2000, 2000]
    assert b"".join(items).startswith(tone(5000, 0.9))


def test_a_turn_by_hand_that_is_too_long_is_refused() -> None:
    driver = Driver(limits=Limits(max_turn_s=2))
    driver.send(AppendAudio(audio=tone(1500, 0.5)), AppendAudio(audio=tone(600, 0.5)))
    assert [error.code for error in driver.errors] == [ErrorCode.INVALID_AUDIO], "no room comes by waiting"
    driver.send(CommitAudio(), AppendAudio(audio=tone(600, 0.5)), CommitAudio())
    assert [len(audio_of(driver, event.item_id)) // 48 for event in driver.of(ev.InputCommitted)] == [
        1500,
        600,
    ]


@pytest.mark.parametrize("patch", [MANUAL, vad()], ids=["by hand", "detector"])
def test_an_utterance_that_did_not_fit_is_lost_as_a_whole(patch: dict[str, Any]) -> None:
    """Case H-13: no item with cut audio; the next utterance works."""
    driver = Driver(patch)
    driver.say(500, 0.9)
    refusal = ProtocolError(ErrorCode.INPUT_BACKPRESSURE, "limits.max_pending_input_bytes")
    driver.post(CommandRefused(refusal))
    assert driver.types[-1] == "input_audio_buffer.cleared"
    driver.send(CommitAudio())
    assert [error.code for error in driver.errors] == [
        ErrorCode.INPUT_BACKPRESSURE,
        ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY,
    ]
    driver.say(500, 0.9)
    driver.send(CommitAudio())
    assert len(driver.of(ev.InputCommitted)) == 1


def test_a_client_that_numbers_repeats_what_did_not_fit() -> None:
    driver = Driver()
    driver.say(500, 0.9)
    driver.post(CommandRefused(ProtocolError(ErrorCode.INPUT_BACKPRESSURE, "full"), client_event_seq=7))
    assert driver.types == ["error"]
    driver.send(CommitAudio())
    assert len(driver.of(ev.InputCommitted)) == 1


# ---------------------------------------------------------------------- the budget


def test_held_bytes_follow_the_input_wherever_it_is() -> None:
    """Invariants 98, 143; case C-17: appended, detected, spoken, committed, cleared."""
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(320, 0.9)))
    assert driver.machine.held_input_bytes == 320 * 48
    driver.detect()
    assert driver.machine.held_input_bytes == 320 * 48
    driver.send(AppendAudio(audio=tone(100, 0.9)))
    assert driver.machine.held_input_bytes == 420 * 48
    driver.send(ClearAudio())
    driver.detect()
    assert driver.types[-1] == "input_audio_buffer.cleared"
    assert driver.machine.held_input_bytes == 0
    driver.send(AppendAudio(audio=tone(320, 0.0)))
    driver.detect()
    assert driver.machine.held_input_bytes == 0


@pytest.mark.parametrize("seed", range(40))
def test_held_bytes_equal_a_model_of_them(seed: int) -> None:
    """Case C-17: random interleavings, by hand."""
    rng = random.Random(seed)
    driver, expected = Driver(), 0
    for _ in range(60):
        match rng.choice(("append", "append", "clear", "commit", "text")):
            case "append":
                audio = tone(rng.choice((20, 50, 200)), 0.5)
                driver.send(AppendAudio(audio=audio))
                expected += len(audio)
            case "clear":
                driver.send(ClearAudio())
                expected = 0
            case "commit":
                refused = len(driver.errors)
                driver.send(CommitAudio())
                if len(driver.errors) == refused:
                    expected = 0
            case _:
                driver.send(AppendText(text="abc"))
                expected += 3
        assert driver.machine.held_input_bytes == expected


def test_a_long_silence_is_not_kept() -> None:
    """Case C-15."""
    driver = Driver(vad())
    for _ in range(60):
        driver.say(1000, 0.0, cut_ms=500)
    buffer = driver.machine._input._buffer
    assert buffer.end_sample - buffer.start_sample <= 24 * (300 + 32)


# ---------------------------------------------------------------------- order


def test_commands_behind_audio_that_is_with_the_detector_keep_their_place() -> None:
    """Wire, section 9: a commit does not overtake the audio before it, nor a create the commit."""
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(400, 0.9)), CommitAudio(), CreateResponse())
    driver.send(AppendAudio(audio=tone(200, 0.2)))
    assert driver.sent == []
    assert driver.errors == []
    driver.detect()
    assert driver.types == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    assert driver.requests[0].history[0].input == 1
    assert len(driver.chunks) == 1
    assert len(audio_of(driver, driver.of(ev.InputCommitted)[0].item_id)) == 400 * 48


def test_audio_behind_audio_goes_to_the_detector_at_once() -> None:
    driver = Driver(vad(), detects=False)
    driver.send(*[AppendAudio(audio=tone(20, 0.0)) for _ in range(5)])
    assert len([effect for effect in driver.effects if isinstance(effect, Detect)]) == 5


def test_errors_name_the_event_also_when_it_waited() -> None:
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(400, 0.0)), CommitAudio(event_id="late", client_event_seq=2))
    driver.detect()
    (error,) = driver.errors
    assert (error.code, error.event_id) == (ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY, "late")
    assert driver.types == ["error"], "an error about a numbered event is a session event"
    assert not [effect for effect in driver.effects if isinstance(effect, Reply)]
