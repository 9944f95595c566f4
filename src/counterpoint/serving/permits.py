"""What a caller may do now: connections within a minute, sessions at a time, and for how long at all.

Owns: the limits per key and per client secret, ending what a revoked key opened.
Does not own: who a caller is (``access``), slots of the whole server (``runtime.slots``).
Here because: a key that is shared, stolen or revoked must not cost the others their place.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

import structlog
from aiohttp import web

from counterpoint.errors import AccessRefused, AdmissionRefused
from counterpoint.protocol.codes import ErrorCode
from counterpoint.runtime.manager import SessionManager

from .access import Access, Caller
from .client_secrets import ClientSecret
from .rates import Rates
from .refusals import refusal, unauthorized
from .settings import AccessSettings

log = structlog.get_logger(__name__)

_RETRY_AFTER_MS = 1000


class Permits:
    """``now`` is a clock that never goes back."""

    def __init__(
        self,
        settings: AccessSettings,
        access: Access,
        manager: SessionManager,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._access = access
        self._manager = manager
        self._rates = Rates(settings.connections_per_minute)
        self._now = now

    def check_connection(self, caller: Caller, *, opens: bool) -> None:
        """Before the upgrade. ``opens``: it takes a slot at once.

        Raises ``HTTPTooManyRequests``, or ``HTTPUnauthorized`` for an expired secret.
        """
        wait_s = self._rates.take(caller.key.name, self._now())
        if wait_s:
            message = "too many connections within a minute (access.connections_per_minute)"
            raise too_many(message, wait_s)
        if not opens:
            return
        try:
            self.check_opening(caller)
        except AdmissionRefused as refused:
            raise too_many(str(refused), refused.retry_after_ms / 1000) from None
        except AccessRefused as refused:
            raise unauthorized(str(refused)) from None

    def check_opening(self, caller: Caller) -> None:
        """When a session is about to be opened: keys and secrets may have gone since the upgrade.

        Raises ``AccessRefused`` and ``AdmissionRefused``.
        """
        if not self._access.is_key(caller.key.name):
            raise AccessRefused("the API key was revoked")
        most = self._settings.max_sessions_per_key
        if most and self._manager.count(lambda live: live.key == caller.key.name) >= most:
            message = "the key has all its sessions (access.max_sessions_per_key)"
            raise AdmissionRefused(message, _RETRY_AFTER_MS)
        if caller.secret is not None:
            self._check_secret(caller.secret)

    def _check_secret(self, secret: ClientSecret) -> None:
        if self._access.is_expired(secret):
            raise AccessRefused("the client secret has expired")
        most = secret.request.max_sessions
        if most and self._manager.count(lambda live: live.principal == secret.id) >= most:
            message = "the client secret has all its sessions (limits.max_sessions)"
            raise AdmissionRefused(message, _RETRY_AFTER_MS)

    # ------------------------------------------------------------------ what goes away

    async def watch(self, interval_s: float) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(interval_s)
            self.sweep()

    def sweep(self) -> None:
        """Read the keys again, end the sessions of those that are gone, forget secrets that nobody needs."""
        self._access.reload()
        for live in list(self._manager.sessions):
            if not self._access.is_key(live.key):
                log.info("session ended: its key was revoked", session=live.id, key=live.key)
                live.close("admin")
        holders = {live.principal for live in self._manager.sessions}
        self._manager.metrics.client_secrets.set(self._access.forget_secrets(holders))


def too_many(message: str, wait_s: float) -> web.HTTPException:
    retry = {"Retry-After": str(math.ceil(wait_s))}
    return refusal(web.HTTPTooManyRequests, ErrorCode.RESOURCE_EXHAUSTED, message, headers=retry)
