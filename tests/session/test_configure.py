"""session.update: all or nothing, acknowledged with what is in force."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol import events as ev
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import AppendAudio, CommitAudio, CreateResponse, UpdateSession
from counterpoint.protocol.config import SessionConfig
from counterpoint.session.effects import Detect, Emit, Forget, UpdateModel, UseDetector
from counterpoint.session.machine import SessionMachine

from .checks import check
from .driver import MANUAL, Driver, speak, tone, vad


def shown(driver: Driver) -> dict[str, Any]:
    return driver.of(ev.SessionUpdated)[-1].session


def test_every_accepted_update_is_acknowledged_with_the_whole_configuration() -> None:
    """Case D-13."""
    driver = Driver()
    patches: list[dict[str, Any]] = [
        {"instructions": "be brief"},
        {"output_modalities": ["text"]},
        {"tools": [{"type": "function", "name": "f"}]},
        {"audio": {"input": {"format": {"type": "audio/pcmu"}}}},
        {"instructions": "be brief"},
    ]
    for patch in patches:
        driver.update(**patch)
    assert driver.types == ["session.updated"] * 5
    assert shown(driver)["instructions"] == "be brief"
    assert shown(driver)["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert shown(driver)["id"] == "sess_test"
    assert len([effect for effect in driver.effects if isinstance(effect, UpdateModel)]) == 4


def test_audio_right_behind_an_update_is_decoded_by_it() -> None:
    """Cases D-13, I-04 (b)."""
    driver = Driver()
    pcmu = {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}
    driver.send(UpdateSession(patch=pcmu), AppendAudio(audio=bytes(8000)))
    assert driver.machine.input_audio_ms == 1000


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        ({"instructions": "new", "audio": {"input": {"format": {"type": "g711-ulaw"}}}}, "format"),
        ({"instructions": "new", "model": "another"}, "session.model"),
        ({"instructions": "new", "type": "transcription"}, "session.type"),
        ({"instructions": "new", "overlap_policy": "shout"}, "session.overlap_policy"),
        ({"instructions": "new", "audio": {"input": {"turn_detection": {"type": "vad"}}}}, "turn_detection"),
    ],
)
def test_a_refused_update_changes_nothing(patch: dict[str, Any], param: str) -> None:
    """Cases D-11, H-08, I-04 (a); invariant 104."""
    driver = Driver()
    before = driver.machine.config
    effects = driver.send(UpdateSession(event_id="u", patch=patch))
    (error,) = driver.errors
    assert error.event_id == "u"
    assert error.param is not None
    assert param in error.param
    assert driver.machine.config is before
    assert not [effect for effect in effects if isinstance(effect, UpdateModel | Emit)]


def test_the_voice_stays_once_audio_was_generated() -> None:
    """Case I-05."""
    driver = Driver()
    driver.update(audio={"output": {"voice": "alto"}})
    driver.ask()
    driver.answer()
    driver.update(audio={"output": {"voice": "default"}}, instructions="new")
    assert [error.param for error in driver.errors] == ["session.audio.output.voice"]
    assert driver.machine.config.instructions == ""
    driver.update(audio={"output": {"voice": "alto"}})
    assert len(driver.errors) == 1


def test_a_text_answer_does_not_lock_the_voice() -> None:
    driver = Driver(MANUAL | {"output_modalities": ["text"]})
    driver.ask()
    driver.answer()
    driver.update(audio={"output": {"voice": "alto"}})
    assert driver.errors == []


def test_an_update_holds_from_the_next_response_on() -> None:
    """Case I-06, invariant 29."""
    driver = Driver()
    first = driver.ask()
    driver.model(speak("old ", 100))
    driver.update(instructions="new", output_modalities=["text"])
    driver.answer("old", 100)
    assert (first.instructions, driver.done[0].output_modalities) == ("", ("audio",))
    second = driver.ask()
    assert (second.instructions, second.modalities) == ("new", ("text",))
    check(driver.sent)


def test_what_the_model_makes_of_it_is_what_is_acknowledged() -> None:
    """Case H-08: an unknown voice is not an error."""
    driver = Driver()

    def validate(candidate: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        if candidate.tools:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "no tools", param="session.tools")
        output = msgspec.structs.replace(candidate.audio.output, voice="default")
        return msgspec.structs.replace(
            candidate, audio=msgspec.structs.replace(candidate.audio, output=output)
        )

    machine = driver.machine
    driver.machine = SessionMachine(
        "sess_test",
        machine.config,
        machine.state.capabilities,
        driver.limits,
        machine.ids,
        validate=validate,
        now=driver.now,
    )
    driver.update(audio={"output": {"voice": "unheard of"}})
    assert shown(driver)["audio"]["output"]["voice"] == "default"
    driver.update(tools=[{"type": "function", "name": "f"}], instructions="new")
    assert [(error.code, error.param) for error in driver.errors] == [("unsupported", "session.tools")]
    assert driver.machine.config.instructions == ""


# ---------------------------------------------------------------------- turn detection


def test_an_update_waits_for_the_audio_before_it() -> None:
    """Invariant 88."""
    driver = Driver(vad(), detects=False)
    driver.send(AppendAudio(audio=tone(320, 0.9)))
    driver.update(instructions="later")
    assert driver.sent == []
    driver.detect()
    assert driver.types == ["input_audio_buffer.speech_started", "session.updated"]


@pytest.mark.parametrize("at_ms", [-10, 50, 200])
def test_changed_rules_lose_no_sample_of_an_utterance(at_ms: int) -> None:
    """Case L-07: 10 ms before the onset, in the doubtful beginning, 200 ms into speech."""
    driver = Driver(vad())
    driver.say(1000 + min(0, at_ms), 0.0)
    speech = tone(800, 0.9)
    said = max(0, at_ms) * 48
    driver.send(AppendAudio(audio=speech[:said]))
    driver.update(**vad(threshold=0.6, silence_duration_ms=300))
    driver.send(AppendAudio(audio=tone(max(0, -at_ms), 0.0) + speech[said:]))
    driver.say(700, 0.0)
    assert len(driver.of(ev.SpeechStarted)) == len(driver.of(ev.InputCommitted)) == 1
    assert speech in driver.pushed(1)


def test_switching_the_detector_starts_it_afresh() -> None:
    driver = Driver(vad())
    driver.say(500, 0.0)
    driver.update(audio={"input": {"turn_detection": {"detector": "energy"}}})
    assert [effect.name for effect in driver.effects if isinstance(effect, UseDetector)] == ["amp", "energy"]


def test_null_turns_detection_off_and_keeps_the_open_utterance() -> None:
    driver = Driver(vad())
    driver.say(400, 0.9)
    item_id = driver.of(ev.SpeechStarted)[0].item_id
    driver.update(audio={"input": {"turn_detection": None}})
    assert shown(driver)["audio"]["input"]["turn_detection"] is None
    driver.say(200, 0.1)
    assert driver.of(ev.InputCommitted) == []
    driver.send(CommitAudio())
    assert driver.of(ev.InputCommitted)[0].item_id == item_id
    assert driver.pushed(1) == tone(400, 0.9) + tone(200, 0.1)


def test_null_drops_what_was_no_utterance() -> None:
    driver = Driver(vad())
    driver.say(1000, 0.0)
    driver.update(audio={"input": {"turn_detection": None}})
    driver.send(CommitAudio())
    assert [error.code for error in driver.errors] == [ErrorCode.INPUT_AUDIO_BUFFER_COMMIT_EMPTY]


def test_turning_detection_on_searches_what_was_appended_by_hand() -> None:
    driver = Driver(MANUAL)
    driver.say(500, 0.9)
    effects = driver.update(**vad())
    assert driver.only(Forget, effects).input == 1
    assert len(driver.only(Detect, effects).pcm) == len(tone(500, 0.9))
    assert driver.types == ["session.updated", "input_audio_buffer.speech_started"]
    driver.say(600, 0.0)
    assert driver.pushed(2).startswith(tone(500, 0.9))
    check(driver.sent)


def test_a_create_behind_an_update_uses_it() -> None:
    driver = Driver(vad(), detects=False)
    driver.send(
        AppendAudio(audio=tone(320, 0.0)), UpdateSession(patch={"instructions": "new"}), CreateResponse()
    )
    driver.detect()
    assert driver.requests[0].instructions == "new"


def test_the_playback_policy_can_change() -> None:
    driver = Driver()
    driver.ask()
    driver.answer("one two three four", 2000)
    driver.wait(5)
    driver.update(playback_commit_policy="ack_only")
    driver.ask()
    driver.answer("five six", 2000)
    driver.wait(5)
    driver.ask()
    assert driver.history() == [("assistant", "one two three four")]


# ---------------------------------------------------------------------- what the model cannot do


@pytest.mark.parametrize("policy", ["barge_in_on_speech", "graded"])
def test_a_policy_that_interrupts_needs_a_model_that_can_be_interrupted(policy: str) -> None:
    """Case I-08."""
    driver = Driver(capabilities=Capabilities(interaction=Interaction.TURN, barge_in=False))
    driver.update(overlap_policy=policy)
    driver.update(overlap_policy="listen_only")
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.UNSUPPORTED, "session.overlap_policy")
    ]
    assert shown(driver)["overlap_policy"] == "listen_only"


def test_a_model_that_cannot_speak_writes_and_the_session_says_so() -> None:
    """Case I-06: never acknowledged and ignored."""
    driver = Driver(capabilities=Capabilities(interaction=Interaction.TURN, audio_output=False))
    assert driver.machine.describe()["output_modalities"] == ["text"]
    driver.update(output_modalities=["audio"])
    assert shown(driver)["output_modalities"] == ["text"]
    assert driver.ask(output_modalities=("audio",)).modalities == ("text",)


def test_fields_fixed_beforehand_win_silently_over_every_update() -> None:
    """Wire contract, section 10."""
    fixed: dict[str, Any] = {
        "instructions": "sell nothing",
        "audio": {"output": {"voice": "alto"}, "input": {"turn_detection": None}},
        "extra_body": {"knob": 1},
    }
    driver = Driver(fixed, locked=fixed)
    driver.update(
        instructions="sell everything",
        output_modalities=["text"],
        audio={
            "output": {"voice": "default", "speed": 1.2},
            "input": {"turn_detection": {"type": "server_vad"}},
        },
        extra_body={"knob": 2, "other": 3},
    )
    assert driver.errors == []
    now = shown(driver)
    assert now["instructions"] == "sell nothing"
    pcm = {"type": "audio/pcm", "rate": 24000}
    assert now["audio"]["output"] == {"format": pcm, "voice": "alto", "speed": 1.2}
    assert now["audio"]["input"]["turn_detection"] is None
    assert now["extra_body"] == {"knob": 1, "other": 3}
    assert now["output_modalities"] == ["text"]
