"""The turn segmenter, frame by frame: every rule by example, then properties of all inputs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.audio.detectors import FRAME_SAMPLES, AmpDetector
from counterpoint.audio.turns import (
    EAGERNESS,
    CheckTurnEnd,
    SegmentEvent,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    SpeechStopped,
    TurnConfig,
    TurnSegmenter,
)

from .signals import cuts, flat, pieces

SERVER_VAD = TurnConfig()
SPEECH, NOTHING = 0.9, 0.0


def samples(ms: int) -> int:
    return ms * 24


def frames(*parts: tuple[int, float]) -> list[float]:
    """``(milliseconds, probability)`` pairs as frames; the times must be multiples of 32 ms."""
    assert all(ms % 32 == 0 for ms, _ in parts)
    return [probability for ms, probability in parts for _ in range(ms // 32)]


def segmented(config: TurnConfig, *parts: tuple[int, float]) -> list[SegmentEvent]:
    return TurnSegmenter(config).feed(frames(*parts))


def semantic(eagerness: str, *, has_turn_model: bool = True) -> TurnConfig:
    return TurnConfig(semantic=EAGERNESS[eagerness], has_turn_model=has_turn_model)


def started(onset_ms: int, *, start_ms: int | None = None, min_speech_ms: int = 96) -> SpeechStarted:
    start = max(onset_ms - 300, 0) if start_ms is None else start_ms
    return SpeechStarted(samples(start), samples(onset_ms), samples(onset_ms + min_speech_ms))


def paused(speech_end_ms: int) -> SpeechPaused:
    return SpeechPaused(samples(speech_end_ms + 100))


def stopped(ms: int) -> SpeechStopped:
    return SpeechStopped(samples(ms))


# --- one utterance


def test_an_utterance_has_padding_before_and_silence_after() -> None:
    """(invariant 107)"""
    events = segmented(SERVER_VAD, (640, NOTHING), (320, SPEECH), (640, NOTHING))
    assert events == [started(640, start_ms=340), paused(960), stopped(960 + 500)]


def test_speech_from_the_first_sample_starts_at_zero() -> None:
    """(case L-04)"""
    assert segmented(SERVER_VAD, (96, SPEECH)) == [started(0, start_ms=0)]


def test_padding_stops_at_the_previous_end() -> None:
    """(invariant 107)"""
    config = replace(SERVER_VAD, silence_duration_ms=160)
    events = segmented(config, (96, SPEECH), (192, NOTHING), (96, SPEECH))
    assert events == [started(0), paused(96), stopped(256), started(288, start_ms=256)]


def test_several_utterances_in_one_append() -> None:
    one = ((640, NOTHING), (320, SPEECH))
    events = segmented(SERVER_VAD, *one, *one, *one, (640, NOTHING))
    onsets = [event.onset_sample for event in events if isinstance(event, SpeechStarted)]
    ends = [event.end_sample for event in events if isinstance(event, SpeechStopped)]
    assert onsets == [samples(ms) for ms in (640, 1600, 2560)]
    assert ends == [samples(ms + 320 + 500) for ms in (640, 1600, 2560)]


@pytest.mark.parametrize("threshold", [0.01, 0.05, 0.10, 0.15, 0.16, 0.5, 1.0])
def test_digital_silence_ends_a_turn_at_every_threshold(threshold: float) -> None:
    """(case L-03)"""
    events = segmented(replace(SERVER_VAD, threshold=threshold), (320, 1.0), (512, NOTHING))
    assert events == [started(0), paused(320), stopped(320 + 500)]


@pytest.mark.parametrize("silence_ms", [0, 1, 32, 100, 101, 200, 500, 3000])
def test_the_end_is_exact_whatever_the_frame_it_falls_in(silence_ms: int) -> None:
    config = replace(SERVER_VAD, silence_duration_ms=silence_ms)
    events = segmented(config, (320, SPEECH), (3200, NOTHING))
    assert events[-1] == stopped(320 + silence_ms)


def test_an_end_is_noticed_in_the_frame_that_completes_it() -> None:
    segmenter = TurnSegmenter(replace(SERVER_VAD, silence_duration_ms=320))
    assert segmenter.feed(frames((320, SPEECH), (288, NOTHING))) == [started(0), paused(320)]
    assert segmenter.feed(frames((32, NOTHING))) == [stopped(320 + 320)]


# --- what is speech


def test_short_bursts_and_faint_noise_are_not_speech() -> None:
    """(case E-07)"""
    config = replace(SERVER_VAD, min_speech_ms=200)
    events = segmented(config, (64, SPEECH), (9984, 0.3), (416, SPEECH))
    assert events == [started(64 + 9984, min_speech_ms=224)]


def test_ten_minutes_of_noise_below_the_threshold_open_nothing() -> None:
    """(case L-09)"""
    assert segmented(SERVER_VAD, (600_000, 0.3)) == []


def test_speech_accumulates_over_gaps_shorter_than_a_pause() -> None:
    gappy = [(32, SPEECH), (96, NOTHING)] * 2 + [(32, SPEECH)]
    assert segmented(SERVER_VAD, *gappy) == [started(0, min_speech_ms=288)]


def test_a_pause_forgets_a_burst() -> None:
    assert segmented(SERVER_VAD, (64, SPEECH), (128, NOTHING), (64, SPEECH), (128, NOTHING)) == []


def test_noise_between_the_thresholds_does_not_keep_a_burst_waiting() -> None:
    segmenter = TurnSegmenter(SERVER_VAD)
    assert segmenter.feed(frames((32, SPEECH), (6400, 0.4))) == []
    assert segmenter.keep_from == samples(32 + 6400 - 300)


@pytest.mark.parametrize(("probability", "ends"), [(0.35, False), (0.34, True)])
def test_an_utterance_goes_on_above_the_lower_threshold(probability: float, ends: bool) -> None:
    """(invariant 106)"""
    events = segmented(SERVER_VAD, (320, SPEECH), (960, probability))
    assert any(isinstance(event, SpeechStopped) for event in events) is ends


def test_speech_restarts_the_silence_timer() -> None:
    """(invariant 106)"""
    events = segmented(SERVER_VAD, (320, SPEECH), (480, NOTHING), (32, 0.36), (512, NOTHING))
    assert events == [
        started(0),
        paused(320),
        SpeechResumed(samples(800)),
        paused(832),
        stopped(832 + 500),
    ]


def test_what_is_no_speech_does_not_restart_it() -> None:
    """(invariant 106)"""
    events = segmented(SERVER_VAD, (320, SPEECH), (256, NOTHING), (32, 0.34), (256, NOTHING))
    assert events[-1] == stopped(320 + 500)


def test_accumulated_speech_leaves_silence_out() -> None:
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((64, SPEECH)))
    assert segmenter.speech_samples == samples(64)
    segmenter.feed(frames((256, SPEECH), (320, NOTHING), (64, SPEECH)))
    assert segmenter.speech_samples == samples(64 + 256 + 64)
    segmenter.feed(frames((512, NOTHING)))
    assert segmenter.speech_samples == 0


# --- semantic turn ends

CHECK_AFTER_MS = {"high": 200, "medium": 300, "auto": 300, "low": 500}
CAP_MS = {"high": 800, "medium": 2000, "auto": 2000, "low": 4000}
UNAIDED_MS = {"high": 300, "medium": 500, "auto": 500, "low": 800}


@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_the_turn_model_is_asked_once_per_pause_and_the_cap_ends_the_turn(eagerness: str) -> None:
    """(wire contract, section 4)"""
    check_ms = CHECK_AFTER_MS[eagerness]
    assert segmented(semantic(eagerness), (320, SPEECH), (4096, NOTHING)) == [
        started(0),
        paused(320),
        CheckTurnEnd(samples(320 + check_ms), check_ms),
        stopped(320 + CAP_MS[eagerness]),
    ]


@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_without_a_turn_model_a_fixed_silence_ends_the_turn(eagerness: str) -> None:
    """(wire contract, section 4)"""
    config = semantic(eagerness, has_turn_model=False)
    events = segmented(config, (320, SPEECH), (4096, NOTHING))
    assert events == [started(0), paused(320), stopped(320 + UNAIDED_MS[eagerness])]


@pytest.mark.parametrize(
    ("eagerness", "no", "yes"), [("high", 0.5, 0.51), ("auto", 0.5, 0.51), ("low", 0.8, 0.81)]
)
def test_a_yes_ends_the_turn_where_it_was_asked(eagerness: str, no: float, yes: float) -> None:
    segmenter = TurnSegmenter(semantic(eagerness))
    check = segmenter.feed(frames((320, SPEECH), (512, NOTHING)))[-1]
    assert isinstance(check, CheckTurnEnd)
    assert segmenter.turn_probability(check.at_sample, no) == []
    segmenter.feed(frames((96, NOTHING)))
    assert segmenter.turn_probability(check.at_sample, yes) == [SpeechStopped(check.at_sample)]
    assert not segmenter.in_utterance
    assert segmenter.turn_probability(check.at_sample, yes) == []


def test_an_answer_about_an_earlier_pause_has_no_effect() -> None:
    segmenter = TurnSegmenter(semantic("high"))
    first = segmenter.feed(frames((320, SPEECH), (224, NOTHING)))[-1]
    assert isinstance(first, CheckTurnEnd)
    assert segmenter.feed(frames((64, SPEECH))) == [SpeechResumed(samples(544))]
    assert segmenter.turn_probability(first.at_sample, 1.0) == []
    second = segmenter.feed(frames((224, NOTHING)))[-1]
    assert isinstance(second, CheckTurnEnd)
    assert segmenter.turn_probability(first.at_sample, 1.0) == []
    assert segmenter.turn_probability(second.at_sample, 1.0) == [SpeechStopped(second.at_sample)]


def test_an_answer_after_the_turn_is_over_has_no_effect() -> None:
    segmenter = TurnSegmenter(semantic("high"))
    events = segmenter.feed(frames((320, SPEECH), (832, NOTHING)))
    assert events[-1] == stopped(320 + 800)
    assert segmenter.turn_probability(samples(320 + 200), 1.0) == []


# --- the clock


def test_a_stall_ends_an_utterance_where_the_input_ends() -> None:
    """(case L-05)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((800, SPEECH)))
    assert segmenter.stall(samples(810)) == [stopped(810)]
    assert segmenter.stall(samples(810)) == []


