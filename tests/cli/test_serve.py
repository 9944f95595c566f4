"""``counterpoint serve``: what reaches the server, and what stops it before that (wire, section 12)."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterpoint.cli.main import main
from counterpoint.serving.settings import Settings


@dataclass
class Ready:
    url: str


class Server:
    """Stands where ``serving.app`` stands: notes what it was asked to serve, and really listens."""

    def __init__(self) -> None:
        self.asked: dict[str, object] = {}
        self.thresholds: tuple[int, int, int] = gc.get_threshold()
        self.frozen = 0

    async def serve(
        self, settings: Settings, *, host: str, port: int, model: str, on_ready: Callable[[Ready], None]
    ) -> None:
        self.asked = {"settings": settings, "host": host, "port": port, "model": model}
        listening = await asyncio.start_server(lambda reader, writer: None, host, port)
        on_ready(Ready(f"ws://{host}:{listening.sockets[0].getsockname()[1]}/v1/realtime"))
        self.thresholds, self.frozen = gc.get_threshold(), gc.get_freeze_count()
        listening.close()
        await listening.wait_closed()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    module = types.ModuleType("counterpoint.serving.app")
    module.serve = server.serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "counterpoint.serving.app", module)
    monkeypatch.setattr("counterpoint.serving.app", module, raising=False)
    for name in [name for name in os.environ if name.startswith("COUNTERPOINT__")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("counterpoint.cli.logs.log_to_standard_error", lambda: None)
    thresholds = gc.get_threshold()
    yield server
    gc.set_threshold(*thresholds)


def serve(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run ``counterpoint serve`` with ``arguments`` and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["counterpoint", "serve", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def test_defaults(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve(monkeypatch, "--port", "0") == 0
    assert server.asked == {
        "settings": Settings(),
        "host": "127.0.0.1",
        "port": 0,
        "model": "cascade",
    }


def test_it_says_where_it_is_ready_on_standard_output(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, "--port", "0")
    line, empty = capsys.readouterr().out.split("\n")
    assert line.startswith("ready ws://127.0.0.1:")
    assert line.endswith("/v1/realtime")
    assert empty == ""


def test_the_collector_is_tuned_once_sessions_are_admitted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, "--port", "0")
    assert server.thresholds[0] == 50_000
    assert server.frozen > 0


def test_settings_come_from_file_environment_and_command_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "server.toml"
    file.write_text("[limits]\nmax_sessions = 1\nmax_turn_s = 1\n[lease]\nidle_ttl_s = 1\n")
    monkeypatch.setenv("COUNTERPOINT__LIMITS__MAX_SESSIONS", "2")
    monkeypatch.setenv("COUNTERPOINT__LIMITS__MAX_TURN_S", "2")
    arguments = ["--config", str(file), "--set", "limits.max_sessions=3", "--set", "model.words=2"]
    assert serve(monkeypatch, "--port", "0", "--model", "scripted", *arguments) == 0
    settings = server.asked["settings"]
    assert isinstance(settings, Settings)
    assert (settings.limits.max_sessions, settings.limits.max_turn_s, settings.lease.idle_ttl_s) == (3, 2, 1)
    assert settings.model == {"words": 2}
    assert server.asked["model"] == "scripted"


def test_tls_files_are_settings(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve(monkeypatch, "--port", "0", "--tls-cert", "c.pem", "--tls-key", "k.pem") == 0
    settings = server.asked["settings"]
    assert isinstance(settings, Settings)
    assert (settings.transport.tls_cert, settings.transport.tls_key) == ("c.pem", "k.pem")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "voice.example"])
def test_off_loopback_it_needs_keys_or_the_word(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert serve(monkeypatch, "--host", host) == 2
    assert capsys.readouterr().err.startswith("counterpoint: access.keys_file: ")
    assert server.asked == {}


@pytest.mark.parametrize(
    ("arguments", "keys_file"),
    [
        (["--no-auth"], ""),
        (["--set", "access.keys_file=keys.toml"], "keys.toml"),
        (["--set", "access.keys_file=keys.toml", "--no-auth"], ""),
    ],
)
def test_off_loopback_with_keys_or_the_word(
    server: Server, monkeypatch: pytest.MonkeyPatch, arguments: list[str], keys_file: str
) -> None:
    assert serve(monkeypatch, "--host", "0.0.0.0", "--port", "0", *arguments) == 0
    settings = server.asked["settings"]
    assert isinstance(settings, Settings)
    assert settings.access.keys_file == keys_file


def test_localhost_is_loopback(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve(monkeypatch, "--host", "localhost", "--port", "0") == 0


def test_a_port_in_use_is_one_line_and_exit_code_1(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve(monkeypatch, "--port", str(port)) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"counterpoint: cannot listen on 127.0.0.1:{port}: Address already in use; ")
    assert error.count("\n") == 1
