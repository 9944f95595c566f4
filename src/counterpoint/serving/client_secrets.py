"""Short-lived secrets with which a browser opens sessions that are configured beforehand.

Owns: issuing and finding secrets, their form in a request, when they are forgotten.
Does not own: who may ask for one (``access``), that the fields given with one win (``session.configure``).
Here because: a key must not reach a browser, and what a browser says must not change what its server decided.

Secrets live in the memory of the server that issued them. Wire contract, section 10.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import Fields

PREFIX = "ek_"

#: How many are remembered. The oldest go first, whether they expired or not.
MOST_SECRETS = 10_000

_DEFAULT_S, _LEAST_S, _MOST_S = 600, 10, 7200
_MOST_MINUTES = 7 * 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRequest:
    """What a secret is asked for with. ``session``: the fields that are fixed."""

    session: dict[str, Any] = field(default_factory=dict)
    seconds: int = _DEFAULT_S
    max_minutes: float | None = None  #: of each session
    max_sessions: int | None = None  #: at a time

    @property
    def limits(self) -> dict[str, float | int]:
        """Those that were given, as they are spelled on the wire."""
        given = {"max_minutes": self.max_minutes, "max_sessions": self.max_sessions}
        return {name: limit for name, limit in given.items() if limit is not None}


def read_secret_request(body: str) -> SecretRequest:
    """Raises ``ProtocolError`` with a ``param`` such as ``expires_after.seconds``."""
    try:
        values = json.loads(body) if body.strip() else {}
    except ValueError:
        raise ProtocolError(ErrorCode.INVALID_EVENT, "not valid JSON") from None
    if not isinstance(values, dict):
        raise ProtocolError(ErrorCode.INVALID_EVENT, "a JSON object is expected")
    fields = Fields(values)
    expiry, limits, session = (fields.object(key) for key in ("expires_after", "limits", "session"))
    seconds = None
    if expiry is not None:
        expiry.choice("anchor", ("created_at",))
        seconds = expiry.integer("seconds", minimum=_LEAST_S, maximum=_MOST_S)
    return SecretRequest(
        session={} if session is None else session.values,
        seconds=_DEFAULT_S if seconds is None else seconds,
        max_minutes=None
        if limits is None
        else limits.number("max_minutes", minimum=0.1, maximum=_MOST_MINUTES),
        max_sessions=None if limits is None else limits.integer("max_sessions", minimum=1),
    )


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A secret without its value, which nobody keeps."""

    id: str  #: the principal that its sessions belong to
    key: str  #: name of the API key that it was issued to
    expires_at: float
    request: SecretRequest

    def is_expired(self, now: float) -> bool:
        return now >= self.expires_at


class ClientSecrets:
    """``entropy(n)`` returns n random bytes. Times are those of the system's clock."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._secrets: dict[bytes, ClientSecret] = {}

    def __len__(self) -> int:
        return len(self._secrets)

    def issue(self, key: str, request: SecretRequest, now: float) -> tuple[str, ClientSecret]:
        """A new secret for ``key``: its value, which is told once, and what is kept of it."""
        value = PREFIX + self._entropy(24).hex()
        secret = ClientSecret(f"secret_{self._entropy(8).hex()}", key, now + request.seconds, request)
        self._secrets[_digest(value)] = secret
        while len(self._secrets) > MOST_SECRETS:
            del self._secrets[next(iter(self._secrets))]
        return value, secret

    def find(self, value: str) -> ClientSecret | None:
        """Also one that expired: it still resumes its own sessions."""
        return self._secrets.get(_digest(value))

    def forget(self, useless: Callable[[ClientSecret], bool]) -> None:
        self._secrets = {at: secret for at, secret in self._secrets.items() if not useless(secret)}


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()
