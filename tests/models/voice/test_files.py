"""Where the weights are looked for, and what is said when they are not there."""

from pathlib import Path

import pytest

from counterpoint.errors import ConfigurationError
from counterpoint.models.voice import files
from counterpoint.models.voice.files import (
    DIRECTORY_VARIABLE,
    MODEL_FILES,
    default_directory,
    find_files,
    require_runtime,
)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment of its own, without weights, and without the variable of whoever runs the tests."""
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "environment"))


def filled(directory: Path) -> Path:
    for relative in MODEL_FILES:
        (directory / relative).parent.mkdir(parents=True, exist_ok=True)
        (directory / relative).touch()
    return directory


def test_an_explicit_directory_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(filled(tmp_path / "variable")))
    found = find_files(filled(tmp_path / "explicit"))
    assert found.vad == tmp_path / "explicit" / "silero_vad/data/silero_vad.onnx"
    assert found.asr == tmp_path / "explicit" / "moonshine_voice/assets/tiny-en"


def test_the_variable_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(default_directory())
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(filled(tmp_path / "variable")))
    assert find_files().llm.is_relative_to(tmp_path / "variable")


def test_the_environment_comes_before_installed_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(default_directory())
    monkeypatch.syspath_prepend(filled(tmp_path / "packages"))
    assert find_files().llm.is_relative_to(tmp_path / "environment" / "share")


def test_installed_packages_are_found_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = filled(tmp_path / "packages")
    for package in {relative.split("/", 1)[0] for relative in MODEL_FILES}:
        (packages / package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(packages)
    assert find_files().turn_end.is_relative_to(packages / "pipecat")


def test_no_fall_back_from_a_directory_that_was_named(tmp_path: Path) -> None:
    filled(default_directory())
    with pytest.raises(ConfigurationError, match="elsewhere"):
        find_files(tmp_path / "elsewhere")


@pytest.mark.parametrize("missing", MODEL_FILES)
def test_what_is_missing_is_named_with_the_cure_in_one_line(tmp_path: Path, missing: str) -> None:
    (filled(tmp_path) / missing).unlink()
    with pytest.raises(ConfigurationError) as caught:
        find_files(tmp_path)
    message = str(caught.value)
    assert missing in message
    assert "pip install 'counterpoint[voice]'" in message
    assert "counterpoint install-voice" in message
    assert "\n" not in message
    assert caught.value.key == "voice.directory"


def test_a_missing_runtime_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "RUNTIME_MODULES", ("json", "no_such_runtime"))
    with pytest.raises(ConfigurationError, match=r"no_such_runtime not installed; .*install-voice") as caught:
        require_runtime()
    assert "json" not in caught.value.reason
