"""The configuration of a server: its keys, where their values come from, and which values are refused.

Owns: ``Settings``, one section per table of the file; the order file, environment, command line; the checks.
Does not own: the numbers that lower layers keep (``counterpoint.limits``), nor the meaning of ``model.*``,
which is the plugin's.
Here because: a wrong key or value must end in one line that names it, before anything is opened.

Keys, defaults and rules: wire contract, sections 11 and 12. Each ``#:`` line is also the description in
``docs/reference/settings.md``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec

from counterpoint.errors import ConfigurationError
from counterpoint.limits import (
    AdmissionLimits,
    ClusterLimits,
    Count,
    DrainLimits,
    JournalLimits,
    LeaseLimits,
    Limits,
    StoreLimits,
    TransportLimits,
)

ENVIRONMENT_PREFIX = "COUNTERPOINT__"

#: The section whose keys are the plugin's: they are passed on as they are.
FREE_SECTION = "model"


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``models.*``: the names under which clients may ask for the model."""

    #: Patterns of model names that are served by the server's own model, besides its name.
    aliases: tuple[str, ...] = ("gpt-*realtime*",)


class TransportSettings(TransportLimits, frozen=True, kw_only=True):
    """``transport.*``: what is expected of a connection, and how it is carried."""

    #: Certificate chain (PEM); together with transport.tls_key it turns TLS on.
    tls_cert: str = ""
    #: Private key (PEM) of transport.tls_cert.
    tls_key: str = ""
    #: Offer per-message compression; it costs more processor time than it saves bytes.
    compression: bool = False


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``access.*``: who may connect, and how often."""

    #: File of API keys, read again when it changes; without one, loopback only. A line is the SHA-256 of a
    #: key in hex, a name for it, and "admin" if it may end other people's sessions.
    keys_file: str = ""
    #: Web origins that may connect; none listed: the server's own and loopback ones.
    origins: tuple[str, ...] = ()
    #: Sessions that one key may hold at a time.
    max_sessions_per_key: Count = 0
    #: Connections that one key may open within a minute.
    connections_per_minute: Count = 0


class StoreSettings(StoreLimits, frozen=True, kw_only=True):
    """``store.*``: where sessions are kept."""

    #: sqlite:///path or redis://host; empty: sessions live in memory and die with the process.
    url: str = ""


class ClusterSettings(ClusterLimits, frozen=True, kw_only=True):
    """``cluster.*``: this server as a node among others."""

    #: Address at which other nodes reach this one; empty: a single server.
    node_url: str = ""


class DebugSettings(msgspec.Struct, frozen=True, kw_only=True):
    """``debug.*``: doors for tests and operators."""

    #: Serve GET /debug/state on loopback.
    state_route: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be configured. Field names are the sections of the keys."""

    models: ModelSettings = ModelSettings()
    limits: Limits = Limits()
    lease: LeaseLimits = LeaseLimits()
    journal: JournalLimits = JournalLimits()
    transport: TransportSettings = TransportSettings()
    drain: DrainLimits = DrainLimits()
    admission: AdmissionLimits = AdmissionLimits()
    access: AccessSettings = AccessSettings()
    store: StoreSettings = StoreSettings()
    cluster: ClusterSettings = ClusterSettings()
    debug: DebugSettings = DebugSettings()
    #: The plugin's own configuration, as given.
    model: dict[str, object] = {}

    @classmethod
    def load(
        cls, file: Path | None = None, env: Mapping[str, str] | None = None, overrides: Iterable[str] = ()
    ) -> Self:
        """Settings from a TOML ``file``, the environment ``env`` and ``section.key=value`` ``overrides``.

        Later sources win, key by key. Raises ``ConfigurationError``, naming the key, for an unknown key, a
        value of the wrong kind or out of range, and for values that contradict each other.
        """
        values: dict[str, object] = {}
        for key, value in (*_from_file(file), *_from_environment(env or {}), *_from_command_line(overrides)):
            values[key] = _checked(key, value)
        settings = msgspec.convert(_nested(values), cls)
        _refuse_contradictions(settings)
        return settings


def sections() -> dict[str, type[msgspec.Struct]]:
    """The classes of the sections whose keys are known, by section name."""
    return {
        section.name: section.type
        for section in msgspec.structs.fields(Settings)
        if section.name != FREE_SECTION
    }


#: The type of every known key, by dotted name.
_KEYS = {
    f"{section}.{field.name}": field.type
    for section, kind in sections().items()
    for field in msgspec.structs.fields(kind)
}


def _from_file(file: Path | None) -> Iterator[tuple[str, object]]:
    if file is None:
        return
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError("--config", f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError("--config", f"{file} is not TOML: {error}") from error
    yield from _dotted(document)


def _dotted(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of nested tables with their dotted names."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _from_environment(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for name, text in env.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            yield key, _read(key, text)


def _from_command_line(overrides: Iterable[str]) -> Iterator[tuple[str, object]]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigurationError(override, "a value is missing: write KEY=VALUE")
        yield key.strip(), _read(key.strip(), text)


def _read(key: str, text: str) -> object:
    """The value that ``text`` stands for: JSON where it is JSON, else the text itself.

    A key that takes text takes it as it is; a list may also be written with commas.
    """
    kind = _KEYS.get(key)
    if kind is str:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        if kind != tuple[str, ...]:
            return text
        return [part.strip() for part in text.split(",") if part.strip()]


def _checked(key: str, value: object) -> object:
    if key.startswith(f"{FREE_SECTION}."):
        return value
    kind = _KEYS.get(key)
    if kind is None:
        near = difflib.get_close_matches(key, _KEYS, 1)
        raise ConfigurationError(key, f"no such key; did you mean {near[0]}?" if near else "no such key")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0].replace("`", "").replace("Expected", "expected")
        raise ConfigurationError(key, f"{reason} (given: {value!r})") from error


def _nested(values: Mapping[str, object]) -> dict[str, object]:
    """The inverse of ``_dotted``."""
    root: dict[str, object] = {}
    for key, value in values.items():
        *path, leaf = key.split(".")
        table = root
        for name in path:
            below = table.setdefault(name, {})
            if not isinstance(below, dict):
                raise ConfigurationError(key, f"{name} is a value already, not a table")
            table = below
        table[leaf] = value
    return root


def _refuse_contradictions(settings: Settings) -> None:
    journal, lease, transport, cluster = (
        settings.journal,
        settings.lease,
        settings.transport,
        settings.cluster,
    )
    if 0 < journal.ttl_s < lease.disconnect_grace_s:
        raise ConfigurationError(
            "journal.ttl_s",
            f"{journal.ttl_s:g} is below lease.disconnect_grace_s ({lease.disconnect_grace_s:g}): "
            "a resume within the grace would find its events gone",
        )
    if transport.tls_cert and not transport.tls_key:
        raise ConfigurationError("transport.tls_key", "missing beside transport.tls_cert")
    if transport.tls_key and not transport.tls_cert:
        raise ConfigurationError("transport.tls_cert", "missing beside transport.tls_key")
    if 0 < cluster.lease_s <= cluster.heartbeat_s:
        raise ConfigurationError(
            "cluster.lease_s",
            f"{cluster.lease_s:g} is not above cluster.heartbeat_s ({cluster.heartbeat_s:g}): "
            "a living node would count as dead",
        )
