"""``talk``: recorded questions are understood and answered aloud; what is no question is refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.audio.wav import read_wav, write_wav
from counterpoint.models.voice.asr import MoonshineAsr
from counterpoint.models.voice.files import find_files
from counterpoint.testing.server import running_server

AUDIO = Path(__file__).parents[1] / "data" / "audio"
WORDS = {
    "go_forward": "go forward ten meters",
    "ill_disposed": "he was not an ill disposed young man",
    "made_amiable": "he might even have been made amiable himself",
}


def talk(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "counterpoint", "talk", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def answer_to(*arguments: str | Path) -> dict[str, Any]:
    done = talk(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def words(text: str) -> list[str]:
    return "".join(c.lower() if c.isalnum() or c.isspace() else " " for c in text).split()


def distance(found: list[str], expected: list[str]) -> int:
    """Words to insert, delete or replace."""
    row = list(range(len(expected) + 1))
    for i, word in enumerate(found, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(expected, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != other))
    return row[-1]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "empty"), (b"not audio at all", "not a WAV"), (None, "cannot be read")]
)
def test_what_is_no_recording_is_one_line_and_exit_code_2(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    question = tmp_path / "question.wav"
    if content is not None:
        question.write_bytes(content)
    done = talk(question, "--out", tmp_path / "answer.wav")
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "answer.wav").exists()


def test_a_recording_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    question = tmp_path / "question.wav"
    question.write_bytes((AUDIO / "go_forward.wav").read_bytes()[:5000])
    done = talk(question, "--out", tmp_path / "answer.wav")
    assert done.returncode == 2
    assert "cut off" in done.stderr


def test_where_the_answer_cannot_go_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "missing" / "answer.wav"):
        done = talk(AUDIO / "go_forward.wav", "--out", out)
        assert done.returncode == 2
        assert done.stderr == f"counterpoint: --out: {out} cannot be a file\n"


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    write_wav(tmp_path / "q.wav", bytes(48_000))
    done = talk(tmp_path / "q.wav", "--out", tmp_path / "a.wav", "--url", "ws://127.0.0.1:9")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_talking_to_the_scripted_model(tmp_path: Path) -> None:
    """Any of our models answers: here with one second of the script's ramp."""
    answer = answer_to(AUDIO / "go_forward.wav", "--model", "scripted", "--out", tmp_path / "a.wav", "--fast")
    (turn,) = answer["turns"]
    assert turn["status"] == "completed"
    assert turn["audio_s"] == 1.0
    pcm = np.frombuffer(read_wav(tmp_path / "a.wav"), "<i2")
    assert (pcm == (7919 + np.arange(24_000)) % 32768).all()


def test_two_questions_are_two_turns_and_are_told_in_words(tmp_path: Path) -> None:
    files = [AUDIO / "go_forward.wav", AUDIO / "ill_disposed.wav"]
    done = talk(*files, "--model", "scripted", "--out", tmp_path / "a.wav", "--fast")
    assert done.returncode == 0
    for file in files:
        assert f"you ({file.name}):" in done.stdout
    assert done.stdout.count("voice: word1 word2") == 2
    assert done.stdout.count("first audio") == 2
    pcm = np.frombuffer(read_wav(tmp_path / "a.wav"), "<i2")
    both = [(response * 7919 + np.arange(24_000)) % 32768 for response in (1, 2)]
    assert (pcm == np.concatenate(both)).all()


async def test_a_running_server_is_asked_for_its_model(tmp_path: Path) -> None:
    async with running_server() as server:
        where = ("--url", server.url, "--fast", "--out", tmp_path / "a.wav")
        refused = await asyncio.to_thread(talk, AUDIO / "go_forward.wav", *where, "--model", "nope")
        answered = await asyncio.to_thread(talk, AUDIO / "go_forward.wav", *where, "--model", "scripted")
    assert refused.returncode == 1
    assert "counterpoint: model_not_found" in refused.stderr
    assert answered.returncode == 0, answered.stderr


def test_the_server_that_it_started_goes_with_it(tmp_path: Path) -> None:
    arguments = ["talk", AUDIO / "go_forward.wav", "--model", "scripted", "--out", tmp_path / "a.wav"]
    command = [sys.executable, "-m", "counterpoint", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as talking:
        assert talking.stderr is not None
        while "speaking" not in talking.stderr.readline():
            pass
        (server,) = Path(f"/proc/{talking.pid}/task/{talking.pid}/children").read_text().split()
        talking.terminate()
        assert talking.wait(20) != 0
    assert not Path(f"/proc/{server}").exists()


@pytest.mark.voice
def test_real_speech_is_recognised_and_answered_aloud(tmp_path: Path) -> None:
    """Three turns: at most 15 % of the words wrong, and answers that say what is printed."""
    out = tmp_path / "answers.wav"
    turns = answer_to(*(AUDIO / f"{name}.wav" for name in WORDS), "--out", out)["turns"]
    heard = [word for turn in turns for word in words(turn["heard"])]
    expected = [word for text in WORDS.values() for word in words(text)]
    assert distance(heard, expected) / len(expected) <= 0.15
    pcm = np.frombuffer(read_wav(out, 16_000), "<i2").astype(np.float32) / np.float32(32768)
    assert np.abs(pcm).max() > 0.1
    at, asr = 0, MoonshineAsr(find_files().asr)
    for turn in turns:
        samples = round(turn["audio_s"] * 16_000)
        again = asr.transcribe(pcm[at : at + samples])
        at += samples
        said = words(turn["answer"])
        assert distance(words(again), said) / len(said) <= 0.2, (again, turn["answer"])
