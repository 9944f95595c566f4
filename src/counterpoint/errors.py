"""Every error that Counterpoint raises on purpose, as one tree.

::

    CounterpointError
    ├── ConfigurationError            a setting is wrong; names the key; exit code 2
    ├── ProtocolError                 a client's event was refused; becomes one ``error`` event
    │   └── (code, param, message)    the codes are in protocol/codes.py
    ├── PluginError                   a model plugin broke its contract
    │   ├── ModelOpenFailed           the model side of a session could not be opened
    │   └── ModelBusy                 push() refused for now (back-pressure); retry later
    ├── StaleFence                    work of an older epoch or turn was stopped
    ├── AccessRefused                 the key or secret is not good, or not any more
    ├── AdmissionRefused              no slot (carries retry_after_ms)
    ├── ResumeRefused                 a resume was refused (carries the wire code)
    └── ClientError                   raised by counterpoint.client
        ├── ConnectionLost            the connection ended and cannot be resumed
        ├── SessionEnded              the server ended the session (carries the reason)
        ├── AnswerMissed              what was awaited happened in a gap; the conversation shows the outcome
        └── ServerRefused             an error event answered the awaited request

Owns: the classes and what they carry.
Does not own: the wire codes (``protocol.codes``), how a client is shown an error (``session``, ``serving``).
Here because: every layer raises and catches across layers; one tree says what to expect.
"""

from __future__ import annotations


class CounterpointError(Exception):
    """Base of everything that Counterpoint raises on purpose."""


class ConfigurationError(CounterpointError):
    """A setting is wrong. ``key`` is its dotted name (``lease.idle_ttl_s``)."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.reason = message


class ProtocolError(CounterpointError):
    """A client event was refused; the session and the connection are unharmed.

    ``code`` is one of ``protocol.codes.ErrorCode``'s values, ``param`` the dotted name of the
    field at fault, ``event_id`` the client's own id of the offending event (wire contract, section 8);
    ``expected`` is the number that a ``client_event_gap`` waits for, ``client_event_seq`` the offending
    event's own number where it could be read (``codec.decode`` sets it).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        event_id: str | None = None,
        retry_after_ms: int | None = None,
        expected: int | None = None,
        client_event_seq: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.event_id = event_id
        self.retry_after_ms = retry_after_ms
        self.expected = expected
        self.client_event_seq = client_event_seq


class PluginError(CounterpointError):
    """A model plugin broke its contract."""


class ModelOpenFailed(PluginError):
    """The model side of a session could not be opened."""


class ModelBusy(PluginError):
    """The model accepts no more input for now."""


class StaleFence(CounterpointError):
    """The work belongs to an epoch or a turn that is over."""


class AccessRefused(CounterpointError):
    """The key or the client secret is not good, or not any more."""


class AdmissionRefused(CounterpointError):
    """No slot is free. ``retry_after_ms`` says when a retry makes sense."""

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class ResumeRefused(CounterpointError):
    """A resume was refused with wire code ``code``; nothing was changed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ClientError(CounterpointError):
    """Base of what ``counterpoint.client`` raises."""


class ConnectionLost(ClientError):
    """The connection ended and could not be resumed."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class SessionEnded(ClientError):
    """The server ended the session; ``reason`` is that of ``session.closed`` or ``session.expired``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the session ended: {reason}")
        self.reason = reason


class AnswerMissed(ClientError):
    """What was awaited happened while the server could keep no more events for this client (a gap)."""


class ServerRefused(ClientError):
    """An ``error`` event answered the request that was awaited.

    ``retry_after_ms`` says when a retry makes sense, where the server knows.
    """

    def __init__(
        self, code: str, message: str, *, param: str | None = None, retry_after_ms: int | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.param = param
        self.retry_after_ms = retry_after_ms
