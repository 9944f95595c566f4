"""``counterpoint serve``: run the server until it is told to stop.

Owns: the command's arguments; that nobody is let in by accident; the process's loop and garbage collector.
Does not own: the settings (``serving.settings``) nor the server (``serving.app``).
Here because: loop and collector belong to a process, and a server embedded in another must not touch them.
"""

from __future__ import annotations

import errno
import gc
import ipaddress
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.errors import ConfigurationError, CounterpointError

if TYPE_CHECKING:
    from counterpoint.serving.app import Server
    from counterpoint.serving.settings import Settings

#: Objects allocated before the youngest are collected: with thousands of connections the default of some
#: hundreds costs a third of the server's time.
_GC_THRESHOLD = 50_000

_CANNOT_LISTEN = {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES}


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8099,
    model: Annotated[
        str, typer.Option(metavar="NAME|MODULE:ATTRIBUTE", help="Model plugin to serve.")
    ] = "cascade",
    config: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Settings.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable.")
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Let everyone in, beyond loopback too, without keys.")
    ] = False,
    tls_cert: Annotated[str, typer.Option(metavar="FILE", help="Certificate chain (PEM).")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Private key (PEM).")] = "",
) -> None:
    """Serve a voice model over WebSocket. SIGTERM drains; a second one stops at once."""
    from counterpoint.serving.settings import Settings

    flags = {
        "transport.tls_cert": tls_cert or None,
        "transport.tls_key": tls_key or None,
        "access.keys_file": "" if no_auth else None,
    }
    overrides = [*(settings or ()), *(f"{key}={value}" for key, value in flags.items() if value is not None)]
    loaded = Settings.load(config, os.environ, overrides)
    if not (no_auth or loaded.access.keys_file or _is_loopback(host)):
        raise ConfigurationError(
            "access.keys_file", f"needed to listen on {host}; --no-auth lets everyone in without keys"
        )
    _run(loaded, host, port, model)


def _run(settings: Settings, host: str, port: int, model: str) -> None:
    import uvloop

    from counterpoint.serving import app

    from .logs import log_to_standard_error

    log_to_standard_error()
    try:
        uvloop.run(app.serve(settings, host=host, port=port, model=model, on_ready=_admitting))
    except OSError as error:
        reason = _cannot_listen(error)
        if reason is None:
            raise
        raise CounterpointError(f"cannot listen on {host}:{port}: {reason}; see --host and --port") from error


def _cannot_listen(error: OSError) -> str | None:
    """Why no socket could be opened; None when something else failed."""
    if isinstance(error, socket.gaierror):
        return error.strerror
    return os.strerror(error.errno) if error.errno in _CANNOT_LISTEN else None


def _admitting(server: Server) -> None:
    """Sessions are admitted. What was built until now stays, and need not be looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
    print(f"ready {server.url}", flush=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
