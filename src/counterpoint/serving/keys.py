"""The API keys of a server: a file of hashes, read again when it changes.

Owns: the file's form, comparing a key with it, which keys went away.
Does not own: where in a request a key stands (``access``), what a key may do.
Here because: a key that leaks is taken out of the file, and must be worth nothing a second later.

One key a line: the SHA-256 of the key in hex, and a name for it; a name followed by ``admin`` may end other
people's sessions. Lines that begin with ``#`` are comments. Several keys may have one name: then they are one
principal, which is how a key is replaced without cutting anybody off.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

import structlog

from counterpoint.errors import ConfigurationError

log = structlog.get_logger(__name__)

_ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    admin: bool = False


class KeyFile:
    """Raises ``ConfigurationError`` for a file that cannot be read or has a line of another form."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changed_at: float | None = None
        self._keys: dict[bytes, Key] = {}
        self._load(file.stat().st_mtime if file.exists() else 0.0)

    def find(self, presented: str) -> Key | None:
        """The key, if it is one. All are compared, whichever matches: there is no timing to learn from."""
        digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, key in self._keys.items():
            if hmac.compare_digest(known, digest):
                found = key
        return found

    def has(self, name: str) -> bool:
        """Whether some key still has this name."""
        return any(key.name == name for key in self._keys.values())

    def reload(self) -> None:
        """Read the file again if it changed. One that is gone or malformed leaves the keys as they were."""
        try:
            changed_at = self._file.stat().st_mtime
            if changed_at != self._changed_at:
                self._load(changed_at)
        except OSError:
            return
        except ConfigurationError as error:
            log.error("the keys are as they were", setting=error.key, reason=error.reason)

    def _load(self, changed_at: float) -> None:
        self._changed_at = changed_at
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ConfigurationError("access.keys_file", f"cannot read {self._file}: {reason}") from error
        entries = [(number, line.strip()) for number, line in enumerate(lines, 1)]
        self._keys = dict(_parse(number, line) for number, line in entries if line and line[0] != "#")


def _parse(number: int, line: str) -> tuple[bytes, Key]:
    digest, *words = line.split()
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        raw = b""
    if len(raw) != hashlib.sha256().digest_size:
        # The line itself is not shown: somebody may have put the key there instead of its hash.
        raise ConfigurationError(
            "access.keys_file", f"line {number}: a SHA-256 in hex and a name are expected"
        )
    admin = words[1:] and words[-1] == _ADMIN
    name = " ".join(words[:-1] if admin else words) or digest[:12]
    return raw, Key(name, bool(admin))
