"""The session's configuration: merging all or nothing, and showing it."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import PCM16_24K, ULAW_8K, AudioFormat, Encoding
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.config import (
    AudioConfig,
    AudioInput,
    AudioOutput,
    NoiseReduction,
    OverlapPolicy,
    PlaybackCommitPolicy,
    Prompt,
    RetentionRatio,
    SessionConfig,
    SessionType,
    Tracing,
    Transcription,
    merge,
    render,
)
from counterpoint.protocol.tools import Tool
from counterpoint.protocol.turn_detection import SemanticVad, ServerVad

from .examples import LIVE
from .schemas import check_server_event

DEFAULT = SessionConfig()

#: Differs from the defaults in every field.
OTHER = SessionConfig(
    type=SessionType.TRANSCRIPTION,
    model="m",
    instructions="be brief",
    output_modalities=("text",),
    audio=AudioConfig(
        AudioInput(ULAW_8K, Transcription("w", "de"), NoiseReduction.FAR_FIELD, None),
        AudioOutput(AudioFormat(Encoding.FLOAT32, 16_000), "cedar", 1.25),
    ),
    tools=(Tool("clock"),),
    tool_choice="none",
    max_output_tokens=77,
    tracing=Tracing("flow"),
    include=("item.input_audio_transcription.logprobs",),
    prompt=Prompt("pmpt_1"),
    truncation=RetentionRatio(0.5),
    overlap_policy=OverlapPolicy.GRADED,
    overlap_short_ack_ms=1,
    overlap_barge_in_ms=2,
    overlap_silence_rms=0.5,
    playback_commit_policy=PlaybackCommitPolicy.ACK_ONLY,
    idle_timeout_s=9.5,
    extra_body={"a": 1},
)


def update(
    patch: dict[str, Any], current: SessionConfig = DEFAULT, *, extended: bool = True
) -> SessionConfig:
    return merge(current, patch, extended=extended)


def refusal(patch: dict[str, Any], *, extended: bool = True) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        update(patch, extended=extended)
    return refused.value


def source(patch: dict[str, Any]) -> dict[str, Any]:
    return {"audio": {"input": patch}}


def sink(patch: dict[str, Any]) -> dict[str, Any]:
    return {"audio": {"output": patch}}


# --------------------------------------------------------------------------- what stays


@pytest.mark.parametrize("current", [DEFAULT, OTHER], ids=["default", "other"])
@pytest.mark.parametrize(
    "patch", [{}, {"audio": {}}, {"audio": {"input": {}, "output": {}}}, {"audio": None}, {"x": 1}]
)
def test_a_missing_key_keeps(current: SessionConfig, patch: dict[str, Any]) -> None:
    assert update(patch, current) == current


@pytest.mark.parametrize("current", [DEFAULT, OTHER], ids=["default", "other"])
def test_what_is_shown_changes_nothing_when_it_is_sent_back(current: SessionConfig) -> None:
    """Clients echo the session that they were shown."""
    assert update(render(current, extended=True, live=LIVE), current) == current


def test_what_is_shown_is_the_whole_of_it() -> None:
    assert update(render(OTHER, extended=True, live={}), DEFAULT) == OTHER


def test_an_unrelated_update_changes_no_format() -> None:
    """(case H-07)"""
    current = update(source({"format": {"type": "audio/pcmu"}}))
    assert update({"instructions": "sing"}, current).audio == current.audio


# --------------------------------------------------------------------------- what changes


def test_a_nested_field_is_merged_alone() -> None:
    changed = update(source({"turn_detection": {"threshold": 0.8}}))
    assert changed.audio.input == AudioInput(turn_detection=ServerVad(threshold=0.8))
    assert msgspec.structs.replace(changed, audio=DEFAULT.audio) == DEFAULT


def test_null_disables_turn_detection_and_missing_keeps_it() -> None:
    manual = update(source({"turn_detection": None}))
    assert manual.audio.input.turn_detection is None
    assert update(source({"transcription": {}}), manual).audio.input.turn_detection is None
    again = update(source({"turn_detection": {"type": "semantic_vad"}}), manual)
    assert again.audio.input.turn_detection == SemanticVad()


def test_extra_body_is_merged_by_its_keys_each_replaced_whole() -> None:
    current = update({"extra_body": {"script": {"a": 1, "b": 2}, "k": 1}})
    changed = update({"extra_body": {"script": {"a": 3}, "new": None}}, current)
    assert changed.extra_body == {"script": {"a": 3}, "k": 1, "new": None}
    assert current.extra_body == {"script": {"a": 1, "b": 2}, "k": 1}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"instructions": ""}, {"instructions": ""}),
        ({"output_modalities": ["text"]}, {"output_modalities": ("text",)}),
        ({"output_modalities": ["text", "audio"]}, {"output_modalities": ("audio",)}),
        ({"max_output_tokens": 5}, {"max_output_tokens": 5}),
        ({"tools": [{"type": "function", "name": "f"}]}, {"tools": (Tool("f"),)}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"overlap_policy": "listen_only"}, {"overlap_policy": OverlapPolicy.LISTEN_ONLY}),
        ({"overlap_silence_rms": 1}, {"overlap_silence_rms": 1}),
        ({"playback_commit_policy": "auto"}, {"playback_commit_policy": PlaybackCommitPolicy.AUTO}),
        ({"idle_timeout_s": 2}, {"idle_timeout_s": 2}),
        ({"tracing": {"group_id": "g"}}, {"tracing": Tracing(group_id="g")}),
        ({"truncation": "disabled"}, {"truncation": "disabled"}),
    ],
)
def test_a_given_value_is_taken(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    assert update(patch, OTHER) == msgspec.structs.replace(OTHER, **expected)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"max_output_tokens": "inf"}, "max_output_tokens"),
        ({"max_output_tokens": None}, "max_output_tokens"),
        ({"overlap_policy": None}, "overlap_policy"),
        ({"idle_timeout_s": None}, "idle_timeout_s"),
        ({"prompt": None}, "prompt"),
        ({"tracing": None}, "tracing"),
    ],
)
def test_null_takes_away_what_may_be_absent(patch: dict[str, Any], field: str) -> None:
    assert update(patch, OTHER) == msgspec.structs.replace(OTHER, **{field: None})


def test_transcription_is_merged_and_switched_off() -> None:
    hinted = update(source({"transcription": {"model": "whisper-1", "language": "de"}}))
    changed = update(source({"transcription": {"language": "fr", "delay": "low"}}), hinted)
    assert changed.audio.input.transcription == Transcription("whisper-1", "fr")
    assert update(source({"transcription": None}), hinted).audio.input.transcription is None


# --------------------------------------------------------------------------- what never fails


@pytest.mark.parametrize(
    "patch",
    [
        sink({"voice": "nobody"}),
        sink({"voice": {"id": "voice_1"}}),
        sink({"voice": 5}),
        sink({"voice": {}}),
        sink({"speed": 99}),
        sink({"speed": "fast"}),
        source({"transcription": {"model": "unheard-of", "language": 5}}),
        source({"transcription": "yes"}),
        source({"noise_reduction": {"type": "magic"}}),
        source({"noise_reduction": "far_field"}),
        {"tracing": "always"},
        {"tracing": {"workflow_name": 5}},
        {"prompt": "pmpt_1"},
        {"truncation": {"type": "retention_ratio"}},
        {"include": ["something.new"]},
        {"include": "everything"},
        {"max_output_tokens": "inf"},
        {"temperature": 0.8, "parallel_tool_calls": True, "reasoning": {"effort": "low"}},
    ],
)
@pytest.mark.parametrize("current", [DEFAULT, OTHER], ids=["default", "other"])
def test_unknown_hints_never_fail_and_what_is_shown_stays_valid(
    patch: dict[str, Any], current: SessionConfig
) -> None:
    """(wire contract, section 5)"""
    session = render(update(patch, current), extended=False, live=LIVE)
    check_server_event({"type": "session.updated", "event_id": "e", "session": session})


def test_a_speed_is_brought_into_range() -> None:
    assert update(sink({"speed": 99})).audio.output.speed == 1.5
    assert update(sink({"speed": 0})).audio.output.speed == 0.25


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        (source({"format": {"type": "g711-ulaw"}}), "session.audio.input.format.type"),
        (source({"format": {"type": "audio/pcm", "rate": 12_345}}), "session.audio.input.format.rate"),
        (sink({"format": {"type": "audio/pcm", "rate": "24000"}}), "session.audio.output.format.rate"),
        (source({"turn_detection": {"type": "vad"}}), "session.audio.input.turn_detection.type"),
        (source({"turn_detection": {"threshold": 7}}), "session.audio.input.turn_detection.threshold"),
        (source({"turn_detection": "server_vad"}), "session.audio.input.turn_detection"),
        ({"audio": 5}, "session.audio"),
        ({"audio": {"input": []}}, "session.audio.input"),
        ({"instructions": 5}, "session.instructions"),
        ({"output_modalities": []}, "session.output_modalities"),
        ({"output_modalities": ["video"]}, "session.output_modalities"),
        ({"output_modalities": [["text"]]}, "session.output_modalities"),
        ({"tools": {}}, "session.tools"),
        ({"tool_choice": "perhaps"}, "session.tool_choice"),
        ({"max_output_tokens": 0}, "session.max_output_tokens"),
        ({"max_output_tokens": "many"}, "session.max_output_tokens"),
        ({"type": "translation"}, "session.type"),
        ({"model": 5}, "session.model"),
        ({"overlap_policy": "shout"}, "session.overlap_policy"),
        ({"overlap_barge_in_ms": -1}, "session.overlap_barge_in_ms"),
        ({"overlap_silence_rms": 2}, "session.overlap_silence_rms"),
        ({"playback_commit_policy": "never"}, "session.playback_commit_policy"),
        ({"idle_timeout_s": 0}, "session.idle_timeout_s"),
        ({"extra_body": []}, "session.extra_body"),
        ({"input_audio_format": "PCM16"}, "session.input_audio_format"),
        ({"output_audio_format": "mp3"}, "session.output_audio_format"),
        ({"turn_detection": {"type": "vad"}}, "session.turn_detection.type"),
        ({"modalities": ["smell"]}, "session.modalities"),
        ({"max_response_output_tokens": -1}, "session.max_response_output_tokens"),
    ],
)
def test_the_field_at_fault_is_named_as_the_client_spelled_it(patch: dict[str, Any], param: str) -> None:
    """(case H-08)"""
    error = refusal(patch)
    assert (error.code, error.param) == (ErrorCode.INVALID_EVENT, param)
    assert param in error.message


def test_stock_connections_have_one_pcm_rate() -> None:
    patch = source({"format": {"type": "audio/pcm", "rate": 16_000}})
    assert refusal(patch, extended=False).param == "session.audio.input.format.rate"
    assert update(patch, extended=True).audio.input.format == AudioFormat(Encoding.PCM16, 16_000)


def test_one_bad_field_refuses_the_whole_update() -> None:
    """(case I-04)"""
    before = copy.deepcopy(OTHER)
    with pytest.raises(ProtocolError):
        update({"instructions": "new", "extra_body": {"a": 2}, "overlap_policy": "shout"}, OTHER)
    assert before == OTHER


# --------------------------------------------------------------------------- the beta shape


def test_the_beta_shape_is_read_from_everyone() -> None:
    beta = {
        "modalities": ["text", "audio"],
        "voice": "cedar",
        "input_audio_format": "g711_ulaw",
        "output_audio_format": "pcm16",
        "input_audio_transcription": {"model": "whisper-1"},
        "input_audio_noise_reduction": {"type": "near_field"},
        "turn_detection": {"type": "server_vad", "silence_duration_ms": 900},
        "temperature": 0.8,
        "max_response_output_tokens": 100,
    }
    official = {
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"},
                "transcription": {"model": "whisper-1"},
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {"type": "server_vad", "silence_duration_ms": 900},
            },
            "output": {"format": {"type": "audio/pcm"}, "voice": "cedar"},
        },
        "max_output_tokens": 100,
    }
    assert update(beta, extended=False) == update(official, extended=False)
    assert update({"turn_detection": None}).audio.input.turn_detection is None


# --------------------------------------------------------------------------- showing it


def test_stock_connections_see_official_keys_only() -> None:
    patch = {"type": "realtime", **source({"turn_detection": {"type": "server_vad", "detector": "amp"}})}
    session = render(merge(OTHER, patch, extended=True), extended=False, live=LIVE)
    assert not {"state", "epoch", "capabilities", "extra_body", "overlap_policy"} & set(session)
    assert "detector" not in session["audio"]["input"]["turn_detection"]
    assert session["audio"]["output"]["format"] is None
    assert (session["id"], session["model"], session["max_output_tokens"]) == ("sess_1", "m", 77)
    check_server_event({"type": "session.updated", "event_id": "e", "session": session})


def test_a_transcription_session_has_no_output_to_show() -> None:
    """(wire contract, section 13)"""
    session = render(merge(OTHER, {"type": "transcription"}, extended=True), extended=False, live=LIVE)
    assert session.keys() == {"type", "id", "object", "expires_at", "audio", "include"}
    assert session["audio"].keys() == {"input"}
    check_server_event({"type": "session.updated", "event_id": "e", "session": session})


def test_extended_connections_see_everything_in_force() -> None:
    session = render(DEFAULT, extended=True, live=LIVE)
    assert session["overlap_short_ack_ms"], session["overlap_barge_in_ms"] == (700, 1200)
    assert (session["overlap_silence_rms"], session["playback_commit_policy"]) == (0.003, "auto")
    assert session["overlap_policy"] is None
    assert session["capabilities"] == LIVE["capabilities"]
    assert session["audio"]["input"]["turn_detection"]["min_speech_ms"] == 96
    check_server_event({"type": "session.created", "event_id": "e", "session": session})


def test_the_defaults_are_those_of_the_contract() -> None:
    assert DEFAULT.audio.input == AudioInput(PCM16_24K, None, None, ServerVad())
    assert (DEFAULT.audio.output.format, DEFAULT.output_modalities) == (PCM16_24K, ("audio",))


# --------------------------------------------------------------------------- anything at all

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _patches(shown: Any) -> st.SearchStrategy[Any]:
    """Objects with the keys of ``shown``: any of them absent, kept, or anything."""
    if not isinstance(shown, dict):
        return st.just(shown) | _JSON
    return st.fixed_dictionaries({}, optional={key: _patches(value) | _JSON for key, value in shown.items()})


_BETA = {
    "voice": "v",
    "modalities": ["text"],
    "input_audio_format": "pcm16",
    "turn_detection": None,
    "speed": 1,
}


@given(_patches(render(OTHER, extended=True, live={}) | _BETA), st.booleans())
def test_any_object_is_merged_whole_or_refused(patch: dict[str, Any], extended: bool) -> None:
    before, asked = copy.deepcopy(OTHER), copy.deepcopy(patch)
    merged = _merged_or_refusal(patch, extended)
    assert (before, asked) == (OTHER, patch)
    if isinstance(merged, ProtocolError):
        assert merged.code in (ErrorCode.INVALID_EVENT, ErrorCode.UNSUPPORTED)
        assert (merged.param or "").startswith("session.")
    else:
        session = render(merged, extended=False, live=LIVE)
        check_server_event({"type": "session.updated", "event_id": "e", "session": session})
        assert merge(merged, render(merged, extended=True, live=LIVE), extended=True) == merged


def _merged_or_refusal(patch: dict[str, Any], extended: bool) -> SessionConfig | ProtocolError:
    try:
        return merge(OTHER, patch, extended=extended)
    except ProtocolError as error:
        return error
