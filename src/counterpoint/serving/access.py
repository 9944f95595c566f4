"""Who may connect: keys and origins, decided before the upgrade.

Owns: reading keys from a request, comparing them with the file of hashes, the origin rule.
Does not own: what a principal may do later (``runtime`` compares principals at a resume).
Here because: a refused client must cost no slot and no socket (wire contract, sections 1 and 10).

The keys file holds one key a line: the SHA-256 of the key in hex, and a name for it. It is read again when it
changes. Keys are compared by digest in constant time and appear in no log.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from counterpoint.errors import ConfigurationError

#: What everyone is where no keys are configured.
ANYONE = "anyone"

_KEY_PROTOCOL = "openai-insecure-api-key."


class Access:
    """``authenticate`` returns the principal or raises the HTTP refusal."""

    def __init__(self, keys_file: str, origins: tuple[str, ...]) -> None:
        self._file = Path(keys_file) if keys_file else None
        self._origins = origins
        self._read_at: float | None = None
        self._keys: dict[bytes, str] = {}
        if self._file is not None:
            self._reload(self._file)

    def authenticate(self, request: web.Request) -> str:
        """The name of the request's key. Raises ``HTTPUnauthorized`` or ``HTTPForbidden``."""
        self._check_origin(request)
        if self._file is None:
            return ANYONE
        self._reload(self._file)
        key = _presented_key(request)
        if key is None:
            raise web.HTTPUnauthorized(text="an API key is needed", headers={"WWW-Authenticate": "Bearer"})
        digest = hashlib.sha256(key.encode()).digest()
        name = None
        for known, its_name in self._keys.items():  # all of them, whichever matches: no timing to learn from
            if hmac.compare_digest(known, digest):
                name = its_name
        if name is None:
            raise web.HTTPUnauthorized(text="invalid API key", headers={"WWW-Authenticate": "Bearer"})
        return name

    def _check_origin(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        if origin is None:
            return
        if origin in self._origins:
            return
        parts = urlsplit(origin)
        if not self._origins and (parts.netloc == request.host or _is_loopback(parts.hostname)):
            return
        raise web.HTTPForbidden(text="this origin may not connect (access.origins)")

    def _reload(self, file: Path) -> None:
        try:
            changed_at = file.stat().st_mtime
            if changed_at == self._read_at:
                return
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            if self._read_at is not None:
                return  # keep the keys that were good until the file is back
            raise ConfigurationError("access.keys_file", f"cannot read {file}: {error.strerror}") from error
        self._keys = dict(_parse_key(number, line) for number, line in enumerate(lines, 1) if line.strip())
        self._read_at = changed_at


def _parse_key(number: int, line: str) -> tuple[bytes, str]:
    digest, _, name = line.strip().partition(" ")
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        raw = b""
    if len(raw) != hashlib.sha256().digest_size:
        raise ConfigurationError(
            "access.keys_file", f"line {number}: a SHA-256 in hex and a name are expected"
        )
    return raw, name.strip() or digest[:12]


def _presented_key(request: web.Request) -> str | None:
    authorization = request.headers.get("Authorization", "")
    if authorization[:7].lower() == "bearer ":
        return authorization[7:].strip()
    if "api-key" in request.headers:
        return request.headers["api-key"]
    for offered in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if offered.strip().startswith(_KEY_PROTOCOL):
            return offered.strip().removeprefix(_KEY_PROTOCOL)
    return None


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
