"""Voice activity: speech is speech, noise is not, and nobody's frames touch anybody else's."""

import numpy as np
import pytest

from counterpoint.models.voice.engines import VoiceEngines
from counterpoint.models.voice.files import find_files
from counterpoint.models.voice.runtime import load_onnx
from counterpoint.models.voice.vad import FRAME_SAMPLES, SileroVad, VadState

from .speech import RECORDINGS, Audio, noise, recording, silence

pytestmark = pytest.mark.voice

#: The default threshold of server turn detection.
THRESHOLD = 0.5


@pytest.fixture
def vad(engines: VoiceEngines) -> SileroVad:
    return engines.vad


def alone(vad: SileroVad, audio: Audio) -> list[float]:
    """Probabilities of one session that is the only one."""
    state = vad.new_state()
    return [vad.probabilities([(state, frame)])[0] for frame in state.frames(audio)]


@pytest.mark.parametrize("name", RECORDINGS)
def test_speech_is_heard_and_the_silence_around_it_is_not(vad: SileroVad, name: str) -> None:
    speech = recording(name)
    p = alone(vad, np.concatenate([silence(1.0), speech, silence(1.0)]))
    edge = 16_000 // FRAME_SAMPLES
    assert max(p[:edge]) < THRESHOLD
    assert max(p[-edge + 10 :]) < THRESHOLD
    during = p[edge : edge + len(speech) // FRAME_SAMPLES]
    assert sum(one > THRESHOLD for one in during) > len(during) / 2


def test_the_model_gets_the_end_of_the_frame_before(vad: SileroVad) -> None:
    """64 samples of context in front of each frame, and its own state: the model's contract, written out."""
    audio = recording("go_forward")
    audio = audio[: len(audio) // FRAME_SAMPLES * FRAME_SAMPLES]
    model, rate = load_onnx(find_files().vad), np.array(16_000, np.int64)
    recurrent, expected = np.zeros((2, 1, 128), np.float32), []
    lead = np.concatenate([np.zeros(64, np.float32), audio])
    for start in range(0, len(audio), FRAME_SAMPLES):
        window = lead[None, start : start + 64 + FRAME_SAMPLES]
        speech, recurrent = model.run(None, {"input": window, "state": recurrent, "sr": rate})
        expected.append(float(speech[0, 0]))
    assert alone(vad, audio) == expected


def test_frames_do_not_depend_on_how_the_samples_arrive() -> None:
    speech = recording("go_forward")
    cuts = np.cumsum(np.random.default_rng(1).integers(0, 1400, 60))
    whole = VadState().frames(speech)
    state = VadState()
    pieces = [frame for part in np.split(speech, cuts[cuts < len(speech)]) for frame in state.frames(part)]
    assert len(whole) == len(speech) // FRAME_SAMPLES
    np.testing.assert_array_equal(pieces, whole)


def test_results_are_the_same_alone_and_among_neighbours(vad: SileroVad) -> None:
    """Shared model, state per session: interleaved equals separate (invariant 109)."""
    audios = [recording("made_amiable"), recording("ill_disposed"), noise(3.0, 0.1), silence(3.0)]
    states = [vad.new_state() for _ in audios]
    frames = [state.frames(audio)[:90] for state, audio in zip(states, audios, strict=True)]
    together = [vad.probabilities(list(zip(states, row, strict=True))) for row in zip(*frames, strict=True)]
    for session, audio in enumerate(audios):
        assert [row[session] for row in together] == alone(vad, audio)[: len(together)]


def test_thirty_interleaved_sessions_do_not_hear_each_other(vad: SileroVad) -> None:
    """Odd sessions speak, each at its own time; even ones are silent (case C-20)."""
    lead_frames = range(30)
    states = [vad.new_state() for _ in lead_frames]
    speech = recording("go_forward")
    audios = [
        np.concatenate([silence(lead * FRAME_SAMPLES / 16_000), speech]) if lead % 2 else silence(4.0)
        for lead in lead_frames
    ]
    frames = [state.frames(audio)[:80] for state, audio in zip(states, audios, strict=True)]
    onset: dict[int, int] = {}
    for step in range(80):
        p = vad.probabilities([(state, mine[step]) for state, mine in zip(states, frames, strict=True)])
        for session, one in enumerate(p):
            if one > THRESHOLD:
                onset.setdefault(session, step)
    expected = {
        session: next(i for i, one in enumerate(alone(vad, audio)) if one > THRESHOLD)
        for session, audio in enumerate(audios)
        if session % 2
    }
    assert onset == expected


@pytest.mark.slow
def test_ten_minutes_of_faint_noise_and_of_nothing_are_not_speech(vad: SileroVad) -> None:
    """White noise at -50 dBFS and digital zero (case L-09)."""
    states = [vad.new_state(), vad.new_state()]
    highest = 0.0
    for minute in range(10):
        faint = states[0].frames(noise(60.0, 10 ** (-50 / 20), seed=minute))
        nothing = states[1].frames(silence(60.0))
        for row in zip(faint, nothing, strict=True):
            highest = max(highest, *vad.probabilities(list(zip(states, row, strict=True))))
    assert highest < THRESHOLD


def test_no_frames_no_run(vad: SileroVad) -> None:
    assert vad.probabilities([]) == []


def test_two_frames_of_one_session_in_one_run_are_refused(vad: SileroVad) -> None:
    state, frame = vad.new_state(), np.zeros(FRAME_SAMPLES, np.float32)
    with pytest.raises(ValueError, match="one frame per session"):
        vad.probabilities([(state, frame), (state, frame)])


def test_a_frame_of_another_length_is_refused(vad: SileroVad) -> None:
    with pytest.raises(ValueError, match="512 samples, not 160"):
        vad.probabilities([(vad.new_state(), np.zeros(160, np.float32))])
