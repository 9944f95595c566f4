"""Clients of other projects, unmodified, each in its own environment, against a server process of its own.

Every client has the same conversations (the programs in ``drivers``, ``node`` and ``browser``): by text, by
audio with turns that the program ends, with the server's detector, with a tool, and with an answer that is
cut off. Its user sees what the scripted model says, or, by speech, what the embedded voice understood (case
I-09).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RATE = 24_000
WORDS = " ".join(f"word{n}" for n in range(1, 11))
KEY = "unused"  #: what every program gives as its key: the servers take no other


def python(environment: str, driver: str) -> tuple[str, ...]:
    return str(ROOT / ".venv-clients" / environment / "bin" / "python"), str(HERE / "drivers" / driver)


BROWSER = (sys.executable, "-m", "tests.clients.browser.drive")
CLIENTS = {
    "openai": python("openai", "drive_openai.py"),
    "openai-sync": python("openai", "drive_openai_sync.py"),
    "openai-agents": python("openai-agents", "drive_openai_agents.py"),
    "pipecat-ai": python("pipecat-ai", "drive_pipecat.py"),
    "livekit-agents": python("livekit-agents", "drive_livekit_agents.py"),
    "npm-openai": ("node", str(HERE / "node" / "drive_openai.mjs")),
    "npm-agents-realtime": ("node", str(HERE / "node" / "drive_agents.mjs")),
    "npm-agents-realtime-in-a-browser": (*BROWSER, "OpenAIRealtimeWebSocket"),
}
CALLER = {"npm-agents-realtime-by-webrtc": (*BROWSER, "OpenAIRealtimeWebRTC")}
TLS_ONLY = ("npm-openai",)

Seen = dict[str, list[dict[str, Any]]]  #: by scenario, in order
Converse = Callable[..., Seen]


@dataclass(frozen=True)
class Urls:
    """One model, by plain and by encrypted connections."""

    plain: str
    encrypted: str


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server in a process of its own."""
    command = [str(Path(sys.executable).with_name("counterpoint")), "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        with process.stdout:
            ready = process.stdout.readline()
            assert ready.startswith("ready "), f"the server said {ready!r}"
            yield ready.split()[1]
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    chain, key = folder / "chain.pem", folder / "key.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(chain), *name], check=True, capture_output=True
    )
    return chain, key


@pytest.fixture(scope="module", params=["scripted", "cascade"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def urls(model: str, certificate: tuple[Path, Path]) -> Iterator[Urls]:
    chain, key = certificate
    keys = chain.with_name("keys")
    keys.write_text(f"{hashlib.sha256(KEY.encode()).hexdigest()} clients\n")
    options = ("--model", model, "--set", f"access.keys_file={keys}")
    with ExitStack() as stack:
        encrypted = stack.enter_context(serving(*options, "--tls-cert", str(chain), "--tls-key", str(key)))
        plain = stack.enter_context(serving(*options))
        yield Urls(plain, encrypted)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """*Go forward ten meters* at the rate of the Realtime API."""
    with wave.open(str(ROOT / "tests/data/audio/go_forward.wav")) as wav:
        samples = np.frombuffer(wav.readframes(wav.getnframes()), np.int16)
        places = np.arange(len(samples) * RATE // wav.getframerate()) * wav.getframerate() / RATE
    file = tmp_path_factory.mktemp("audio") / "speech.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(np.interp(places, np.arange(len(samples)), samples).astype(np.int16).tobytes())
    return file


@pytest.fixture(scope="module")
def converse(urls: Urls, recording: Path, certificate: tuple[Path, Path]) -> Converse:
    """What the user of a client sees of conversations."""

    def run(client: str, *scenarios: str) -> Seen:
        trusted = str(certificate[0])
        url = urls.encrypted if client in TLS_ONLY else urls.plain
        done = subprocess.run(
            [*(CLIENTS | CALLER)[client], url, str(recording), *scenarios],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": trusted, "SSL_CERT_FILE": trusted},
        )
        assert done.returncode == 0, done.stderr
        seen: Seen = {scenario: [] for scenario in scenarios}
        for line in done.stdout.splitlines():
            event = json.loads(line)
            seen[event.pop("scenario")].append(event)
        return seen

    return run


def of(events: list[dict[str, Any]], what: str, key: str) -> list[Any]:
    return [event[key] for event in events if event["saw"] == what]


def pcm(events: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(part) for part in of(events, "audio", "pcm"))


def ramp(response: int) -> bytes:
    """What the scripted model says by default: a second, another one for each response."""
    return (((response * 7919 + np.arange(RATE)) % 32768).astype("<i2")).tobytes()


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["saw"] for event in events]


def after(events: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return events[kinds(events).index(what) :]


@pytest.mark.parametrize("model", ["scripted"], indirect=True)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_feature_of_a_client_works(client: str, model: str, converse: Converse) -> None:
    """To the sample and to the word."""
    seen = converse(client, "text", "audio", "vad", "tools", "cancel")
    for scenario, events in seen.items():
        assert of(events, "error", "message") == [], scenario
        assert of(events, "text", "text")[-1] == WORDS, scenario
    assert pcm(seen["text"]) == b""
    assert any(pcm(seen["audio"]).endswith(ramp(response)) for response in (1, 2))
    assert pcm(seen["vad"]).endswith(ramp(2))
    (tool,) = [event for event in seen["tools"] if event["saw"] == "tool"]
    assert (tool["name"], json.loads(tool["arguments"])) == ("weather", {"city": "sample"})
    assert pcm(seen["tools"]) == ramp(2)
    for scenario in ("vad", "cancel"):
        assert "interrupted" in kinds(seen[scenario]), scenario
    again = pcm(after(seen["cancel"], "again"))
    first = pcm(seen["cancel"])[: -len(again)]
    assert 0 < len(first) < len(ramp(1))
    assert ramp(1).startswith(first)
    assert again == ramp(2)


@pytest.mark.parametrize("model", ["scripted"], indirect=True)
def test_a_browser_calls_by_webrtc(model: str, converse: Converse) -> None:
    """The sound is on tracks: the browser says whether it played any."""
    seen = converse("npm-agents-realtime-by-webrtc", "text", "microphone", "tools", "cancel")
    for scenario, events in seen.items():
        assert of(events, "error", "message") == [], scenario
        assert of(events, "text", "text")[-1] == WORDS, scenario
    assert of(seen["microphone"], "played", "energy")[0] > 0
    assert of(seen["tools"], "tool", "name") == ["weather"]
    assert of(seen["cancel"], "done", "status") == ["cancelled", "completed"]


@pytest.mark.voice
@pytest.mark.parametrize("model", ["cascade"], indirect=True)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_speaks_with_the_embedded_voice(client: str, model: str, converse: Converse) -> None:
    """Its small language model decides for itself whether it calls a tool, so none is asked for here."""
    seen = converse(client, "text", "audio", "vad", "cancel")
    for scenario, events in seen.items():
        assert of(events, "error", "message") == [], scenario
        assert of(events, "text", "text")[-1].split(), scenario
    for scenario in ("audio", "vad"):
        assert len(pcm(seen[scenario])) > RATE
        heard = " ".join(of(seen[scenario], "heard", "text")).lower()
        assert "forward" in heard
    assert pcm(after(seen["cancel"], "again"))
