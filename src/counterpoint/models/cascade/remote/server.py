"""One server behind a stage: requests to it, and every way in which they fail.

Owns: where it is and the key to it, time-outs, attempts, naming failures.
Does not own: what is asked and how the answer is read (``chat``, ``transcription``, ``speech``).
Here because: all three stages reach their servers in the same way, and a key must have one place.

A request ends with the block or the generator that made it: the connection is closed at once when an answer
is dropped half-way, which is how these servers learn that nobody wants the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from counterpoint.errors import ConfigurationError
from counterpoint.models.cascade.failing import Fault, StageFailed

#: Before the second attempt; it doubles with each, and varies by half so that sessions spread.
FIRST_DELAY_S: Final = 0.25
#: A user waits no longer than this for an attempt that the server wants later.
LONGEST_DELAY_S: Final = 3.0

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Attempts = Annotated[int, msgspec.Meta(ge=0, le=10)]

T = TypeVar("T")


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of every server (``model.STAGE.*``)."""

    #: Where its interface begins, usually with /v1 at the end.
    url: str
    #: What it calls the model.
    model: str
    #: The environment variable that holds its key; empty: it wants none.
    key_env: str = ""
    #: Longest time until a connection is made.
    connect_timeout_s: Seconds = 5.0
    #: Longest silence, before the first byte and between any two.
    timeout_s: Seconds = 20.0
    #: Further attempts after one that failed before its first output.
    retries: Attempts = 2


class Server:
    """A server as stage ``stage`` (asr, llm, tts) uses it.

    Raises ``ConfigurationError`` when the address is none, or the key's variable is not set.
    """

    def __init__(self, stage: str, options: ServerOptions) -> None:
        self._stage = stage
        self._options = options
        self._url = _checked(f"model.{stage}.url", options.url)
        self._headers = _authorization(f"model.{stage}.key_env", options.key_env)
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Get ready for requests. What is sent at a time is bounded by the sessions, not here."""
        silence = aiohttp.ClientTimeout(
            total=None, sock_connect=self._options.connect_timeout_s, sock_read=self._options.timeout_s
        )
        self._http = aiohttp.ClientSession(
            headers=self._headers, timeout=silence, connector=aiohttp.TCPConnector(limit=0)
        )

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    @asynccontextmanager
    async def post(self, path: str, **body: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request with ``body`` (as aiohttp takes it); its failures are ``StageFailed``."""
        if self._http is None:
            raise RuntimeError("the server was not started")
        with self._named():
            async with self._http.post(f"{self._url}/{path}", allow_redirects=False, **body) as response:
                if response.status != 200:
                    raise self._refusal(response)
                try:
                    yield response
                finally:
                    if not response.content.at_eof():
                        response.close()

    async def attempt(self, once: Callable[[], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        """What ``once`` yields; it is begun again where it fails in passing before its first item."""
        for attempt in range(self._options.retries + 1):
            begun = False
            try:
                async with aclosing(once()) as items:
                    async for item in items:
                        begun = True
                        yield item
                return
            except StageFailed as failure:
                delay = _delay(attempt, failure)
                last = attempt == self._options.retries
                if begun or last or not failure.fault.passing or delay > LONGEST_DELAY_S:
                    raise
            await asyncio.sleep(delay)

    def failed(self, fault: Fault, message: str, retry_after_s: float | None = None) -> StageFailed:
        return StageFailed(self._stage, fault, message, retry_after_s)

    def _refusal(self, response: aiohttp.ClientResponse) -> StageFailed:
        """What the server says beyond the status is left out: some repeat the key, some the prompt."""
        fault = _fault(response.status)
        return self.failed(fault, f"{self._url} answered {response.status}", _seconds(response))

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            reason = type(error).__name__
            raise self.failed(Fault.UNREACHABLE, f"no connection to {self._url} ({reason})") from None
        except TimeoutError:
            silence = f"{self._url} was silent for {self._options.timeout_s:g} s"
            raise self.failed(Fault.TIMEOUT, silence) from None
        except aiohttp.ClientError as error:
            reason = type(error).__name__
            raise self.failed(Fault.BROKEN, f"the answer of {self._url} was cut ({reason})") from None


def _fault(status: int) -> Fault:
    if status in (429, 503):
        return Fault.OVERLOADED
    return Fault.FAILED if status >= 500 else Fault.REFUSED


def _checked(key: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(key, "an address begins with http:// or https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        # Such an address is shown in logs.
        raise ConfigurationError(
            key, "an address holds no key and no query; name the key's variable in key_env"
        )
    return url.rstrip("/")


def _authorization(key: str, variable: str) -> dict[str, str]:
    if not variable:
        return {}
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise ConfigurationError(key, "the environment has no such variable, or it is empty")
    return {"Authorization": f"Bearer {secret}"}


def _delay(attempt: int, failure: StageFailed) -> float:
    if failure.retry_after_s is not None:
        return failure.retry_after_s
    return float(FIRST_DELAY_S * 2**attempt * random.uniform(0.5, 1.5))


def _seconds(response: aiohttp.ClientResponse) -> float | None:
    """``Retry-After`` where it is a number; as a date it is too far away to matter."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
