"""All engines together: loading, warming up, and what they take."""

import subprocess
import sys
from pathlib import Path

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.voice.engines import VoiceEngines, resident_bytes

MOST_RESIDENT = 550 * 2**20

MEASURE = """
import pathlib
import onnxruntime
from counterpoint.models.voice.engines import VoiceEngines, resident_bytes

def threads():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))

before = threads()
engines = VoiceEngines.load()
engines.warm_up()
print(resident_bytes(), threads() - before)
"""


@pytest.mark.voice
def test_progress_names_each_engine_before_it_is_loaded() -> None:
    names: list[str] = []
    VoiceEngines.load(progress=names.append)
    assert names == ["vad", "turn_end", "asr", "llm", "tts"]


@pytest.mark.voice
def test_an_engine_that_is_elsewhere_is_neither_loaded_nor_warmed_up() -> None:
    names: list[str] = []
    VoiceEngines.load(progress=names.append, without=("asr", "llm")).warm_up(("asr", "llm"))
    assert names == ["vad", "turn_end", "tts"]


@pytest.mark.voice
def test_a_process_with_all_engines_fits_its_memory_and_has_no_threads_of_theirs() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    resident, threads = map(int, done.stdout.split())
    assert 0 < resident < MOST_RESIDENT
    assert threads == 0
    assert done.stderr == ""


@pytest.mark.voice
def test_importing_the_engines_imports_no_runtime() -> None:
    """Start-up of a server with another model must not pay for this one."""
    code = (
        "import sys, counterpoint.models.voice.engines, counterpoint.models.voice.install;"
        "print({'onnxruntime', 'hibari', 'ik_llama_cpp'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.voice
def test_a_directory_without_weights_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="install-voice"):
        VoiceEngines.load(tmp_path)


@pytest.mark.voice
def test_another_language_model_can_be_configured(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"broken")
    with pytest.raises(ConfigurationError, match=r"mine\.gguf is not a GGUF model"):
        VoiceEngines.load(llm=path)


def test_resident_memory_is_that_of_this_process() -> None:
    before = resident_bytes()
    ballast = bytearray(64 * 2**20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert resident_bytes() - before > 48 * 2**20
