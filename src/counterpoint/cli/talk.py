"""``counterpoint talk``: ask a recorded question, get a recorded answer.

Owns: the command's arguments, starting a server where there is none, what is printed.
Does not own: WAV files (``audio.wav``), the conversation (``cli.conversation``), the server.
Here because: it is the shortest way to see, and to script, that everything works on real speech.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.errors import ConfigurationError, CounterpointError

if TYPE_CHECKING:
    from .conversation import Turn

_DEFAULT_MODEL = "cascade"


def talk(
    questions: Annotated[list[Path], typer.Argument(metavar="QUESTION.wav...", help="Spoken in turn.")],
    out: Annotated[Path, typer.Option("--out", metavar="ANSWER.wav", help="Where the answers go.")],
    url: Annotated[str, typer.Option(help="A running server; default: one is started.")] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help=f"Default: {_DEFAULT_MODEL}, or the running server's own.")
    ] = "",
    voice: Annotated[str, typer.Option(metavar="NAME", help="Voice of the answer.")] = "",
    fast: Annotated[bool, typer.Option("--fast", help="Send as fast as possible.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Speak WAV files to a server, print what was understood and answered, and write the answers.

    Several questions are several turns of one conversation.
    """
    import asyncio

    if not out.parent.is_dir() or out.is_dir():
        raise ConfigurationError("--out", f"{out} cannot be a file")
    spoken = [_read(path) for path in questions]
    # The server that was started must not outlive this, however it is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    turns = asyncio.run(_converse(spoken, url=url, model=model, voice=voice, fast=fast))
    _write(out, b"".join(turn.audio for turn in turns))
    if as_json:
        results = [_as_json(path, turn) for path, turn in zip(questions, turns, strict=True)]
        print(json.dumps({"out": str(out), "turns": results}))
        return
    for path, turn in zip(questions, turns, strict=True):
        print(_in_words(path, turn))
    print(f"wrote {out} ({sum(turn.audio_s for turn in turns):.1f} s)")


async def _converse(questions: list[bytes], *, url: str, model: str, voice: str, fast: bool) -> list[Turn]:
    from .conversation import converse
    from .server_process import server_process

    if url:
        server: AbstractAsyncContextManager[tuple[str, int]] = nullcontext((url, 0))
    else:
        print("starting a server ...", file=sys.stderr)
        name, model = model or _DEFAULT_MODEL, ""
        server = server_process(
            [sys.executable, "-m", "counterpoint", "serve", "--model", name, "--port", "0"]
        )
    async with server as (address, _):
        total = sum(map(len, questions))
        with typer.progressbar(length=total, label="speaking", file=sys.stderr) as progress:
            return await converse(
                address, questions, model=model or None, voice=voice, fast=fast, progress=progress.update
            )


def _read(path: Path) -> bytes:
    from counterpoint.audio.wav import NotAWav, read_wav

    try:
        return read_wav(path)
    except NotAWav as refusal:
        raise ConfigurationError(str(path), str(refusal)) from refusal
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be read: {error.strerror}") from error


def _write(path: Path, pcm: bytes) -> None:
    from counterpoint.audio.wav import write_wav

    try:
        write_wav(path, pcm)
    except OSError as error:
        raise CounterpointError(f"cannot write {path}: {error.strerror}") from error


def _in_words(path: Path, turn: Turn) -> str:
    waits = ", ".join(f"{name.replace('_', ' ')} {ms} ms" for name, ms in turn.latency_ms.items())
    return (
        f"you ({path.name}): {turn.heard or '(no words)'}\n"
        f"voice: {turn.answer or '(no words)'}\n"
        f"  after the end of speech: {waits}\n"
    )


def _as_json(path: Path, turn: Turn) -> dict[str, object]:
    told = {key: value for key, value in asdict(turn).items() if key != "audio"}
    return {"question": str(path), **told, "audio_s": turn.audio_s}
