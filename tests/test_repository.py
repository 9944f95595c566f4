"""The repository keeps what it says about itself: layers, lock files, generated pages, links, commands."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest
from tools import command_line_reference, conformance_reference, conversation_reference, settings_reference

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "counterpoint"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
CLIENT_LOCKS = sorted((ROOT / "requirements" / "clients").glob("*.lock"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- layers -------------------------------------------------------------------------------------


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Hold the package ``folder / "counterpoint"`` against the contracts in ``folder / "pyproject.toml"``."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from importlinter.cli import *; "
    code += "lint_imports_command()"
    arguments = ["--no-cache", "--config", str(folder / "pyproject.toml")]
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=50
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with its contracts, to break them."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "counterpoint", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_layers_are_kept(copy: Path) -> None:
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout


def test_what_breaks_a_layer_is_found(copy: Path) -> None:
    package = copy / "counterpoint"
    (package / "unheard_of").mkdir()
    (package / "unheard_of" / "__init__.py").touch()
    (package / "protocol" / "upwards.py").write_text("import counterpoint.plugins.contract\n")
    (package / "session" / "sleepy.py").write_text("import asyncio\n")
    (package / "plugins" / "nosy.py").write_text("import counterpoint.session.inputs\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    for finding in (
        "counterpoint.unheard_of",
        "counterpoint.protocol.upwards -> counterpoint.plugins.contract",
        "counterpoint.session.sleepy -> asyncio",
        "counterpoint.plugins.nosy -> counterpoint.session.inputs",
    ):
        assert finding in done.stdout


def test_every_folder_with_code_is_a_package() -> None:
    """A folder without ``__init__.py`` would be invisible to the contracts."""
    folders = {file.parent for file in PACKAGE.rglob("*.py")}
    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("module", sorted(PACKAGE.rglob("*.py")), ids=name_of)
def test_a_module_says_what_it_owns_what_not_and_why_it_is_there(module: Path) -> None:
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    missing = [part for part in ("Owns: ", "Does not own: ", "Here because: ") if part not in text]
    assert missing == []


# --- what is installed --------------------------------------------------------------------------


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: Path) -> dict[str, set[str]]:
    """The versions that a lock file names for each distribution; one may have several, by Python version."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE):
        found.setdefault(normal(name), set()).add(version)
    return found


@pytest.mark.parametrize("lock", [*LOCKS, *CLIENT_LOCKS], ids=name_of)
def test_a_lock_file_has_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert "--index" not in text
    requirements = re.findall(r"^\w.*(?:\n    .*)*", text, re.MULTILINE)
    assert len(requirements) == sum(map(len, pins(lock).values())) > 0
    assert [requirement for requirement in requirements if "--hash=sha256:" not in requirement] == []


@pytest.mark.parametrize("lock", ["core", "dev", "voice"])
def test_a_lock_file_holds_what_the_project_requires(lock: str) -> None:
    extra = PROJECT["optional-dependencies"].get(lock, [])
    required = {normal(re.split(r"[^\w.-]", line)[0]) for line in [*PROJECT["dependencies"], *extra]}
    assert required - pins(ROOT / "requirements" / f"{lock}.lock").keys() == set()


def test_lock_files_agree() -> None:
    seen: dict[str, set[str]] = {}
    for lock in LOCKS:
        for name, versions in pins(lock).items():
            assert seen.setdefault(name, versions) == versions, f"{name} in {lock.name}"


def test_the_voice_installer_and_the_lock_file_agree() -> None:
    locked = pins(ROOT / "requirements" / "voice.lock")
    for name, versions in pins(PACKAGE / "models" / "voice" / "requirements" / "runtime.txt").items():
        assert locked[name] == versions


@pytest.mark.parametrize("name", PROJECT["entry-points"]["counterpoint.plugins"])
def test_an_announced_plugin_is_there(name: str) -> None:
    value = PROJECT["entry-points"]["counterpoint.plugins"][name]
    assert callable(EntryPoint(name, value, "counterpoint.plugins").load())


def test_an_unsuitable_python_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1\n[ "$1" = --version ]\n')
    old.chmod(0o755)
    done = subprocess.run([ROOT / "tools" / "find-python.sh", old], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11" in done.stderr
    assert "found: Python 3.9.1." in done.stderr


def test_a_suitable_python_is_found() -> None:
    done = subprocess.run([ROOT / "tools" / "find-python.sh", sys.executable], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, sys.executable)


# --- what is written ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [settings_reference, command_line_reference, conformance_reference, conversation_reference],
    ids=lambda page: page.__name__,
)
def test_a_generated_page_is_fresh(page: ModuleType) -> None:
    assert page.PAGE.read_text() == page.render(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_can_be_found_from_the_index() -> None:
    docs = ROOT / "docs"
    linked = {
        (docs / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", (docs / "index.md").read_text())
    }
    pages = {page for page in PAGES if docs in page.parents and page.name != "index.md"}
    assert sorted(map(name_of, pages - linked)) == []


def test_the_readme_starts_with_commands_that_exist_and_ci_runs_its_test_command() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert named[:2] == ["run", "test"]
    assert set(named) <= targets
    assert re.search(r"^make test\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