def test_after_a_stall_no_utterance_reaches_back_before_it() -> None:
    """The frame in progress began before the stall and is completed after it (case L-05)."""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((800, SPEECH)))
    segmenter.stall(samples(810))
    [event] = segmenter.feed(frames((96, SPEECH)))
    assert event == SpeechStarted(samples(810), samples(810), samples(896))


def test_a_stall_forgets_a_burst() -> None:
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((64, SPEECH)))
    assert segmenter.stall(samples(64)) == []
    assert segmenter.feed(frames((64, SPEECH))) == []


@pytest.mark.parametrize("speech_ms", [64, 320])
def test_clear_forgets_the_onset_and_keeps_the_clock(speech_ms: int) -> None:
    """(case H-12, invariant 108)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((960, NOTHING), (speech_ms, SPEECH)))
    segmenter.clear(samples(1300))
    assert not segmenter.in_utterance
    assert segmenter.keep_from == samples(1300)
    assert segmenter.feed(frames((64, SPEECH), (1920, NOTHING))) == []
    [event] = segmenter.feed(frames((96, SPEECH)))
    assert event == started(1300 + 64 + 1920)


def test_no_utterance_reaches_back_before_a_clear() -> None:
    """(case H-12)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((960, NOTHING)))
    segmenter.clear(samples(970))
    assert segmenter.feed(frames((96, SPEECH))) == [started(970, start_ms=970)]


