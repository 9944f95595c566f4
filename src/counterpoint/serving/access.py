"""Who somebody is: keys, client secrets and origins, looked at before the upgrade.

Owns: reading a key from a request, what it makes of the caller, the origin rule.
Does not own: the keys (``keys``), the secrets (``client_secrets``), what a caller may still do (``permits``).
Here because: a refused client must cost no slot and no socket (wire contract, sections 1 and 10).

No key, secret or token is logged, here or elsewhere.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from counterpoint.protocol.codes import ErrorCode

from .client_secrets import PREFIX, ClientSecret, ClientSecrets, SecretRequest
from .keys import Key, KeyFile
from .refusals import refusal, unauthorized
from .settings import AccessSettings

#: What everyone is where no keys are configured.
ANYONE = Key("anyone")

_KEY_PROTOCOL = "openai-insecure-api-key."


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a request comes from. ``secret``: it came with one, which may have expired since it was issued."""

    key: Key
    secret: ClientSecret | None = None

    @property
    def principal(self) -> str:
        """Whom the sessions belong to that it opens."""
        return self.key.name if self.secret is None else self.secret.id


class Access:
    """``now`` is the system's clock. Raises ``ConfigurationError`` for a file of keys that cannot be used."""

    def __init__(
        self,
        settings: AccessSettings,
        entropy: Callable[[int], bytes],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._origins = settings.origins
        self._keys = KeyFile(Path(settings.keys_file)) if settings.keys_file else None
        self._secrets = ClientSecrets(entropy)
        self._now = now

    # ------------------------------------------------------------------ who it is

    def authenticate(self, request: web.Request) -> Caller:
        """Raises ``HTTPUnauthorized`` or ``HTTPForbidden``."""
        self.check_origin(request)
        presented = _presented_key(request)
        if presented is not None and presented.startswith(PREFIX):
            return self._by_secret(presented)
        if self._keys is None:
            return Caller(ANYONE)
        if presented is None:
            raise unauthorized("an API key is needed")
        self._keys.reload()
        key = self._keys.find(presented)
        if key is None:
            raise unauthorized("the API key is not valid")
        return Caller(key)

    def authenticate_key(self, request: web.Request) -> Caller:
        """The same for what needs a key, and for which a secret will not do."""
        caller = self.authenticate(request)
        if caller.secret is not None:
            message = "an API key is needed, not a client secret"
            raise refusal(web.HTTPForbidden, ErrorCode.INVALID_API_KEY, message)
        return caller

    def authenticate_admin(self, request: web.Request) -> Caller:
        """Without a file of keys there is nobody who may."""
        caller = self.authenticate_key(request)
        if not caller.key.admin:
            message = "an API key that is marked admin is needed"
            raise refusal(web.HTTPForbidden, ErrorCode.INVALID_API_KEY, message)
        return caller

    def _by_secret(self, presented: str) -> Caller:
        secret = self._secrets.find(presented)
        if secret is None or not self.is_key(secret.key):
            raise unauthorized("the client secret is not valid")
        return Caller(Key(secret.key), secret)

    def check_origin(self, request: web.Request) -> None:
        """Raises ``HTTPForbidden`` for a page that may not connect."""
        origin = request.headers.get("Origin")
        if origin is None or origin in self._origins:
            return
        parts = urlsplit(origin)
        if not self._origins and (parts.netloc == request.host or _is_loopback(parts.hostname)):
            return
        message = "this origin may not connect (access.origins)"
        raise refusal(web.HTTPForbidden, "origin_not_allowed", message)

    # ------------------------------------------------------------------ keys and secrets

    def is_key(self, name: str) -> bool:
        """Whether a key of this name is still good."""
        return self._keys is None or self._keys.has(name)

    def reload(self) -> None:
        """Read the file of keys again, if it changed."""
        if self._keys is not None:
            self._keys.reload()

    def issue(self, caller: Caller, request: SecretRequest) -> tuple[str, ClientSecret]:
        """A client secret for the caller's key: its value, and what is kept of it."""
        return self._secrets.issue(caller.key.name, request, self._now())

    def is_expired(self, secret: ClientSecret) -> bool:
        return secret.is_expired(self._now())

    def forget_secrets(self, in_use: Container[str]) -> int:
        """Forget secrets without a key, and expired ones whose id is not ``in_use``; how many are left."""
        self._secrets.forget(
            lambda secret: (
                not self.is_key(secret.key) or (self.is_expired(secret) and secret.id not in in_use)
            )
        )
        return len(self._secrets)


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
