"""The program as a whole: fast where it does nothing, and one line for what went wrong (section 12)."""

from __future__ import annotations

import subprocess
import sys

import counterpoint

HEAVY = ("aiohttp", "numpy", "prometheus_client", "msgspec", "uvloop", "asyncio")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from counterpoint.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30
    )


def test_commands_load_what_they_run_only_when_they_run() -> None:
    code = f"import sys, counterpoint.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (loaded.stdout, loaded.stderr) == ("[]\n", "")


def test_help_lists_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for command in ("serve", "install-voice", "version"):
        assert f"\n  {command} " in done.stdout


def test_version() -> None:
    assert run("version").stdout == f"{counterpoint.__version__}\n"


def test_bad_configuration_is_one_line_that_names_the_key_and_exit_code_2() -> None:
    done = run("serve", "--set", "limits.max_sesions=1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "counterpoint: limits.max_sesions: no such key; did you mean limits.max_sessions?\n"
    )


def test_a_command_that_is_not_there_is_bad_usage() -> None:
    assert run("sing").returncode == 2