def test_a_reset_of_the_detector_moves_frames_not_the_utterance() -> None:
    """(invariant 108)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    assert segmenter.feed(frames((320, SPEECH))) == [started(0)]
    segmenter.realign(samples(330))
    assert segmenter.feed(frames((96, SPEECH), (512, NOTHING))) == [paused(426), stopped(426 + 500)]


def test_timestamps_do_not_drift_over_half_an_hour_of_odd_chunks() -> None:
    """(case H-11)"""
    detector, segmenter = AmpDetector(), TurnSegmenter(SERVER_VAD)
    chunk = bytes(2 * 441)
    events = [event for _ in range(100_000) for event in segmenter.feed(detector.feed(chunk))]
    assert events == []
    events = segmenter.feed(detector.feed(flat(samples(800), SPEECH) + bytes(2 * samples(600))))
    first, last = events[0], events[-1]
    assert isinstance(first, SpeechStarted)
    assert isinstance(last, SpeechStopped)
    spoken = 100_000 * 441
    assert abs(first.onset_sample - spoken) < FRAME_SAMPLES
    assert first.start_sample == first.onset_sample - samples(300)
    assert abs(last.end_sample - spoken - samples(800 + 500)) < FRAME_SAMPLES


def test_the_five_hundredth_turn_is_as_the_first() -> None:
    """Some turns are cleared away, as after an interruption (case L-08)."""
    segmenter = TurnSegmenter(SERVER_VAD)
    period_ms = 640 + 320 + 640
    for turn in range(500):
        begin = turn * period_ms
        events = segmenter.feed(frames((640, NOTHING), (320, SPEECH)))
        assert events == [started(begin + 640, start_ms=begin + 340)]
        if turn % 4 == 3:
            segmenter.clear(samples(begin + 960))
        ending = segmenter.feed(frames((640, NOTHING)))
        assert ending == ([] if turn % 4 == 3 else [paused(begin + 960), stopped(begin + 1460)])


# --- reconfiguration


def test_new_rules_within_an_utterance_keep_it() -> None:
    """(case L-07)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    assert segmenter.feed(frames((640, NOTHING), (192, SPEECH))) == [started(640)]
    segmenter.reconfigure(replace(SERVER_VAD, threshold=0.6, silence_duration_ms=200))
    assert segmenter.feed(frames((192, SPEECH), (224, NOTHING))) == [paused(1024), stopped(1024 + 200)]


