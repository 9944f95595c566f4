"""What a stage raises when it fails: a code for the client, a message for the log.

Owns: ``StageFailed`` and its codes.
Does not own: what fails (each stage), what becomes of the answer (``reply``) or the transcript (``hearing``).
Here because: a client can do something else about a busy server than about one that refuses, and must not be
told more than that.
"""

from __future__ import annotations

import enum

from counterpoint.errors import CounterpointError


class Fault(enum.StrEnum):
    """How a stage can fail; with the stage's name in front it is the response's code (``llm_timeout``)."""

    UNREACHABLE = "unreachable"  #: no connection
    TIMEOUT = "timeout"  #: connected, and silent for too long
    OVERLOADED = "overloaded"  #: 429 or 503: not now
    REFUSED = "refused"  #: any other 3xx or 4xx: the same request would be refused again
    FAILED = "failed"  #: any other 5xx, or an error in the middle of an answer
    BROKEN = "broken"  #: the answer was cut, or is not what the interface says

    @property
    def passing(self) -> bool:
        """Asked again, the stage may answer."""
        return self is not Fault.REFUSED


class StageFailed(CounterpointError):
    """A stage could not do its part. The message is for operators; it holds neither keys nor what was said.

    ``retry_after_s`` is when the server wants to be asked again, where it says so.
    """

    def __init__(self, stage: str, fault: Fault, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{stage}: {message}")
        self.fault = fault
        self.code = f"{stage}_{fault}"
        self.retry_after_s = retry_after_s