def test_new_rules_within_a_burst_keep_it() -> None:
    """(case L-07)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((640, NOTHING), (64, SPEECH)))
    segmenter.reconfigure(replace(SERVER_VAD, threshold=0.6))
    assert segmenter.feed(frames((320, SPEECH))) == [started(640)]


def test_new_rules_before_an_onset_hold_for_it() -> None:
    """(case L-07)"""
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((640, NOTHING)))
    segmenter.reconfigure(replace(SERVER_VAD, silence_duration_ms=200, prefix_padding_ms=100))
    events = segmenter.feed(frames((320, SPEECH), (224, NOTHING)))
    assert events == [started(640, start_ms=540), paused(960), stopped(960 + 200)]


def test_more_padding_reaches_no_further_back_than_what_was_kept() -> None:
    segmenter = TurnSegmenter(replace(SERVER_VAD, prefix_padding_ms=100))
    segmenter.feed(frames((960, NOTHING)))
    assert segmenter.keep_from == samples(860)
    segmenter.reconfigure(replace(SERVER_VAD, prefix_padding_ms=500))
    assert segmenter.feed(frames((96, SPEECH))) == [started(960, start_ms=860)]


def test_a_turn_model_that_comes_in_a_pause_is_asked_in_that_pause() -> None:
    segmenter = TurnSegmenter(SERVER_VAD)
    segmenter.feed(frames((320, SPEECH), (320, NOTHING)))
    segmenter.reconfigure(semantic("high"))
    [check] = segmenter.feed(frames((32, NOTHING)))
    assert check == CheckTurnEnd(samples(320 + 200), 200)
    segmenter.reconfigure(SERVER_VAD)
    assert segmenter.turn_probability(samples(320 + 200), 1.0) == []
    assert segmenter.feed(frames((160, NOTHING))) == [stopped(320 + 500)]


# --- properties

CONFIGS = [
    SERVER_VAD,
    TurnConfig(threshold=0.05, prefix_padding_ms=0, silence_duration_ms=64, min_speech_ms=0),
    TurnConfig(prefix_padding_ms=1000, silence_duration_ms=150, min_speech_ms=200),
    semantic("high"),
    semantic("low", has_turn_model=False),
]

probabilities = st.lists(
    st.tuples(st.sampled_from([0.0, 0.03, 0.3, 0.4, 0.6, 1.0]), st.integers(1, 30)), max_size=30
).map(lambda runs: [probability for probability, length in runs for _ in range(length)])


@given(config=st.sampled_from(CONFIGS), stream=probabilities)
def test_utterances_never_overlap_and_positions_never_go_back(
    config: TurnConfig, stream: list[float]
) -> None:
    """And the audio of every utterance is among what the segmenter asked to keep (invariant 107)."""
    segmenter = TurnSegmenter(config)
    last_end = kept = 0
    open_utterance: SpeechStarted | None = None
    for number, probability in enumerate(stream, start=1):
        for event in segmenter.feed([probability]):
            match event:
                case SpeechStarted(start, onset, confirmed):
                    assert open_utterance is None
                    assert last_end <= start <= onset < confirmed == number * FRAME_SAMPLES
                    assert start >= kept
                    assert onset - start <= samples(config.prefix_padding_ms)
                    open_utterance = event
                case SpeechStopped(end):
                    assert open_utterance is not None
                    assert open_utterance.confirmed_at_sample <= end <= number * FRAME_SAMPLES
                    last_end, open_utterance = end, None
                case SpeechPaused(at) | SpeechResumed(at) | CheckTurnEnd(at):
                    assert open_utterance is not None
                    assert open_utterance.onset_sample < at <= number * FRAME_SAMPLES
        assert segmenter.in_utterance is (open_utterance is not None)
        assert segmenter.keep_from >= kept
        kept = segmenter.keep_from


@given(config=st.sampled_from(CONFIGS), stream=probabilities)
def test_after_a_burst_audio_is_kept_no_longer_than_needed(config: TurnConfig, stream: list[float]) -> None:
    """Outside an utterance: padding, and a burst that is decided soon (case C-15)."""
    segmenter = TurnSegmenter(config)
    longest_burst = 4 * (samples(config.min_speech_ms) + FRAME_SAMPLES)
    for number, probability in enumerate(stream, start=1):
        segmenter.feed([probability])
        if not segmenter.in_utterance:
            held = number * FRAME_SAMPLES - segmenter.keep_from
            assert held <= samples(config.prefix_padding_ms) + longest_burst + samples(
                config.silence_limit_ms
            )


@settings(max_examples=40, deadline=None)
@given(data=st.data(), config=st.sampled_from(CONFIGS))
def test_detection_does_not_depend_on_how_audio_is_cut(data: st.DataObject, config: TurnConfig) -> None:
    """(invariant 105)"""
    spans = data.draw(st.lists(st.tuples(st.integers(1, 900), st.sampled_from([0.0, 0.4, 0.9])), max_size=6))
    audio = b"".join(flat(samples(ms), probability) for ms, probability in spans)
    places = data.draw(cuts(len(audio) // 2, unit=2))
    detector, segmenter = AmpDetector(), TurnSegmenter(config)
    found = [event for piece in pieces(audio, places) for event in segmenter.feed(detector.feed(piece))]
    assert found == TurnSegmenter(config).feed(AmpDetector().feed(audio))
